// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codegen/builder_state.h"
#include "codegen/literal.h"
#include "codegen/uniform.h"

namespace forge::codegen {
namespace {

constexpr CodeInfo kInfos[] = {
#define X(name, arity, effect, rule, of) \
  {#name, arity, Effect::effect, TypeRule::rule, ElementClass::of},
    FORGE_KERNEL_OPS(X)
#undef X
};

bool Commutes(Code c) {
  switch (c) {
    case Code::kAdd:
    case Code::kMul:
    case Code::kMin:
    case Code::kMax:
    case Code::kAnd:
    case Code::kOr:
    case Code::kXor:
    case Code::kEq:
      return true;
    default:
      return false;
  }
}

// Has a precise form. Fma stands without the flag: it is one rounding or two on every device.
bool MayBePrecise(Code c) {
  return c == Code::kAdd || c == Code::kSub || c == Code::kMul || c == Code::kDiv ||
         c == Code::kFma || c == Code::kMin || c == Code::kMax;
}

}  // namespace

const CodeInfo& Info(Code code) { return kInfos[static_cast<int>(code)]; }

Type Val::type() const { return b->kernel().values[id].type; }
Uniform Val::uniform() const { return b->kernel().values[id].uniform; }

// ---- state --------------------------------------------------------------------------------------

Id Builder::State::NewValue(const Type& type, uint32_t level) {
  k.values.push_back({type, Uniform::kInvocation});
  defs.push_back({level, open[level].block});
  return static_cast<Id>(k.values.size()) - 1;
}

const Inst* Builder::State::DefOf(Id v) const {
  const Def& d = defs[v];
  return d.inst == UINT32_MAX ? nullptr : &k.blocks[d.block].insts[d.inst];
}

std::optional<uint64_t> Builder::State::LiteralOf(Val v) const {
  const Inst* i = DefOf(v);
  return i && i->code == Code::kLiteral ? std::optional(i->literal) : std::nullopt;
}

bool Builder::State::IsLiteral(Val v, double value) const {
  const auto bits = LiteralOf(v);
  return bits && *bits == ToBits(v.type().elem, value);
}

uint32_t Builder::State::SetArgs(std::span<const Val> args) {
  const auto at = static_cast<uint32_t>(k.operands.size());
  for (Val a : args) k.operands.push_back(a.id);
  return at;
}

Id Builder::State::Append(Inst i, const Type& type, uint32_t level) {
  const BlockId block = open[level].block;
  i.result = NewValue(type, level);
  defs[i.result].inst = static_cast<uint32_t>(k.blocks[block].insts.size());
  k.blocks[block].insts.push_back(i);
  k.values[i.result].uniform = UniformOf(k, i);
  return i.result;
}

void Builder::State::AppendEffect(Inst i) {
  i.result_count = 0;
  k.blocks[open.back().block].insts.push_back(i);
}

uint32_t Builder::State::OutermostLevel(std::span<const Val> args) const {
  uint32_t least = 0, at = level();
  for (Val a : args) least = std::max(least, defs[a.id].level);
  while (at > least && open[at].loop) --at;
  return at;
}

Id Builder::State::Share(Inst i, const Type& type, std::span<const Val> args, uint32_t level) {
  auto lower = [](uint64_t v) { return static_cast<uint32_t>(v); };
  Key key{lower(static_cast<uint32_t>(i.code) | i.aux << 8 | uint32_t{i.view} << 16),
          lower(static_cast<uint32_t>(type.elem) | type.lanes << 8 |
                static_cast<uint32_t>(type.use) << 16 | static_cast<uint32_t>(type.held_by) << 24),
          lower(type.rows | uint32_t{type.cols} << 16), lower(i.literal), lower(i.literal >> 32)};
  for (Val a : args) key.push_back(a.id);
  for (auto o = open.rbegin(); o != open.rend(); ++o)
    if (auto it = o->seen.find(key); it != o->seen.end()) return it->second;
  i.args = SetArgs(args);
  i.arg_count = static_cast<uint32_t>(args.size());
  const Id id = Append(i, type, level);
  open[level].seen.emplace(std::move(key), id);
  return id;
}

void Builder::Finish() {
  FORGE_CHECK(state_->open.size() == 1);
  state_->Leave({});
}

// ---- values -------------------------------------------------------------------------------------

Builder::Builder(Kernel& k) : k_(k), state_(std::make_shared<State>(k)) {
  FORGE_CHECK(k.blocks.empty());
  state_->Enter(state_->NewBlocks(1), false);
}

uint16_t Builder::AddView(View v) {
  k_.views.push_back(std::move(v));
  return static_cast<uint16_t>(k_.views.size() - 1);
}

void Builder::set_precise(bool precise) { state_->precise = precise; }

Val Builder::Literal(Type t, double v) { return Bits(t, ToBits(t.elem, v)); }

std::optional<uint64_t> Builder::LiteralOf(Val v) const { return state_->LiteralOf(v); }

Val Builder::Bits(Type t, uint64_t bits) {
  const Inst i{.code = Code::kLiteral, .literal = Masked(t.elem, bits)};
  return {this, state_->Share(i, t, {}, 0)};
}

Val Builder::Scalar(const ir::Dim& d) {
  if (d.is_constant()) return Int(d.constant());
  auto at = std::find(k_.scalars.begin(), k_.scalars.end(), d);
  if (at == k_.scalars.end()) at = k_.scalars.insert(at, d);
  return ScalarAt(static_cast<size_t>(at - k_.scalars.begin()));
}

Val Builder::ScalarAt(size_t index) {
  return {this, state_->Share({.code = Code::kScalar, .literal = index}, kI32, {}, 0)};
}

Val Builder::Builtin(BuiltinKind which) {
  const int axis = static_cast<int>(which) - static_cast<int>(BuiltinKind::kLocalX);
  if (axis >= 0 && axis < 3 && k_.workgroup[axis] == 1) return Int(0);
  const Inst i{.code = Code::kBuiltin, .aux = static_cast<uint8_t>(which)};
  return {this, state_->Share(i, kI32, {}, 0)};
}

Val Builder::Emit(Code code, Type type, std::span<const Val> list, uint8_t aux) {
  FORGE_CHECK(Info(code).effect == Effect::kPure);
  absl::InlinedVector<Val, 4> args(list.begin(), list.end());
  const bool floats = !args.empty() && IsFloat(args[0].type().elem);
  if (state_->precise && floats && MayBePrecise(code)) aux |= kPrecise;
  auto literal = [&](Val v) { return state_->LiteralOf(v).has_value(); };
  // Literals stand right, so that rules look there only.
  if (Commutes(code) && literal(args[0]) && !literal(args[1])) std::swap(args[0], args[1]);
  if (Commutes(code) && !literal(args[1]) && args[1].id < args[0].id) std::swap(args[0], args[1]);
  if (Val v = State::Simplify(*this, {code, type, args, aux})) return v;
  const Inst i{.code = code, .aux = aux};
  return {this, state_->Share(i, type, args, state_->OutermostLevel(args))};
}

Val Builder::Pack(Type t, std::span<const Val> parts) {
  if (Val v = State::Simplify(*this, {Code::kPack, t, parts, 0})) return v;
  const absl::InlinedVector<Val, 4> all =
      parts.size() == 1 ? absl::InlinedVector<Val, 4>(t.lanes, parts[0])
                        : absl::InlinedVector<Val, 4>(parts.begin(), parts.end());
  const Inst i{.code = Code::kPack};
  return {this, state_->Share(i, t, all, state_->OutermostLevel(all))};
}

Val Builder::Extract(Val v, int component) {
  return Emit(Code::kExtract, v.type().Lanes(1), {v}, static_cast<uint8_t>(component));
}

Val Builder::Insert(Val v, Val part, int component) {
  return Emit(Code::kInsert, v.type(), {v, part}, static_cast<uint8_t>(component));
}

Val Builder::Dot4(DotKind kind, Val a, Val b, Val c) {
  return Emit(Code::kDot4, c.type(), {a, b, c}, static_cast<uint8_t>(kind));
}

Val Builder::Convert(Val v, DType to) { return Emit(Code::kConvert, v.type().With(to), {v}); }

// ---- memory, subgroups --------------------------------------------------------------------------

Val Builder::Load(uint16_t view, Val index) {
  const View& v = k_.views[view];
  const Inst i{.code = Code::kLoad, .view = view};
  if (v.space == Space::kGlobal && !v.writes)  // stays where it is asked for: it may be guarded
    return {this, state_->Share(i, v.elem, {&index, 1}, state_->level())};
  Inst load = i;
  load.args = state_->SetArgs({&index, 1});
  load.arg_count = 1;
  return {this, state_->Append(load, v.elem, state_->level())};
}

void Builder::Store(uint16_t view, Val index, Val value) {
  const Val args[] = {index, value};
  state_->AppendEffect(
      {.code = Code::kStore, .view = view, .args = state_->SetArgs(args), .arg_count = 2});
}

Val Builder::Atomic(AtomicKind kind, uint16_t view, Val index, Val value) {
  const Val args[] = {index, value};
  const Inst i{.code = Code::kAtomic,
               .aux = static_cast<uint8_t>(kind),
               .view = view,
               .args = state_->SetArgs(args),
               .arg_count = 2};
  return {this, state_->Append(i, value.type(), state_->level())};
}

void Builder::Barrier() { state_->AppendEffect({.code = Code::kBarrier}); }

Val Builder::Together(Code code, Type type, std::initializer_list<Val> args, uint8_t aux,
                      uint16_t view) {
  const Inst i{.code = code,
               .aux = aux,
               .view = view,
               .args = state_->SetArgs(std::span(args.begin(), args.size())),
               .arg_count = static_cast<uint32_t>(args.size())};
  return {this, state_->Append(i, type, state_->level())};
}

Val Builder::Shuffle(Val v, Val lane) { return Together(Code::kShuffle, v.type(), {v, lane}, 0); }
Val Builder::ShuffleXor(Val v, uint8_t mask) {
  return Together(Code::kShuffleXor, v.type(), {v}, mask);
}
Val Builder::SubgroupReduce(ReduceKind kind, Val v) {
  return Together(Code::kSubgroupReduce, v.type(), {v}, static_cast<uint8_t>(kind));
}
Val Builder::SubgroupScan(ReduceKind kind, Val v) {
  return Together(Code::kSubgroupScan, v.type(), {v}, static_cast<uint8_t>(kind));
}
Val Builder::Ballot(Val condition) {
  return Together(Code::kBallot, kU32.Lanes(4), {condition}, 0);
}

Val Builder::MatrixLoad(uint16_t view, const Type& matrix, Val index, Val stride,
                        bool column_major) {
  return Together(Code::kMatrixLoad, matrix, {index, stride}, column_major ? kColumnMajor : 0,
                  view);
}

void Builder::MatrixStore(uint16_t view, Val index, Val stride, Val matrix) {
  const Val args[] = {index, stride, matrix};
  state_->AppendEffect(
      {.code = Code::kMatrixStore, .view = view, .args = state_->SetArgs(args), .arg_count = 3});
}

Val Builder::MatrixMulAdd(Val a, Val b, Val c) {
  return Together(Code::kMatrixMulAdd, c.type(), {a, b, c}, 0);
}

}  // namespace forge::codegen
