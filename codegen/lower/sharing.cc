// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower/sharing.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "codegen/kernel/scalar.h"

namespace forge::codegen {

// What a shared kernel has where a literal was: factor * a scalar + offset, modulo 2^32. A factor
// of 0: a literal still.
struct Affine {
  uint32_t factor = 0, offset = 0;
  uint32_t scalar = 0;  // counted from the first that was a literal
};

namespace {

uint64_t Mix(uint64_t h, std::initializer_list<uint64_t> values) {
  for (const uint64_t v : values) h = HashMix(h, v);
  return h;
}

uint64_t HashType(uint64_t seed, const Type& t) {
  return Mix(seed, {static_cast<uint64_t>(t.elem), t.lanes, static_cast<uint64_t>(t.use),
                    static_cast<uint64_t>(t.held_by), t.rows, t.cols});
}

// Of what a kernel is to its device: subgroups, memory, workgroup, how many scalars, views.
uint64_t HashInterface(const Kernel& k) {
  uint64_t h = Mix(k.subgroup, {k.scalars.size(), k.workgroup[0], k.workgroup[1], k.workgroup[2]});
  if (k.vulkan_memory) h = Mix(h, {1});
  if (k.approximate) h = Mix(h, {2});
  if (ReadsStepValues(k)) h = Mix(h, {2});
  for (const View& v : k.views)
    h = Mix(HashType(h, v.elem),
            {static_cast<uint64_t>(v.space), static_cast<uint64_t>(v.operand), v.extent, v.reads,
             v.writes, v.aliased, static_cast<uint64_t>(v.parts), v.swizzled});
  return h;
}

bool IsNumber(const Type& t) {
  return t.use == MatrixUse::kNone &&
         (t.elem == DType::kI32 || t.elem == DType::kU32 || t.elem == DType::kF32);
}

// A kernel taken apart: what it does, and with which numbers.
struct Structure {
  uint64_t hash = 0;              // of all but the numbers and the name
  std::vector<uint32_t> places;   // where literals that may as well be scalars are used: indices of
                                  // Kernel::operands
  std::vector<uint32_t> numbers;  // their bits
};

class StructureReader {
 public:
  explicit StructureReader(const Kernel& k)
      : k_(k), literals_(k.values.size()), order_(k.values.size()) {}
  Structure Read() {
    out_.hash = HashInterface(k_);
    for (const Block& b : k_.blocks)
      for (const Inst& i : b.insts)
        if (i.code == Code::kLiteral) literals_[i.result] = &i;
    for (const Block& b : k_.blocks) {
      Add({b.arguments.size()});
      for (const Id a : b.arguments) Define(a);
      for (const Inst& i : b.insts)
        if (i.code != Code::kLiteral) ReadInst(i);
    }
    return std::move(out_);
  }

 private:
  void Add(std::initializer_list<uint64_t> words) { out_.hash = Mix(out_.hash, words); }
  void Add(const Type& t) { out_.hash = HashType(out_.hash, t); }
  void Define(Id v) {
    order_[v] = ++count_;
    Add(k_.values[v].type);
  }
  void ReadInst(const Inst& i) {
    Add({static_cast<uint64_t>(i.code), i.aux, i.view, i.arg_count, i.result_count, i.block,
         i.block_count, i.literal});
    for (uint32_t n = 0; n < i.arg_count; ++n) ReadOperand(i, i.args + n);
    for (uint32_t n = 0; n < i.result_count; ++n) Define(i.result + n);
  }
  void ReadOperand(const Inst& user, uint32_t place) {
    const Id v = k_.operands[place];
    const Inst* literal = literals_[v];
    const Type& type = k_.values[v].type;
    Add({literal != nullptr});
    if (literal == nullptr) return Add({order_[v]});
    Add(type);
    // What a subgroup exchanges with whom is to be known when it is compiled.
    if (!IsNumber(type) || Info(user.code).effect == Effect::kConvergent)
      return Add({literal->literal});
    out_.places.push_back(place);
    out_.numbers.push_back(static_cast<uint32_t>(literal->literal));
  }

  const Kernel& k_;
  std::vector<const Inst*> literals_;  // by value
  std::vector<uint64_t> order_;        // by value: in which they are made
  uint64_t count_ = 0;
  Structure out_;
};

using Numbers = std::vector<uint32_t>;

// Strides and what lies a few elements further on; larger offsets fit by chance.
constexpr int64_t kFarthestOffset = 64;

// How the numbers at place `to` follow from those at place `from`, in all kernels.
std::optional<Affine> Fit(std::span<const Numbers> all, size_t from, size_t to, bool integers) {
  const auto value = [](const Numbers& n, size_t at) {
    return int64_t{static_cast<int32_t>(n[at])};
  };
  Affine number{.factor = 1};
  const Numbers& first = all[0];
  const auto other = std::find_if(all.begin(), all.end(),
                                  [&](const Numbers& n) { return n[from] != first[from]; });
  if (integers && other != all.end()) {
    const int64_t run = value(*other, from) - value(first, from);
    const int64_t rise = value(*other, to) - value(first, to);
    if (rise % run != 0) return std::nullopt;
    number.factor = static_cast<uint32_t>(rise / run);
    number.offset = first[to] - number.factor * first[from];
    if (std::abs(int64_t{static_cast<int32_t>(number.offset)}) > kFarthestOffset)
      return std::nullopt;
  }
  for (const Numbers& n : all)
    if (number.factor * n[from] + number.offset != n[to]) return std::nullopt;
  return number;
}

// Puts the instructions of `front`, which has no control, before those of `k`.
void Prepend(Kernel& k, const Kernel& front) {
  const auto first = static_cast<Id>(k.values.size());
  std::vector<Inst> insts = front.blocks[0].insts;
  for (Inst& i : insts) {
    i.args = static_cast<uint32_t>(i.args + k.operands.size());
    i.result += first;
  }
  for (const Id a : front.operands) k.operands.push_back(first + a);
  k.values.insert(k.values.end(), front.values.begin(), front.values.end());
  std::vector<Inst>& body = k.blocks[0].insts;
  body.insert(body.begin(), insts.begin(), insts.end());
}

}  // namespace

// Kernels of one structure, made one when the last of them has come.
class KernelSharing::Form {
 public:
  Form(const Kernel& kernel, const Structure& structure)
      : kernel_(kernel), own_scalars_(kernel.scalars.size()), places_(structure.places) {
    members_.push_back(structure.numbers);
    Relate(own_scalars_);
  }
  std::span<const Numbers> members() const { return members_; }
  // Whether such a kernel is one of the form, which may grow for it until it is closed.
  bool Takes(const Numbers& numbers, size_t max_scalars) {
    if (closed_) return ScalarsFor(numbers).has_value();
    // Also one that fits as it is: the form that is to come must fit it too.
    const bool known = std::find(members_.begin(), members_.end(), numbers) != members_.end();
    return known || Grow({&numbers, 1}, max_scalars);
  }

  // Takes all of `more` or none.
  bool Grow(std::span<const Numbers> more, size_t max_scalars) {
    const size_t before = members_.size();
    members_.insert(members_.end(), more.begin(), more.end());
    if (Relate(max_scalars)) return true;
    members_.resize(before);
    Relate(max_scalars);
    return false;
  }

  // Makes the one kernel.
  void Close() {
    if (closed_) return;
    closed_ = true;
    Kernel front;
    Builder b(front);
    for (size_t s = 0; s < scalars_.size(); ++s) b.ScalarAt(own_scalars_ + s);
    const auto first = static_cast<Id>(kernel_.values.size());
    for (size_t p = 0; p < places_.size(); ++p) {
      const Affine& n = numbers_[p];
      if (n.factor == 0) continue;
      const Val scalar = b.ScalarAt(own_scalars_ + n.scalar);
      const Val product = b.Emit(Code::kMul, kI32, {scalar, b.Bits(kI32, n.factor)});
      const Val number = b.Emit(Code::kAdd, kI32, {product, b.Bits(kI32, n.offset)});
      const Type t = TypeAt(p);
      kernel_.operands[places_[p]] = first + splat(bitcast(number, t.elem), t.lanes).id;
    }
    Prepend(kernel_, front);
  }

  // Puts the one kernel in the place of one whose numbers the form has taken.
  void Replace(Kernel& kernel, const Numbers& numbers) const {
    if (scalars_.empty()) return;
    Kernel shared = kernel_;
    shared.grid = kernel.grid;
    shared.scalars = kernel.scalars;
    const std::optional<Numbers> scalars = ScalarsFor(numbers);
    FORGE_CHECK(scalars.has_value());
    for (const uint32_t s : *scalars) shared.scalars.emplace_back(static_cast<int32_t>(s));
    kernel = std::move(shared);
  }

 private:
  const Type& TypeAt(size_t place) const {
    return kernel_.values[kernel_.operands[places_[place]]].type;
  }

  std::optional<Numbers> ScalarsFor(const Numbers& numbers) const {
    Numbers scalars;
    for (const uint32_t place : scalars_) scalars.push_back(numbers[place]);
    for (size_t p = 0; p < places_.size(); ++p) {
      const Affine& n = numbers_[p];
      const uint32_t there = n.factor == 0 ? n.offset : n.factor * scalars[n.scalar] + n.offset;
      if (there != numbers[p]) return std::nullopt;
    }
    return scalars;
  }

  Affine NumberAt(size_t place) {
    const uint32_t first = members_[0][place];
    if (std::all_of(members_.begin(), members_.end(),
                    [&](const Numbers& n) { return n[place] == first; }))
      return {.factor = 0, .offset = first};
    const bool integer = TypeAt(place).elem != DType::kF32;
    for (uint32_t s = 0; s < scalars_.size(); ++s) {
      if ((TypeAt(scalars_[s]).elem != DType::kF32) != integer) continue;
      if (auto n = Fit(members_, scalars_[s], place, integer)) {
        n->scalar = s;
        return *n;
      }
    }
    scalars_.push_back(static_cast<uint32_t>(place));
    return {.factor = 1, .offset = 0, .scalar = static_cast<uint32_t>(scalars_.size() - 1)};
  }

  // False, and nothing to be relied on, where more than `max_scalars` would be needed.
  bool Relate(size_t max_scalars) {
    numbers_.clear();
    scalars_.clear();
    for (size_t p = 0; p < places_.size(); ++p) {
      numbers_.push_back(NumberAt(p));
      if (own_scalars_ + scalars_.size() > max_scalars && !scalars_.empty()) return false;
    }
    return true;
  }

  Kernel kernel_;
  size_t own_scalars_;
  std::vector<uint32_t> places_;
  bool closed_ = false;
  std::vector<Numbers> members_;
  std::vector<Affine> numbers_;    // by place
  std::vector<uint32_t> scalars_;  // the place whose number each is
};

uint64_t Hash(const Kernel& k) {
  const Structure s = StructureReader(k).Read();
  uint64_t h = s.hash;
  for (const uint32_t n : s.numbers) h = HashMix(h, n);
  return h;
}

void KernelSharing::Share(std::span<Kernel* const> kernels) {
  std::vector<std::pair<Structure, std::shared_ptr<Form>>> taken;
  for (const Kernel* k : kernels) {
    Structure s = StructureReader(*k).Read();
    std::vector<std::shared_ptr<Form>>& forms = forms_[HashText(k->name, s.hash)];
    std::shared_ptr<Form> form;
    for (size_t f = 0; f < forms.size() && !form; ++f)
      if (forms[f]->Takes(s.numbers, max_scalars_)) form = forms[f];
    if (!form) {
      form = std::make_shared<Form>(*k, s);
      // What differed from an earlier kernel will differ again.
      if (!forms.empty()) form->Grow(forms.back()->members(), max_scalars_);
      forms.push_back(form);
    }
    taken.emplace_back(std::move(s), form);
  }
  for (auto& [structure, form] : taken) form->Close();
  for (size_t i = 0; i < kernels.size(); ++i)
    taken[i].second->Replace(*kernels[i], taken[i].first.numbers);
}

}  // namespace forge::codegen
