// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower/vulkan_rules.h"

#include <algorithm>

#include "codegen/kernel/scalar.h"
#include "codegen/lower/semantic_rules.h"

namespace forge::codegen {
namespace {

// The view of a part, which Lower() has added.
uint16_t ViewOfPart(const std::vector<View>& views, uint16_t view, int part) {
  if (part == 0) return view;
  const View& whole = views[view];
  const auto at = std::find_if(views.begin(), views.end(), [&](const View& v) {
    return v.space == Space::kGlobal && v.operand == whole.operand + part && v.elem == whole.elem;
  });
  return static_cast<uint16_t>(at - views.begin());
}

// Loads, stores and atomics of f32 in a view of u32. What is there is first taken for 0: right at
// the first touch of a sum, and otherwise told by the exchange that fails.
Val Exchangeable(const VulkanRules& rules, const Inst& i, std::span<const Val> x) {
  Builder& b = rules.b;
  const auto add = [&](Code code, const Vals& args) {
    return rules.Add({.code = code, .aux = i.aux, .view = i.view}, kU32, args);
  };
  if (i.code == Code::kLoad) return bitcast(add(i.code, {x[0]}), DType::kF32);
  if (i.code == Code::kStore) {
    add(i.code, {x[0], bitcast(x[1], DType::kU32)});
    return x[0];
  }
  const auto kind = static_cast<AtomicKind>(i.aux);
  const auto combined = [&](Val old) {
    if (kind == AtomicKind::kAdd) return b.Emit(Code::kAdd, kF32, {old, x[1]}, kPrecise);
    const Inst extreme{.code = kind == AtomicKind::kMin ? Code::kMin : Code::kMax, .aux = kPrecise};
    return SemanticRule(rules.caps, extreme, kF32, std::array{old, x[1]});
  };
  if (kind == AtomicKind::kExchange)
    return bitcast(add(i.code, {x[0], bitcast(x[1], DType::kU32)}), DType::kF32);
  const Vals done = b.While(
      {b.Bits(kU32, 0), b.Bits(kBool, 0)}, [](const Vals& v) { return ~v[1]; },
      [&](const Vals& v) {
        const Val next = bitcast(combined(bitcast(v[0], DType::kF32)), DType::kU32);
        const Val old = add(Code::kCompareExchange, {x[0], v[0], next});
        return Vals{old, old == v[0]};
      });
  return bitcast(done[0], DType::kF32);
}

}  // namespace

Val VulkanRules::Add(const Inst& i, const Type& type, std::span<const Val> x) const {
  const bool at_element =
      IsOneOf(i.code, {Code::kLoad, Code::kStore, Code::kAtomic, Code::kCompareExchange});
  const int parts = at_element ? b.kernel().views[i.view].parts : 1;
  return parts == 1 ? b.Add(i, type, x) : AddAmong({0, parts}, i, type, x);
}

// Halves what is left, so that a load takes few tests.
Val VulkanRules::AddAmong(PartRange parts, const Inst& i, const Type& type,
                          std::span<const Val> x) const {
  const int64_t each = b.kernel().views[i.view].extent;
  if (parts.end - parts.begin == 1) {
    Inst one = i;
    one.view = ViewOfPart(b.kernel().views, i.view, parts.begin);
    Vals args(x.begin(), x.end());
    args[0] = args[0] - b.Int(parts.begin * each);
    return b.Add(one, type, args);
  }
  const int middle = (parts.begin + parts.end) / 2;
  const auto among = [&](PartRange some) {
    const Val v = AddAmong(some, i, type, x);
    return v ? Vals{v} : Vals{};
  };
  const Vals out = b.If(
      x[0] < b.Int(middle * each), [&] { return among({parts.begin, middle}); },
      [&] { return among({middle, parts.end}); });
  return out.empty() ? Val{} : out[0];
}

void MakeExchangeable(const Kernel& k, const Caps& caps, std::vector<View>& views) {
  for (const Block& block : k.blocks)
    for (const Inst& i : block.insts) {
      const bool native = i.aux == static_cast<uint8_t>(AtomicKind::kAdd) && caps.f32_atomic_add;
      if (i.code == Code::kAtomic && k.TypeOf(i.result) == kF32 && !native)
        views[i.view].elem = kU32;
    }
}

Val VulkanRules::Apply(const Inst& i, const Type& type, std::span<const Val> x) const {
  if (!IsOneOf(i.code, {Code::kLoad, Code::kStore, Code::kAtomic})) return {};
  const Type& stored = i.code == Code::kStore ? x[1].type() : type;
  const bool exchanged = b.kernel().views[i.view].elem == kU32 && stored == kF32;
  return exchanged ? Exchangeable(*this, i, x) : Val{};
}

}  // namespace forge::codegen
