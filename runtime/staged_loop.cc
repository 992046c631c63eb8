// SPDX-License-Identifier: Apache-2.0
#include "runtime/staged_loop.h"

#include <algorithm>

namespace forge {
namespace {

using ir::HostValue;

absl::StatusOr<int64_t> ScalarOf(const HostValue& v, std::string_view what) {
  if (v.elements() != 1)
    return InvalidArgument("{} has {} elements instead of one", what, v.elements());
  return v.i64(0);
}

HostValue Scalar(DType dtype, int64_t value) {
  HostValue v = *HostValue::Zeros(dtype, std::vector<int64_t>{});
  v.SetI64(0, value);
  return v;
}

// No rows, of what is known of a row.
absl::StatusOr<HostValue> NoRows(const ir::Type& type) {
  std::vector<int64_t> shape = {0};
  if (type.is_constant())
    for (const ir::Dim& d : type.shape()) shape.push_back(d.constant());
  return HostValue::Zeros(type.dtype(), shape);
}

// The rows of all steps, one after the other.
absl::StatusOr<HostValue> Stacked(std::span<const HostValue> rows) {
  if (!rows[0].is_tensor())
    return InvalidArgument("the steps of a loop give rows of {}", rows[0].type().ToText());
  std::vector<int64_t> shape = {static_cast<int64_t>(rows.size())};
  shape.insert(shape.end(), rows[0].shape().begin(), rows[0].shape().end());
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(rows[0].dtype(), shape));
  if (BitWidth(out.dtype()) < 8)
    return Unimplemented("rows of {} cannot be stacked", Name(out.dtype()));
  std::span<uint8_t> to = out.mutable_bytes();
  for (const HostValue& row : rows) {
    if (row.dtype() != out.dtype() || !std::ranges::equal(row.shape(), rows[0].shape()))
      return InvalidArgument("the steps of a loop give rows of {} and {}", rows[0].type().ToText(),
                             row.type().ToText());
    std::ranges::copy(row.bytes(), to.begin());
    to = to.subspan(row.bytes().size());
  }
  return out;
}

}  // namespace

struct StagedLoop::State {
  HostValue condition = Scalar(DType::kBool, 1);
  std::vector<HostValue> carried;
  std::span<const HostValue* const> captures;
  std::vector<std::vector<HostValue>> rows;
};

absl::Status StagedLoop::Step(State& state, int64_t step) {
  const HostValue number = Scalar(DType::kI64, step);
  std::vector<const HostValue*> in = {&number, &state.condition};
  for (const HostValue& v : state.carried) in.push_back(&v);
  in.insert(in.end(), state.captures.begin(), state.captures.end());
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> out, body_->Run(in));
  state.condition = std::move(out[0]);
  for (size_t i = 0; i < form_.carried; ++i) state.carried[i] = std::move(out[i + 1]);
  for (size_t i = 0; i < state.rows.size(); ++i)
    state.rows[i].push_back(std::move(out[i + 1 + form_.carried]));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostValue>> StagedLoop::Run(std::span<const HostValue* const> operands,
                                                       uint64_t most_steps,
                                                       const std::atomic<bool>* cancel) {
  State state;
  state.rows.resize(form_.rows.size());
  size_t at = 0;
  int64_t steps = INT64_MAX;
  if (form_.has_steps) {
    FORGE_ASSIGN_OR_RETURN(steps, ScalarOf(*operands[at++], "the number of steps"));
  }
  if (form_.has_condition) state.condition = *operands[at++];
  for (size_t i = 0; i < form_.carried; ++i) state.carried.push_back(*operands[at++]);
  state.captures = operands.subspan(at);
  int64_t step = 0;
  for (; step < steps; ++step) {
    FORGE_ASSIGN_OR_RETURN(const int64_t go_on,
                           ScalarOf(state.condition, "the condition of a loop"));
    if (go_on == 0) break;
    if (static_cast<uint64_t>(step) >= most_steps)
      return ResourceExhausted("a loop does not end within {} steps", most_steps);
    if (cancel->load()) return Aborted("cancelled");
    FORGE_RETURN_IF_ERROR(Step(state, step));
  }
  if (form_.steps >= 0 && step != form_.steps)
    return InvalidArgument("a loop takes {} steps, not {}", step, form_.steps);
  for (size_t i = 0; i < state.rows.size(); ++i) {
    FORGE_ASSIGN_OR_RETURN(state.carried.emplace_back(),
                           state.rows[i].empty() ? NoRows(form_.rows[i]) : Stacked(state.rows[i]));
  }
  return std::move(state.carried);
}

}  // namespace forge
