// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/recurrent/layer.h"

#include "absl/functional/function_ref.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"

namespace forge::ir {
namespace {

enum LayerOperand : size_t { kX, kWeightX, kWeightH, kBiasX, kBiasH, kRowLengths };

// Part `i` of a tensor along its first axis, which is dropped.
Value Part(Value v, int64_t i) {
  if (!v) return v;
  const Dims& shape = v.type().shape();
  const Value part = (*v.fn)(Slice{.begin = {i}, .end = {i + 1}, .axes = {0}}, {v});
  return (*v.fn)(Reshape{Dims(shape.begin() + 1, shape.end())}, {part});
}

Value Joined(Function& f, int64_t axis, const Values& parts) {
  return parts.size() == 1 ? parts[0] : f.Add(Concat{.axis = axis}, parts)[0];
}

// The operands of the steps of direction `d`.
Values StepOperands(Function& f, ValueSpan in, int64_t d) {
  const auto of = [&](size_t i) { return i < in.size() ? Widened(Part(in[i], d)) : Value{}; };
  const Value weight = of(kWeightX);
  Value gates = f(MatMul{.transpose_b = true}, {Widened(in[kX]), weight});
  if (const Value bias = of(kBiasX)) gates = gates + bias;
  Values out{gates, f(Transpose{.permutation = {1, 0}}, {of(kWeightH)}), of(kBiasH),
             in.size() > kRowLengths ? in[kRowLengths] : Value{}};
  for (size_t i = kRowLengths + 1; i < in.size(); ++i) out.push_back(of(i));
  return out;
}

}  // namespace

Values RunLayer(Function& f, Direction direction, ValueSpan in,
                absl::FunctionRef<AnyOp(bool reverse)> steps) {
  const int64_t directions = direction == Direction::kBidirectional ? 2 : 1;
  if (const Dim& given = in[kWeightX].type().shape()[0]; !Unify(given, directions).ok()) {
    f.Fail(InvalidArgument("weight_x has weights of {} directions, not {}", given.ToText(),
                           directions));
    return Values(1);
  }
  std::vector<Values> results;  // by result, of each direction
  for (int64_t d = 0; d < directions; ++d) {
    const Values operands = StepOperands(f, in, d);
    Values made = f.Add(steps(d == 1 || direction == Direction::kReverse), operands);
    if (!f.status().ok()) return made;
    results.resize(made.size());
    for (size_t i = 0; i < made.size(); ++i) {
      if (i > 0) {
        Dims shape = made[i].type().shape();
        shape.insert(shape.begin(), 1);
        made[i] = f(Reshape{std::move(shape)}, {made[i]});
      }
      results[i].push_back(made[i]);
    }
  }
  Values out;
  for (size_t i = 0; i < results.size(); ++i)
    out.push_back(Narrowed(Joined(f, i == 0 ? 2 : 0, results[i]), in[kX].type().dtype()));
  return out;
}

}  // namespace forge::ir
