// SPDX-License-Identifier: Apache-2.0
// The loops of one family of rows: of f32 for each instruction set, and of the other types.
// Compiled once for each family, see cmake/Rows.cmake.
#include "cpu_runtime/tape/scalar_loops.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/tape/scalar_loops_family.h"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "cpu_runtime/lanes-inl.h"
#include "hwy/highway.h"
#include "ir/ops/elementwise/row_parts.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {

// Rows compiled for this instruction set: code of forge::ir could not be inlined here.
namespace rows {
using namespace forge::ir;  // NOLINT: what rows expect
#include FORGE_FAMILY_ROWS
}  // namespace rows

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

template <class Row, int kOperand, class D>
HWY_INLINE auto Load(D d, const void* const* in, size_t i) {
  if constexpr (ir::IsTruth(Row::kInfo, kOperand))
    return LoadTruth(d, static_cast<const uint8_t*>(in[kOperand]) + i);
  else
    return Lanes<D>(hn::LoadU(d, static_cast<const float*>(in[kOperand]) + i));
}

template <class Row, class D>
HWY_INLINE auto Apply(const Row& row, D d, const void* const* in, size_t i) {
  const auto x = Load<Row, 0>(d, in, i);
  if constexpr (Row::kInfo.arity() == 1)
    return ApplyRow(row, x);
  else if constexpr (Row::kInfo.arity() == 2)
    return ApplyRow(row, x, Load<Row, 1>(d, in, i));
  else
    return ApplyRow(row, x, Load<Row, 1>(d, in, i), Load<Row, 2>(d, in, i));
}

template <class Row, class D>
HWY_INLINE void Step(const Row& row, D d, const void* const* in, void* out, size_t i) {
  const auto y = Apply(row, d, in, i);
  if constexpr (Row::kInfo.result == ir::ResultType::kBool)
    StoreTruth(y, d, static_cast<uint8_t*>(out) + i);
  else
    hn::StoreU(y.v, d, static_cast<float*>(out) + i);
}

// Inlined by force: calls of exp and the like would reload their constants for each vector.
template <class Op>
HWY_FLATTEN void Loop(const void* self, const void* const* in, void* out, size_t n) {
  const auto row = rows::RowAt<Op>(self);
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> single;
  const size_t lanes = hn::Lanes(whole);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) Step(row, whole, in, out, i);
  for (; i < n; ++i) Step(row, single, in, out, i);
}

template <class Op>
constexpr ScalarLoop VectorLoop() {
  constexpr const ir::ScalarInfo& kInfo = rows::Row<Op>::kInfo;
  if constexpr (ir::Converts(kInfo) || !ir::Takes(kInfo, DType::kF32))
    return nullptr;
  else
    return &Loop<Op>;
}

static ScalarLoop Find(size_t row) {
  static constexpr ScalarLoop kLoops[] = {
#define FORGE_ROW(T, ...) VectorLoop<ir::T>(),
#include FORGE_FAMILY_LIST
  };
  return kLoops[row];
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::ir::rows {
#include FORGE_FAMILY_ROWS
}  // namespace forge::ir::rows
#include "cpu_runtime/tape/plain_loops.h"

namespace forge::cpu {
namespace {
enum RowIndex : size_t {
#define FORGE_ROW(T, ...) kIndexOf##T,
#include FORGE_FAMILY_LIST
};
HWY_EXPORT(Find);
}  // namespace

#define FORGE_ROW(T, ...)                                                      \
  ScalarLoop ScalarLoopOf(const ir::T*, DType domain) {                        \
    if (domain == DType::kF32) return HWY_DYNAMIC_DISPATCH(Find)(kIndexOf##T); \
    return PlainLoop<ir::T>(domain);                                           \
  }
#include FORGE_FAMILY_LIST

}  // namespace forge::cpu
#endif
