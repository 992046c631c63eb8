// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codegen/kernel/analysis.h"
#include "codegen/kernel/builder_state.h"
#include "codegen/kernel/literal.h"

namespace forge::codegen {
namespace {

constexpr CodeInfo kInfos[] = {
#define X(name, arity, effect, rule, of) \
  {#name, arity, Effect::effect, TypeRule::rule, ElementClass::of},
    FORGE_KERNEL_OPS(X)
#undef X
};

bool Commutes(Code c) {
  return IsOneOf(c, {Code::kAdd, Code::kMul, Code::kMin, Code::kMax, Code::kAnd, Code::kOr,
                     Code::kXor, Code::kEq});
}

// Has a precise form. Fma stands without the flag: it is one rounding or two on every device.
bool MayBePrecise(Code c) {
  return IsOneOf(
      c, {Code::kAdd, Code::kSub, Code::kMul, Code::kDiv, Code::kFma, Code::kMin, Code::kMax});
}

}  // namespace

const CodeInfo& Info(Code code) { return kInfos[static_cast<int>(code)]; }

Type Val::type() const { return b->kernel().TypeOf(id); }
Uniform Val::uniform() const { return b->kernel().values[id].uniform; }

// ---- state --------------------------------------------------------------------------------------

Id Builder::State::NewValue(const Type& type, uint32_t level) {
  k.values.push_back({type, Uniform::kInvocation});
  defs.push_back({level, open[level].block});
  return static_cast<Id>(k.values.size()) - 1;
}

const Inst* Builder::State::DefOf(Val v) const {
  const Def& d = defs[v.id];
  return d.inst == UINT32_MAX ? nullptr : &k.blocks[d.block].insts[d.inst];
}

void Builder::State::SetArgs(Inst& i, std::span<const Val> args) {
  i.args = static_cast<uint32_t>(k.operands.size());
  i.arg_count = static_cast<uint32_t>(args.size());
  for (Val a : args) k.operands.push_back(a.id);
}

Id Builder::State::Append(Inst i, const Type& type, std::span<const Val> args, uint32_t level) {
  const BlockId block = open[level].block;
  SetArgs(i, args);
  i.result = NewValue(type, level);
  defs[i.result].inst = static_cast<uint32_t>(k.blocks[block].insts.size());
  k.blocks[block].insts.push_back(i);
  PropagateUniform(k, i);
  return i.result;
}

Vals Builder::State::Close(const Inst& i, std::span<const Val> args, std::span<const Val> like) {
  std::vector<Type> types;
  for (const Val v : like) types.push_back(v.type());
  return CloseAs(i, args, types);
}

Vals Builder::State::CloseAs(Inst i, std::span<const Val> args, std::span<const Type> results) {
  SetArgs(i, args);
  i.result = static_cast<Id>(k.values.size());
  i.result_count = static_cast<uint16_t>(results.size());
  Vals out;
  for (const Type& t : results) out.push_back({&b, NewValue(t, level())});
  k.blocks[open.back().block].insts.push_back(i);
  PropagateUniform(k, i);
  return out;
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
  const Id id = Append(i, type, args, level);
  open[level].seen.emplace(std::move(key), id);
  return id;
}

void Builder::Finish() {
  FORGE_CHECK(state_->open.size() == 1);
  state_->Close({.code = Code::kYield}, {});
  state_->open.pop_back();
}

// ---- values -------------------------------------------------------------------------------------

Builder::Builder(Kernel& k) : k_(k), state_(std::make_shared<State>(*this)) {
  FORGE_CHECK(k.blocks.empty());
  state_->open.push_back({state_->NewBlocks(1), false, {}});
}

uint16_t Builder::AddView(View v) {
  k_.views.push_back(std::move(v));
  return static_cast<uint16_t>(k_.views.size() - 1);
}

void Builder::set_precise(bool precise) { state_->precise = precise; }

Val Builder::Literal(Type t, double v) { return Bits(t, ToBits(t.elem, v)); }

std::optional<uint64_t> Builder::LiteralOf(Val v) const {
  const Inst* i = state_->DefOf(v);
  return i && i->code == Code::kLiteral ? std::optional(i->literal) : std::nullopt;
}

Val Builder::Bits(Type t, uint64_t bits) {
  return Add({.code = Code::kLiteral, .literal = Masked(t.elem, bits)}, t, {});
}

Val Builder::Scalar(const ir::Dim& d) {
  if (d.is_constant()) return Int(d.constant());
  auto at = std::find(k_.scalars.begin(), k_.scalars.end(), d);
  if (at == k_.scalars.end()) at = k_.scalars.insert(at, d);
  return ScalarAt(static_cast<size_t>(at - k_.scalars.begin()));
}

Val Builder::Builtin(BuiltinKind which) {
  const int axis = static_cast<int>(which) - static_cast<int>(BuiltinKind::kLocalX);
  if (axis >= 0 && axis < 3 && k_.workgroup[axis] == 1) return Int(0);
  return Add({.code = Code::kBuiltin, .aux = static_cast<uint8_t>(which)}, kI32, {});
}

Val Builder::Add(const Inst& i, const Type& type, absl::Span<const Val> args) {
  State& s = *state_;
  if (Info(i.code).effect == Effect::kPure) return s.AddPure(i, type, args);
  if (IsSilent(i.code)) {
    s.Close(i, args);
    return {};
  }
  if (i.code == Code::kLoad) {
    const View& v = k_.views[i.view];
    if (v.space == Space::kGlobal && !v.writes)  // stays where it is asked for: it may be guarded
      return {this, s.Share(i, type, args, s.level())};
  }
  return {this, s.Append(i, type, args, s.level())};
}

Val Builder::State::AddPure(const Inst& i, const Type& type, std::span<const Val> list) {
  absl::InlinedVector<Val, 4> args(list.begin(), list.end());
  auto literal = [&](Val v) { return b.LiteralOf(v).has_value(); };
  // Literals stand right, so that rules look there only.
  if (Commutes(i.code) && literal(args[0]) && !literal(args[1])) std::swap(args[0], args[1]);
  if (Commutes(i.code) && !literal(args[1]) && args[1].id < args[0].id) std::swap(args[0], args[1]);
  if (Val v = Simplify(i, type, args)) return v;
  if (i.code == Code::kPack && args.size() == 1) args.assign(type.lanes, list[0]);
  return {&b, Share(i, type, args, args.empty() ? 0 : OutermostLevel(args))};
}

Val Builder::Emit(Code code, Type type, absl::Span<const Val> args, uint8_t aux) {
  FORGE_CHECK(Info(code).effect == Effect::kPure);
  const bool floats = !args.empty() && IsFloat(args[0].type().elem);
  if (state_->precise && floats && MayBePrecise(code)) aux |= kPrecise;
  return Add({.code = code, .aux = aux}, type, args);
}

}  // namespace forge::codegen
