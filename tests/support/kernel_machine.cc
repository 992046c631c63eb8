// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_machine.h"

#include <bit>
#include <cmath>
#include <set>

#include "codegen/kernel/literal.h"

namespace forge::testing {
namespace {

using codegen::BuiltinKind;
using codegen::Code;
using codegen::DotKind;
using codegen::Id;
using codegen::Inst;
using codegen::Kernel;
using codegen::Space;
using codegen::Type;
using codegen::View;

using Mask = std::vector<uint8_t>;  // of each invocation: 1 or 0

// A value in each invocation: the bits of its lanes.
class Row {
 public:
  Row() = default;
  Row(size_t invocations, size_t lanes) : lanes_(lanes), bits_(invocations * lanes) {}
  std::span<uint64_t> operator[](size_t n) { return {&bits_[n * lanes_], lanes_}; }
  std::span<const uint64_t> operator[](size_t n) const { return {&bits_[n * lanes_], lanes_}; }
  void Set(size_t n, std::span<const uint64_t> lanes) {
    std::copy_n(lanes.begin(), lanes_, &bits_[n * lanes_]);
  }
  // Takes the invocations of the mask from a row of as many lanes.
  void Copy(const Row& from, const Mask& mask) {
    for (size_t n = 0; n < mask.size(); ++n)
      if (mask[n]) Set(n, from[n]);
  }

 private:
  size_t lanes_ = 1;
  std::vector<uint64_t> bits_;
};

constexpr Code kReductions[] = {Code::kAdd, Code::kMin, Code::kMax, Code::kMul};  // of ReduceKind

bool Any(const Mask& m) { return std::find(m.begin(), m.end(), 1) != m.end(); }
int BytesOfElement(DType t) { return t == DType::kBool ? 1 : BitWidth(t) / 8; }

class Machine {
 public:
  Machine(const Kernel& k, std::span<std::vector<uint8_t>* const> operands,
          const MachineOptions& options)
      : k_(k), operands_(operands), options_(options) {}
  absl::Status Run();

 private:
  absl::Status RunBlock(codegen::BlockId block, const Mask& mask);
  absl::Status RunInst(const Inst& i, const Mask& mask);
  absl::Status RunIf(const Inst& i, const Mask& mask);
  absl::Status RunFor(const Inst& i, const Mask& mask);
  absl::Status RunWhile(const Inst& i, const Mask& mask);
  absl::Status RunForElements(const Inst& i, const Mask& mask);
  absl::Status RunPure(const Inst& i, const Mask& mask);
  absl::Status RunMemory(const Inst& i, const Mask& mask);
  void CountBanks(const Inst& i, const Mask& mask);
  absl::Status RunTogether(const Inst& i, const Mask& mask);
  absl::Status CopyAsync(const Inst& i, const Mask& mask);
  void WaitCopies(int pending, const Mask& mask);
  absl::Status ReduceSubgroups(const Inst& i, const Mask& mask);
  absl::Status RunMatrix(const Inst& i, const Mask& mask);
  absl::Status AccessMatrix(const Inst& i, size_t n, const Type& type, std::vector<double>& matrix);
  std::vector<double> MultiplyMatrices(const Inst& i, size_t n);
  absl::Status ReduceRows(const Inst& i, size_t n, std::vector<double>& made);
  std::vector<double> ConvertMatrices(const Inst& i, size_t n);
  absl::StatusOr<std::span<uint8_t>> Place(const View& v, size_t invocation, int64_t index);
  absl::Status RunFold(const Inst& i, const Mask& mask);
  bool RunDirectly(const Inst& i, const Mask& mask);
  template <class T>
  void EachLane(const Inst& i, const Mask& mask, T (*make)(T, T, T));
  uint64_t Builtin(BuiltinKind which, size_t invocation) const;
  size_t Subgroup() const {
    return k_.subgroup != 0 ? k_.subgroup : static_cast<size_t>(options_.subgroup);
  }
  size_t HoldersOf(const Type& matrix) const {
    return matrix.is_held_by_workgroup() ? size_ : Subgroup();
  }
  Row& At(Id id) { return values_[id]; }
  const Type& TypeOf(Id id) const { return k_.values[id].type; }
  Id Arg(const Inst& i, int n) const { return k_.ArgsOf(i)[n]; }
  const Inst& YieldOf(codegen::BlockId b) const { return k_.blocks[b].insts.back(); }

  const Kernel& k_;
  std::span<std::vector<uint8_t>* const> operands_;
  const MachineOptions& options_;
  size_t size_ = 0;
  std::array<int64_t, 3> group_{};
  std::vector<Row> values_;
  // Elements by rows, in f64, which holds those of every matrix that is multiplied here. The value
  // of a matrix is its index.
  std::vector<std::vector<double>> matrices_;
  // Who has touched an element of shared memory since the last barrier: an invocation, or a
  // subgroup as a whole, which is size_ + its first one.
  struct Touched {
    uint64_t epoch = 0;
    int64_t writer = kNobody, reader = kNobody;
  };
  static constexpr int64_t kNobody = -1, kSeveral = -2;
  absl::Status Touch(const View& v, int64_t index, size_t who, bool writes);
  std::vector<std::vector<Touched>> touched_;  // for each view and element
  uint64_t epoch_ = 0;                         // counts barriers

  struct PendingCopy {
    size_t invocation = 0;
    int64_t group = 0;
    std::span<uint8_t> to;
    std::vector<uint8_t> bytes;
  };
  std::vector<PendingCopy> copies_;
  std::vector<int64_t> copy_groups_;  // that each invocation has closed

  std::vector<std::vector<uint8_t>> shared_;                // for each view
  std::vector<std::vector<std::vector<uint8_t>>> private_;  // for each view and invocation
};

absl::Status Machine::Run() {
  size_ = size_t{k_.workgroup[0]} * k_.workgroup[1] * k_.workgroup[2];
  std::array<int64_t, 3> grid{};
  for (int i = 0; i < 3; ++i) {
    FORGE_ASSIGN_OR_RETURN(grid[i], k_.grid[i].Evaluate(options_.scalars));
  }
  for (const auto& v : k_.values) values_.emplace_back(size_, std::max<size_t>(v.type.lanes, 1));
  for (group_[2] = 0; group_[2] < grid[2]; ++group_[2])
    for (group_[1] = 0; group_[1] < grid[1]; ++group_[1])
      for (group_[0] = 0; group_[0] < grid[0]; ++group_[0]) {
        shared_.assign(k_.views.size(), {});
        private_.assign(k_.views.size(), {});
        touched_.assign(k_.views.size(), {});
        matrices_.clear();
        copies_.clear();
        copy_groups_.assign(size_, 0);
        for (size_t v = 0; v < k_.views.size(); ++v) {
          const View& view = k_.views[v];
          const size_t bytes =
              size_t{view.extent} * view.elem.lanes * BytesOfElement(view.elem.elem);
          if (view.space == Space::kShared) shared_[v].assign(bytes, 0xcd);
          if (view.space == Space::kShared) touched_[v].assign(view.extent, {});
          if (view.space == Space::kPrivate)
            private_[v].assign(size_, std::vector<uint8_t>(bytes, 0xcd));
        }
        FORGE_RETURN_IF_ERROR(RunBlock(0, Mask(size_, true)));
      }
  return absl::OkStatus();
}

absl::Status Machine::RunBlock(codegen::BlockId block, const Mask& mask) {
  if (!Any(mask)) return absl::OkStatus();
  for (const Inst& i : k_.blocks[block].insts) FORGE_RETURN_IF_ERROR(RunInst(i, mask));
  return absl::OkStatus();
}

absl::Status Machine::RunInst(const Inst& i, const Mask& mask) {
  if (i.code == Code::kMatrixWait) {
    At(i.result) = At(Arg(i, 0));
    return absl::OkStatus();
  }
  if (i.result_count == 1 && TypeOf(i.result).is_matrix() && i.block_count == 0)
    return RunMatrix(i, mask);
  switch (i.code) {
    case Code::kMatrixStore:
      return RunMatrix(i, mask);
    case Code::kCopyAsync:
      return CopyAsync(i, mask);
    case Code::kCommitCopies:
      for (size_t n = 0; n < size_; ++n) copy_groups_[n] += mask[n];
      return absl::OkStatus();
    case Code::kWaitCopies:
      WaitCopies(i.aux, mask);
      return absl::OkStatus();
    case Code::kYield:
      return absl::OkStatus();
    case Code::kIf:
      return RunIf(i, mask);
    case Code::kFor:
      return RunFor(i, mask);
    case Code::kWhile:
      return RunWhile(i, mask);
    case Code::kForElements:
      return RunForElements(i, mask);
    case Code::kLoad:
    case Code::kStore:
    case Code::kAtomic:
    case Code::kCompareExchange:
      return RunMemory(i, mask);
    default:
      return codegen::Info(i.code).effect == codegen::Effect::kPure ? RunPure(i, mask)
                                                                    : RunTogether(i, mask);
  }
}

absl::Status Machine::RunIf(const Inst& i, const Mask& mask) {
  Mask sides[2] = {mask, mask};
  for (size_t n = 0; n < size_; ++n) {
    const bool yes = At(Arg(i, 0))[n][0] != 0;
    sides[0][n] = mask[n] && yes;
    sides[1][n] = mask[n] && !yes;
  }
  for (int side = 0; side < 2; ++side) {
    const codegen::BlockId b = i.block + static_cast<uint32_t>(side);
    FORGE_RETURN_IF_ERROR(RunBlock(b, sides[side]));
    for (int r = 0; r < i.result_count; ++r)
      At(i.result + static_cast<Id>(r)).Copy(At(Arg(YieldOf(b), r)), sides[side]);
  }
  return absl::OkStatus();
}

absl::Status Machine::RunFor(const Inst& i, const Mask& mask) {
  const auto& body = k_.blocks[i.block];
  std::vector<Row> carried;
  for (int r = 0; r < i.result_count; ++r) carried.push_back(At(Arg(i, 3 + r)));
  const Row end = At(Arg(i, 1)), step = At(Arg(i, 2));
  Row counter = At(Arg(i, 0));
  Mask going = mask;
  while (true) {
    for (size_t n = 0; n < size_; ++n)
      going[n] = going[n] && static_cast<int32_t>(counter[n][0]) < static_cast<int32_t>(end[n][0]);
    if (!Any(going)) break;
    At(body.arguments[0]) = counter;
    for (size_t r = 0; r < carried.size(); ++r) At(body.arguments[1 + r]) = carried[r];
    FORGE_RETURN_IF_ERROR(RunBlock(i.block, going));
    for (size_t r = 0; r < carried.size(); ++r)
      carried[r].Copy(At(Arg(YieldOf(i.block), static_cast<int>(r))), going);
    for (size_t n = 0; n < size_; ++n)
      counter[n][0] = static_cast<uint32_t>(counter[n][0] + step[n][0]);
  }
  for (size_t r = 0; r < carried.size(); ++r) At(i.result + static_cast<Id>(r)) = carried[r];
  return absl::OkStatus();
}

absl::Status Machine::RunWhile(const Inst& i, const Mask& mask) {
  std::vector<Row> carried;
  for (int r = 0; r < i.result_count; ++r) carried.push_back(At(Arg(i, r)));
  Mask going = mask;
  while (Any(going)) {
    for (codegen::BlockId b : {i.block, i.block + 1}) {
      for (size_t r = 0; r < carried.size(); ++r) At(k_.blocks[b].arguments[r]) = carried[r];
      FORGE_RETURN_IF_ERROR(RunBlock(b, going));
      if (b != i.block) continue;
      for (size_t n = 0; n < size_; ++n) going[n] = going[n] && At(Arg(YieldOf(b), 0))[n][0] != 0;
    }
    for (size_t r = 0; r < carried.size(); ++r)
      carried[r].Copy(At(Arg(YieldOf(i.block + 1), static_cast<int>(r))), going);
  }
  for (size_t r = 0; r < carried.size(); ++r) At(i.result + static_cast<Id>(r)) = carried[r];
  return absl::OkStatus();
}

uint64_t Machine::Builtin(BuiltinKind which, size_t n) const {
  const auto& w = k_.workgroup;
  const size_t subgroup = Subgroup();
  switch (which) {
    case BuiltinKind::kWorkgroupX:
    case BuiltinKind::kWorkgroupY:
    case BuiltinKind::kWorkgroupZ:
      return static_cast<uint64_t>(group_[static_cast<size_t>(which)]);
    case BuiltinKind::kLocalX:
      return n % w[0];
    case BuiltinKind::kLocalY:
      return n / w[0] % w[1];
    case BuiltinKind::kLocalZ:
      return n / w[0] / w[1];
    case BuiltinKind::kLane:
      return n % subgroup;
    case BuiltinKind::kSubgroup:
      return n / subgroup;
  }
  return 0;
}

// The bytes of two words, each with its own sign, multiplied and added to a third.
std::optional<uint64_t> DotOfBytes(DotKind kind, std::span<const uint64_t> words) {
  const auto byte = [](uint64_t word, int n, bool is_signed) {
    const auto bits = static_cast<uint8_t>(word >> (8 * n));
    return is_signed ? int64_t{static_cast<int8_t>(bits)} : int64_t{bits};
  };
  auto sum = static_cast<int64_t>(words[2]);
  for (int n = 0; n < 4; ++n)
    sum +=
        byte(words[0], n, kind != DotKind::kUnsigned) * byte(words[1], n, kind == DotKind::kSigned);
  return static_cast<uint32_t>(sum);
}

// The instructions that kernels consist of mostly, which codegen::Folder would take most of the
// time of a run for; nullptr: it is left to Folder.
constexpr codegen::CodeTable<float (*)(float, float, float)> kOfF32 = {
    {Code::kAdd, [](float a, float b, float) { return a + b; }},
    {Code::kMul, [](float a, float b, float) { return a * b; }},
    {Code::kFma, [](float a, float b, float c) { return std::fma(a, b, c); }},
    {Code::kExp2, [](float a, float, float) { return std::exp2(a); }},
};
using Word = uint32_t;
constexpr codegen::CodeTable<Word (*)(Word, Word, Word)> kOfI32 = {
    {Code::kAdd, [](Word a, Word b, Word) { return a + b; }},
    {Code::kSub, [](Word a, Word b, Word) { return a - b; }},
    {Code::kMul, [](Word a, Word b, Word) { return a * b; }},
    {Code::kLt,
     [](Word a, Word b, Word) { return Word{static_cast<int32_t>(a) < static_cast<int32_t>(b)}; }},
};

// Has `make` compute the lanes of the result from those of up to three operands.
template <class T>
void Machine::EachLane(const Inst& i, const Mask& mask, T (*make)(T, T, T)) {
  const auto ids = k_.ArgsOf(i);
  Row& result = At(i.result);
  for (size_t n = 0; n < size_; ++n)
    for (size_t l = 0; mask[n] && l < result[n].size(); ++l) {
      std::array<T, 3> args{};
      for (size_t a = 0; a < ids.size(); ++a) {
        const std::span<const uint64_t> row = values_[ids[a]][n];
        args[a] = std::bit_cast<T>(static_cast<uint32_t>(row[row.size() == 1 ? 0 : l]));
      }
      result[n][l] = std::bit_cast<uint32_t>(make(args[0], args[1], args[2]));
    }
}

// Returns false where the instruction is left to RunFold.
bool Machine::RunDirectly(const Inst& i, const Mask& mask) {
  const DType t = TypeOf(Arg(i, 0)).elem;
  const auto of_f32 = t == DType::kF32 ? kOfF32[i.code] : nullptr;
  const auto of_i32 = t == DType::kI32 ? kOfI32[i.code] : nullptr;
  if (of_f32 != nullptr) EachLane(i, mask, of_f32);
  if (of_i32 != nullptr) EachLane(i, mask, of_i32);
  return of_f32 != nullptr || of_i32 != nullptr;
}

absl::Status Machine::RunFold(const Inst& i, const Mask& mask) {
  const auto ids = k_.ArgsOf(i);
  const auto lanes = static_cast<size_t>(TypeOf(i.result).lanes);
  const DType arg = TypeOf(ids[0]).elem, result = TypeOf(i.result).elem;
  const codegen::Folder fold({i.code, result, arg});
  std::array<uint64_t, 3> args{};
  const size_t operands = std::min(ids.size(), args.size());
  for (size_t n = 0; n < size_; ++n)
    for (size_t l = 0; l < lanes && mask[n]; ++l) {
      for (size_t a = 0; a < operands; ++a)
        args[a] = At(ids[a])[n][TypeOf(ids[a]).lanes == 1 ? 0 : l];
      const auto made = i.code == Code::kDot4 ? DotOfBytes(static_cast<DotKind>(i.aux), args)
                                              : fold(std::span(args).first(operands));
      if (!made)
        return Internal("{} of {} is undefined or unknown: {} {}", codegen::Info(i.code).name,
                        Name(arg), args[0], args[1]);
      At(i.result)[n][l] = *made;
    }
  return absl::OkStatus();
}

absl::Status Machine::RunPure(const Inst& i, const Mask& mask) {
  Row& result = At(i.result);
  // Calls make(n, l) for each lane of each invocation.
  const auto each = [&](auto make) {
    for (size_t n = 0; n < size_; ++n)
      for (size_t l = 0; mask[n] && l < result[n].size(); ++l) result[n][l] = make(n, l);
    return absl::OkStatus();
  };
  switch (i.code) {
    case Code::kLiteral:
      return each([&](size_t, size_t) { return i.literal; });
    case Code::kScalar: {
      FORGE_ASSIGN_OR_RETURN(const int64_t v, k_.scalars[i.literal].Evaluate(options_.scalars));
      return each([&](size_t, size_t) { return static_cast<uint32_t>(v); });
    }
    case Code::kBuiltin:
      return each([&](size_t n, size_t) { return Builtin(static_cast<BuiltinKind>(i.aux), n); });
    case Code::kPack:
      return each([&](size_t n, size_t l) { return At(k_.ArgsOf(i)[l])[n][0]; });
    case Code::kExtract:
      return each([&](size_t n, size_t) { return At(Arg(i, 0))[n][i.aux]; });
    case Code::kInsert:
      return each([&](size_t n, size_t l) {
        return i.aux == l ? At(Arg(i, 1))[n][0] : At(Arg(i, 0))[n][l];
      });
    default:
      return RunDirectly(i, mask) ? absl::OkStatus() : RunFold(i, mask);
  }
}

absl::StatusOr<std::span<uint8_t>> Machine::Place(const View& v, size_t n, int64_t index) {
  const size_t view = static_cast<size_t>(&v - k_.views.data());
  std::vector<uint8_t>& memory = v.space == Space::kGlobal
                                     ? *operands_[static_cast<size_t>(v.operand)]
                                 : v.space == Space::kShared ? shared_[view]
                                                             : private_[view][n];
  const int64_t bytes = int64_t{v.elem.lanes} * BytesOfElement(v.elem.elem);
  if (index < 0 || (index + 1) * bytes > static_cast<int64_t>(memory.size()))
    return OutOfRange("{}: element {} of {} bytes in {}, invocation {} of group {} {} {}", v.name,
                      index, bytes, memory.size(), n, group_[0], group_[1], group_[2]);
  return std::span(memory).subspan(static_cast<size_t>(index * bytes), static_cast<size_t>(bytes));
}

// errors: Internal: two touch an element, one of them to write it, and no barrier lies between
absl::Status Machine::Touch(const View& v, int64_t index, size_t who, bool writes) {
  if (v.space != Space::kShared) return absl::OkStatus();
  Touched& t = touched_[static_cast<size_t>(&v - k_.views.data())][static_cast<size_t>(index)];
  if (t.epoch != epoch_) t = {.epoch = epoch_};
  const auto me = static_cast<int64_t>(who);
  const auto is_other = [me](int64_t by) { return by != kNobody && by != me; };
  if (is_other(t.writer) || (writes && is_other(t.reader)))
    return Internal("{}: a race for element {} between {} and {} of group {} {} {}", v.name, index,
                    is_other(t.writer) ? t.writer : t.reader, me, group_[0], group_[1], group_[2]);
  if (writes)
    t.writer = me;
  else
    t.reader = is_other(t.reader) ? kSeveral : me;
  return absl::OkStatus();
}

// What an atomic leaves of an element and its operand.
uint64_t Combined(codegen::AtomicKind kind, DType t, uint64_t old, uint64_t value) {
  using codegen::AtomicKind;
  if (kind == AtomicKind::kAnd) return old & value;
  if (kind == AtomicKind::kOr) return old | value;
  if (kind == AtomicKind::kExchange) return value;
  const Code code = kind == AtomicKind::kAdd   ? Code::kAdd
                    : kind == AtomicKind::kMin ? Code::kMin
                                               : Code::kMax;
  const uint64_t both[] = {old, value};
  return *codegen::FoldLiterals({code, t, t}, both);
}

void Machine::CountBanks(const Inst& i, const Mask& mask) {
  constexpr size_t kBanks = 32, kWord = 4;
  const View& v = k_.views[i.view];
  const size_t bytes = v.elem.lanes * static_cast<size_t>(BytesOfElement(v.elem.elem));
  const size_t words = std::max<size_t>(bytes / kWord, 1), at_once = kBanks / words;
  for (size_t first = 0; first < size_; first += at_once) {
    std::array<std::set<size_t>, kBanks> touched;
    for (size_t n = first; n < std::min(first + at_once, size_); ++n)
      for (size_t w = 0; mask[n] && w < words; ++w) {
        size_t at = static_cast<size_t>(At(Arg(i, 0))[n][0]) * bytes;
        if (v.swizzled) at ^= at / codegen::kSwizzledLineBytes % 8 * codegen::kSwizzledPieceBytes;
        const size_t word = at / kWord + w;
        touched[word % kBanks].insert(word);
      }
    size_t most = 0;
    for (const std::set<size_t>& bank : touched) most = std::max(most, bank.size());
    options_.banks->accesses += most > 0;
    options_.banks->waits += most > 0 ? static_cast<int64_t>(most) - 1 : 0;
  }
}

absl::Status Machine::RunMemory(const Inst& i, const Mask& mask) {
  const View& v = k_.views[i.view];
  if (options_.banks != nullptr && v.space == Space::kShared) CountBanks(i, mask);
  const auto width = static_cast<size_t>(BytesOfElement(v.elem.elem));
  for (size_t n = 0; n < size_; ++n) {
    if (!mask[n]) continue;
    const auto index = static_cast<int32_t>(At(Arg(i, 0))[n][0]);
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> place, Place(v, n, index));
    if (codegen::IsOneOf(i.code, {Code::kLoad, Code::kStore}))
      FORGE_RETURN_IF_ERROR(Touch(v, index, n, i.code == Code::kStore));
    const size_t lanes = v.elem.lanes;
    std::array<uint64_t, 4> old{}, next{};
    for (size_t l = 0; l < lanes; ++l) std::memcpy(&old[l], &place[l * width], width);
    if (i.code != Code::kStore) At(i.result).Set(n, old);
    if (i.code == Code::kLoad) continue;
    std::ranges::copy(At(Arg(i, 1))[n], next.begin());
    if (i.code == Code::kAtomic)
      next[0] = Combined(static_cast<codegen::AtomicKind>(i.aux), v.elem.elem, old[0], next[0]);
    else if (i.code == Code::kCompareExchange)
      next[0] = old[0] == next[0] ? At(Arg(i, 2))[n][0] : old[0];
    for (size_t l = 0; l < lanes; ++l) std::memcpy(&place[l * width], &next[l], width);
  }
  return absl::OkStatus();
}

// What is read now lands at the wait.
absl::Status Machine::CopyAsync(const Inst& i, const Mask& mask) {
  const View &to = k_.views[i.view], &from = k_.views[i.literal];
  for (size_t n = 0; n < size_; ++n) {
    if (!mask[n]) continue;
    for (int e = 0; e < i.aux; ++e) {
      const int64_t at = static_cast<int32_t>(At(Arg(i, 0))[n][0]) + e;
      FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> place, Place(to, n, at));
      FORGE_RETURN_IF_ERROR(Touch(to, at, n, true));
      std::vector<uint8_t> bytes(place.size());
      if (At(Arg(i, 2))[n][0] != 0) {
        FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> source,
                               Place(from, n, static_cast<int32_t>(At(Arg(i, 1))[n][0]) + e));
        bytes.assign(source.begin(), source.end());
      }
      copies_.push_back({n, copy_groups_[n], place, std::move(bytes)});
    }
  }
  return absl::OkStatus();
}

void Machine::WaitCopies(int pending, const Mask& mask) {
  const auto lands = [&](const PendingCopy& c) {
    return mask[c.invocation] && c.group + pending < copy_groups_[c.invocation];
  };
  for (const PendingCopy& c : copies_)
    if (lands(c)) std::ranges::copy(c.bytes, c.to.begin());
  std::erase_if(copies_, lands);
}

// Between memory and a matrix of the holders that begin at invocation `n`.
absl::Status Machine::AccessMatrix(const Inst& i, size_t n, const Type& type,
                                   std::vector<double>& matrix) {
  const View& v = k_.views[i.view];
  const bool by_columns = (i.aux & codegen::kColumnMajor) != 0;
  const auto index = static_cast<int32_t>(At(Arg(i, 0))[n][0]);
  const auto stride = static_cast<int32_t>(At(Arg(i, 1))[n][0]);
  const auto width = static_cast<size_t>(BytesOfElement(v.elem.elem));
  for (int64_t at = 0; at < int64_t{type.rows} * type.cols; ++at) {
    const int64_t row = at / type.cols, column = at % type.cols;
    const int64_t line = by_columns ? column : row, along = by_columns ? row : column;
    const int64_t piece = along / v.elem.lanes;
    const int64_t of_line = codegen::kSwizzledLineBytes / codegen::ElementBytes(v.elem);
    const int64_t where =
        index + (v.swizzled ? piece / of_line * stride + line * of_line + piece % of_line
                            : line * stride + piece);
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> place, Place(v, n, where));
    FORGE_RETURN_IF_ERROR(Touch(v, where, size_ + n, i.code == Code::kMatrixStore));
    uint8_t* element = &place[static_cast<size_t>(along % v.elem.lanes) * width];
    uint64_t bits = codegen::ToBits(type.elem, matrix[static_cast<size_t>(at)]);
    if (i.code == Code::kMatrixStore) std::memcpy(element, &bits, width);
    bits = 0;
    std::memcpy(&bits, element, width);
    matrix[static_cast<size_t>(at)] = codegen::FloatOf(type.elem, bits);
  }
  return absl::OkStatus();
}

std::vector<double> Machine::MultiplyMatrices(const Inst& i, size_t n) {
  const auto of = [&](int arg) -> const auto& { return matrices_[At(Arg(i, arg))[n][0]]; };
  const size_t rows = TypeOf(i.result).rows, columns = TypeOf(i.result).cols;
  const size_t depth = TypeOf(Arg(i, 0)).cols;
  std::vector<double> sums = of(2);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      for (size_t k = 0; k < depth; ++k)
        sums[r * columns + c] += of(0)[r * depth + k] * of(1)[k * columns + c];
  return sums;
}

absl::Status Machine::ReduceRows(const Inst& i, size_t n, std::vector<double>& made) {
  const Type& type = TypeOf(i.result);
  const std::vector<double>& matrix = matrices_[At(Arg(i, 0))[n][0]];
  for (size_t row = 0; row < type.rows; ++row) {
    uint64_t all = codegen::ToBits(type.elem, matrix[row * type.cols]);
    for (size_t c = 1; c < type.cols; ++c) {
      const uint64_t pair[] = {all, codegen::ToBits(type.elem, matrix[row * type.cols + c])};
      const auto both = codegen::FoldLiterals({kReductions[i.aux], type.elem, type.elem}, pair);
      if (!both) return Internal("a reduction of {}", Name(type.elem));
      all = *both;
    }
    std::fill_n(made.begin() + static_cast<ptrdiff_t>(row * type.cols), type.cols,
                codegen::FloatOf(type.elem, all));
  }
  return absl::OkStatus();
}

std::vector<double> Machine::ConvertMatrices(const Inst& i, size_t n) {
  const Type &type = TypeOf(i.result), &part = TypeOf(Arg(i, 0));
  std::vector<double> made;
  for (size_t row = 0; row < type.rows; ++row)
    for (size_t c = 0; c < type.cols; ++c) {
      const auto& from = matrices_[At(Arg(i, static_cast<int>(c / part.cols)))[n][0]];
      const double v = from[row * part.cols + c % part.cols];
      made.push_back(codegen::FloatOf(type.elem, codegen::ToBits(type.elem, v)));
    }
  return made;
}

absl::Status Machine::RunMatrix(const Inst& i, const Mask& mask) {
  const Type& held = i.code == Code::kMatrixStore ? TypeOf(Arg(i, 2)) : TypeOf(i.result);
  const size_t subgroup = HoldersOf(held);
  for (size_t n = 0; n < size_; n += subgroup) {
    const auto from = mask.begin() + static_cast<ptrdiff_t>(n);
    const auto active = std::count(from, from + static_cast<ptrdiff_t>(subgroup), 1);
    if (active == 0) continue;
    if (active != static_cast<ptrdiff_t>(subgroup))
      return Internal("a matrix that not all of the subgroup hold");
    if (i.code == Code::kMatrixStore) {
      std::vector<double>& stored = matrices_[At(Arg(i, 2))[n][0]];
      FORGE_RETURN_IF_ERROR(AccessMatrix(i, n, TypeOf(Arg(i, 2)), stored));
      continue;
    }
    const Type& type = TypeOf(i.result);
    std::vector<double> made(size_t{type.rows} * type.cols, codegen::FloatOf(type.elem, i.literal));
    if (i.code == Code::kMatrixMulAdd) made = MultiplyMatrices(i, n);
    if (i.code == Code::kMatrixReduce) FORGE_RETURN_IF_ERROR(ReduceRows(i, n, made));
    if (i.code == Code::kMatrixConvert) made = ConvertMatrices(i, n);
    if (i.code == Code::kMatrixLoad) FORGE_RETURN_IF_ERROR(AccessMatrix(i, n, type, made));
    matrices_.push_back(std::move(made));
    for (size_t lane = 0; lane < subgroup; ++lane) At(i.result)[n + lane][0] = matrices_.size() - 1;
  }
  return absl::OkStatus();
}

// Element e is held by the invocation that e falls to in turns, from the last one back.
absl::Status Machine::RunForElements(const Inst& i, const Mask& mask) {
  const Type& type = TypeOf(Arg(i, 0));
  const size_t subgroup = HoldersOf(type), lanes = i.aux;
  const std::vector<Id>& inside = k_.blocks[i.block].arguments;
  const size_t elements = size_t{type.rows} * type.cols / lanes;
  // What the bodies yield, as matrices of each subgroup.
  const size_t made = matrices_.size();
  for (size_t n = 0; n < size_; n += subgroup)
    for (uint32_t r = 0; r < i.result_count; ++r) {
      for (size_t lane = 0; lane < subgroup; ++lane)
        At(i.result + r)[n + lane][0] = matrices_.size();
      matrices_.emplace_back(size_t{type.rows} * type.cols);
    }
  for (size_t first = 0; first < elements; first += subgroup) {
    Mask holders = mask;
    for (size_t n = 0; n < size_; ++n) {
      const size_t e = first + subgroup - 1 - n % subgroup;
      holders[n] = mask[n] && e < elements;
      if (!holders[n]) continue;
      At(inside[0])[n][0] = e * lanes / type.cols;
      At(inside[1])[n][0] = e * lanes % type.cols;
      for (size_t m = 0; m < i.arg_count; ++m) {
        const std::vector<double>& matrix = matrices_[At(Arg(i, static_cast<int>(m)))[n][0]];
        const DType t = TypeOf(inside[m + 2]).elem;
        for (size_t l = 0; l < lanes; ++l)
          At(inside[m + 2])[n][l] = codegen::ToBits(t, matrix[e * lanes + l]);
      }
    }
    FORGE_RETURN_IF_ERROR(RunBlock(i.block, holders));
    for (size_t n = 0; n < size_; ++n)
      for (uint32_t r = 0; holders[n] && r < i.result_count; ++r) {
        const size_t e = first + subgroup - 1 - n % subgroup;
        const Id yielded = k_.YieldOf(i.block)[r];
        for (size_t l = 0; l < lanes; ++l)
          matrices_[made + n / subgroup * i.result_count + r][e * lanes + l] =
              codegen::FloatOf(TypeOf(yielded).elem, At(yielded)[n][l]);
      }
  }
  return absl::OkStatus();
}

absl::Status Machine::ReduceSubgroups(const Inst& i, const Mask& mask) {
  const size_t subgroup = Subgroup();
  const DType t = TypeOf(i.result).elem;
  for (size_t first = 0; first < size_; first += subgroup) {
    std::optional<uint64_t> all;
    for (size_t n = first; n < first + subgroup; ++n) {
      if (!mask[n]) continue;
      const uint64_t pair[] = {all.value_or(0), At(Arg(i, 0))[n][0]};
      all = all ? codegen::FoldLiterals({kReductions[i.aux], t, t}, pair) : pair[1];
      if (!all) return Internal("a reduction of {}", Name(t));
      if (i.code == Code::kSubgroupScan) At(i.result)[n][0] = *all;
    }
    if (i.code == Code::kSubgroupScan) continue;
    for (size_t n = first; n < first + subgroup; ++n)
      if (mask[n]) At(i.result)[n][0] = *all;
  }
  return absl::OkStatus();
}

absl::Status Machine::RunTogether(const Inst& i, const Mask& mask) {
  if (i.code == Code::kBarrier) ++epoch_;
  if (i.code == Code::kBarrier)
    return Any(mask) && std::find(mask.begin(), mask.end(), 0) != mask.end()
               ? Internal("a barrier that not all invocations reach")
               : absl::OkStatus();
  if (i.code == Code::kSubgroupReduce || i.code == Code::kSubgroupScan)
    return ReduceSubgroups(i, mask);
  const size_t subgroup = Subgroup();
  const Row in = At(Arg(i, 0));
  for (size_t n = 0; n < size_; ++n) {
    if (!mask[n]) continue;
    const size_t first = n / subgroup * subgroup;
    if (i.code != Code::kShuffle && i.code != Code::kShuffleXor)
      return Internal("{} is not known", codegen::Info(i.code).name);
    const size_t lane =
        i.code == Code::kShuffle ? At(Arg(i, 1))[n][0] : (n - first) ^ size_t { i.aux };
    if (first + lane >= size_ || lane >= subgroup || !mask[first + lane])
      return Internal("a shuffle from lane {}, which is not there", lane);
    At(i.result).Set(n, in[first + lane]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunKernel(const Kernel& k, std::span<std::vector<uint8_t>* const> operands,
                       const MachineOptions& options) {
  return Machine(k, operands, options).Run();
}

}  // namespace forge::testing
