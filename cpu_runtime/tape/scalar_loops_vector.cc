// SPDX-License-Identifier: Apache-2.0
// The f32 loops of all element-wise entries, for each instruction set.
#include "cpu_runtime/tape/scalar_loops.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/tape/scalar_loops_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "cpu_runtime/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {

// Entries compiled for this instruction set: code of forge::ir could not be inlined here.
namespace entries {
using namespace forge::ir;  // NOLINT: what entries expect, see their file
#include "ir/ops/elementwise/elementwise_entries.inc"
}  // namespace entries

// Bytes 0 and 1 as a truth value, and back.
template <class D>
HWY_INLINE TruthLanes<D> LoadTruth(D d, const uint8_t* p) {
  const hn::Rebind<uint8_t, D> bytes;
  const hn::RebindToSigned<D> words;
  const auto wide = hn::PromoteTo(words, hn::LoadU(bytes, p));
  return {hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(words, hn::Ne(wide, hn::Zero(words)))))};
}
template <class D>
HWY_INLINE void StoreTruth(TruthLanes<D> t, D d, uint8_t* p) {
  const hn::Rebind<uint8_t, D> bytes;
  const hn::RebindToSigned<D> words;
  const auto ones = hn::IfThenElseZero(t.m, hn::BitCast(d, hn::Set(words, 1)));
  hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(words, ones)), bytes, p);
}

template <class Op, int kOperand, class D>
HWY_INLINE auto Load(D d, const void* const* in, size_t i) {
  if constexpr (IsTruth<Op>(kOperand))
    return LoadTruth(d, static_cast<const uint8_t*>(in[kOperand]) + i);
  else
    return Lanes<D>(hn::LoadU(d, static_cast<const float*>(in[kOperand]) + i));
}

template <class Op, class D>
HWY_INLINE auto Apply(const Op& op, D d, const void* const* in, size_t i) {
  if constexpr (Op::kInfo.arity() == 1)
    return op.scalar(Load<Op, 0>(d, in, i));
  else if constexpr (Op::kInfo.arity() == 2)
    return op.scalar(Load<Op, 0>(d, in, i), Load<Op, 1>(d, in, i));
  else
    return op.scalar(Load<Op, 0>(d, in, i), Load<Op, 1>(d, in, i), Load<Op, 2>(d, in, i));
}

template <class Op, class D>
HWY_INLINE void Step(const Op& op, D d, const void* const* in, void* out, size_t i) {
  const auto y = Apply(op, d, in, i);
  if constexpr (Op::kInfo.result == ir::ResultType::kBool)
    StoreTruth(y, d, static_cast<uint8_t*>(out) + i);
  else
    hn::StoreU(y.v, d, static_cast<float*>(out) + i);
}

// Inlined by force: calls of exp and the like would reload their constants for each vector.
template <class Op>
HWY_FLATTEN void Loop(const void* self, const void* const* in, void* out, size_t n) {
  Op op{};
  if constexpr (!std::is_empty_v<Op>) op = *static_cast<const Op*>(self);
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> single;
  const size_t lanes = hn::Lanes(whole);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) Step(op, whole, in, out, i);
  for (; i < n; ++i) Step(op, single, in, out, i);
}

struct Loops {
  using Function = ScalarLoop;
  template <class Op>
  static constexpr Function Make() {
    if constexpr (IsCast<Op>() || !TakesFloats<Op>())
      return nullptr;
    else
      return &Loop<Op>;
  }
};

ScalarLoop Find(int index) {
  static constexpr auto kTable = ir::MakeScalarTable<Loops>(entries::ScalarEntries{});
  return kTable[static_cast<size_t>(index)];
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::cpu {
HWY_EXPORT(Find);
ScalarLoop VectorLoopF32(int index) { return HWY_DYNAMIC_DISPATCH(Find)(index); }
}  // namespace forge::cpu
#endif
