// SPDX-License-Identifier: Apache-2.0
// What the steps of recurrent layers and their gradients share: how operands are read, and which
// units a thread has.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/kernels/recurrent/recurrent_cells.h"

namespace forge::cpu {

// Units whose weights lie together.
inline constexpr int64_t kPanel = kColumnGroup;

// The operands of an anchor, of which one may be the lengths of rows.
class LayerOperands {
 public:
  // lengths: the place of the lengths     errors: Unimplemented (permuted axes)
  static absl::StatusOr<LayerOperands> Of(const AnchorSite& site, size_t lengths) {
    const ir::Node& node = *site.task.anchor();
    LayerOperands out;
    out.at_.resize(std::max(node.in.size(), lengths + 1));
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i] == ir::kAbsent) continue;
      out.at_[i] = site.task.OperandOf(node.in[i]);
      if (!IsDense(site.operands[*out.at_[i]]))
        return Unimplemented("{} does not support permuted axes", node.op.name());
    }
    out.lengths_ = lengths;
    if (const auto& at = out.at_[lengths])
      out.wide_lengths_ = site.operands[*at].dtype == DType::kI64;
    return out;
  }
  // Null where the operand is absent.
  template <class T>
  const T* In(const AnchorCall::Arguments& a, size_t operand) const {
    const bool given = operand < at_.size() && at_[operand];
    return given ? reinterpret_cast<const T*>(a.operands[*at_[operand]]) : nullptr;
  }
  // The number of steps of a row; `all` where there are no lengths.
  int64_t LengthOf(const AnchorCall::Arguments& a, int64_t row, int64_t all) const {
    if (!at_[lengths_]) return all;
    return wide_lengths_ ? In<int64_t>(a, lengths_)[row] : In<int32_t>(a, lengths_)[row];
  }

 private:
  std::vector<std::optional<uint32_t>> at_;
  size_t lengths_ = 0;
  bool wide_lengths_ = false;  // of 64 bits
};

// The units of a thread, of all rows.
struct UnitRange {
  int64_t rows, units;
  int64_t first_panel, last_panel;

  int64_t first() const { return first_panel * kPanel; }
  int64_t last() const { return std::min(last_panel * kPanel, units); }
  // Copies them from [row, unit] to [row, unit]; `from` is null for zeros.
  template <class T>
  void Copy(const T* from, T* to) const {
    for (int64_t row = 0; row < rows && first() < last(); ++row) {
      T* into = to + row * units;
      if (from != nullptr)
        std::copy(from + row * units + first(), from + row * units + last(), into + first());
      else
        std::fill(into + first(), into + last(), T(0));
    }
  }
};

}  // namespace forge::cpu
