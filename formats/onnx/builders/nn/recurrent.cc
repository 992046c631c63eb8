// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/match.h"
#include "formats/onnx/builders/families.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/recurrent/gru.h"
#include "ir/ops/recurrent/lstm.h"
#include "ir/ops/recurrent/rnn.h"

namespace forge::formats {
namespace {

using Order = std::vector<int64_t>;

ir::Value Permuted(ir::Value v, Order permutation) {
  return v ? (*v.fn)(ir::Transpose{.permutation = std::move(permutation)}, {v}) : v;
}

// Part `i` of `count` along axis 1.
ir::Value Part(ir::Value v, int64_t i, int64_t count) {
  const ir::Dim each = ir::FloorDiv(v.type().shape()[1], count);
  return (*v.fn)(ir::Slice{.begin = {each * i}, .end = {each * (i + 1)}, .axes = {1}}, {v});
}

// The parts along axis 1, of which ONNX has `order.size()`, in another order.
ir::Value Reordered(ir::Value v, const Order& order) {
  if (!v || order.size() == 1) return v;
  ir::Values parts;
  for (int64_t i : order) parts.push_back(Part(v, i, static_cast<int64_t>(order.size())));
  return v.fn->Add(ir::Concat{.axis = 1}, parts)[0];
}

// What the three operators share.
class Recurrent {
 public:
  // gates: the places of our gates among those of the file
  Recurrent(OnnxNode& n, Order gates) : n_(n), gates_(std::move(gates)) {
    batch_first_ = n.since() >= 14 && n.Flag("layout");
    const std::string direction = n.String("direction", "forward");
    if (direction == "reverse")
      direction_ = ir::Direction::kReverse;
    else if (direction == "bidirectional")
      direction_ = ir::Direction::kBidirectional;
    else if (direction != "forward")
      n.Fail("the direction '{}' is none", direction);
    for (std::string_view unread :
         {"hidden_size", "output_sequence", "activation_alpha", "activation_beta"})
      n.Ignore(unread);
    if (n.Has("clip")) n.Fail("clipping of sums is not supported");
    for (size_t i = 0; i < std::min<size_t>(n.inputs(), 8); ++i)
      if (const ir::Type& t = n.type(i); t && !t.is_tensor())
        n.Fail("the rank of operand {} is not known", i);
    for (size_t i : {1, 2, 3, 7})  // 7: the peepholes of an LSTM
      if (n.type(i) && n.type(i).is_tensor() && n.type(i).rank() < 2)
        n.Fail("weights of type {} have no axis of gates", n.type(i).ToText());
    const auto count = static_cast<int64_t>(gates_.size());
    for (size_t i : {1, 2})
      if (n.status().ok() && n.type(i).shape()[1].is_constant() &&
          n.type(i).shape()[1].constant() % count != 0)
        n.Fail("weights of type {} are not those of {} gates", n.type(i).ToText(), count);
  }
  ir::Direction direction() const { return direction_; }
  // The activations of a direction, checked to be the same for both.
  std::vector<std::string> Activations(std::vector<std::string> fallback) {
    std::vector<std::string> given = n_.Strings("activations");
    if (given.empty()) return fallback;
    const size_t each = fallback.size();
    const size_t directions = direction_ == ir::Direction::kBidirectional ? 2 : 1;
    if (given.size() != each * directions)
      n_.Fail("there are {} activations, not {}", given.size(), each * directions);
    for (size_t i = each; i < given.size(); ++i)
      if (!absl::EqualsIgnoreCase(given[i], given[i - each]))
        n_.Fail("activations that differ between directions are not supported");
    given.resize(each);
    return given;
  }
  void Require(const std::vector<std::string>& activations) {
    const std::vector<std::string> given = Activations(activations);
    for (size_t i = 0; i < given.size(); ++i)
      if (!absl::EqualsIgnoreCase(given[i], activations[i]))
        n_.Fail("the activation {} is not supported in place of {}", given[i], activations[i]);
  }
  // x, weights, biases, lengths and hidden state, in the order of our ops.
  ir::Values Operands() {
    ir::Value bias_x, bias_h;
    if (const ir::Value bias = n_.in(3)) {
      bias_x = Reordered(Part(bias, 0, 2), gates_);
      bias_h = Reordered(Part(bias, 1, 2), gates_);
    }
    return {OfBatch(n_.in(0)),
            Reordered(n_.in(1), gates_),
            Reordered(n_.in(2), gates_),
            bias_x,
            bias_h,
            n_.in(4),
            State(5)};
  }
  ir::Value State(size_t i) { return OfBatch(n_.in(i)); }
  // The results of our op as those of the file.
  ir::Values Results(const ir::AnyOp& op, const ir::Values& operands) {
    if (!n_.status().ok()) return ir::Values(3);
    ir::Values out = n_.fn().Add(op, operands);
    if (!n_.fn().status().ok()) return out;
    const ir::Dims y = out[0].type().shape();
    const int64_t directions = direction_ == ir::Direction::kBidirectional ? 2 : 1;
    const ir::Dims apart = {y[0], y[1], directions, ir::FloorDiv(y[2], directions)};
    const ir::Value sides = n_.fn()(ir::Reshape{apart}, {out[0]});
    out[0] = Permuted(sides, batch_first_ ? Order{1, 0, 2, 3} : Order{0, 2, 1, 3});
    for (size_t i = 1; i < out.size(); ++i) out[i] = OfBatch(out[i]);
    return out;
  }

 private:
  // Exchanges the first two axes where the batch comes first in the file.
  ir::Value OfBatch(ir::Value v) { return batch_first_ ? Permuted(v, {1, 0, 2}) : v; }

  OnnxNode& n_;
  Order gates_;
  bool batch_first_ = false;
  ir::Direction direction_ = ir::Direction::kForward;
};

ir::Values BuildLstm(OnnxNode& n) {
  Recurrent layer(n, {0, 2, 3, 1});  // of input, output, forget and cell gate
  layer.Require({"Sigmoid", "Tanh", "Tanh"});
  if (n.Flag("input_forget")) n.Fail("coupled input and forget gates are not supported");
  if (!n.status().ok()) return ir::Values(3);
  ir::Values operands = layer.Operands();
  operands.push_back(layer.State(6));
  operands.push_back(Reordered(n.in(7), {0, 2, 1}));
  return layer.Results(ir::Lstm{.direction = layer.direction()}, operands);
}

ir::Values BuildGru(OnnxNode& n) {
  Recurrent layer(n, {1, 0, 2});  // of update, reset and hidden gate
  layer.Require({"Sigmoid", "Tanh"});
  const bool reset_after = n.Flag("linear_before_reset");
  if (!n.status().ok()) return ir::Values(2);
  return layer.Results(ir::Gru{.direction = layer.direction(), .reset_after = reset_after},
                       layer.Operands());
}

ir::Values BuildRnn(OnnxNode& n) {
  Recurrent layer(n, {0});
  const std::string activation = layer.Activations({"Tanh"})[0];
  const bool relu = absl::EqualsIgnoreCase(activation, "Relu");
  if (!relu && !absl::EqualsIgnoreCase(activation, "Tanh"))
    n.Fail("the activation {} is not supported", activation);
  if (!n.status().ok()) return ir::Values(2);
  const auto kind = relu ? ir::RnnActivation::kRelu : ir::RnnActivation::kTanh;
  return layer.Results(ir::Rnn{.direction = layer.direction(), .activation = kind},
                       layer.Operands());
}

constexpr OnnxOp kRecurrentOps[] = {
    {"", "GRU", 1, 3, 6, BuildGru},   {"", "GRU", 14, 3, 6, BuildGru},
    {"", "LSTM", 1, 3, 8, BuildLstm}, {"", "LSTM", 14, 3, 8, BuildLstm},
    {"", "RNN", 1, 3, 6, BuildRnn},   {"", "RNN", 14, 3, 6, BuildRnn},
};

}  // namespace

std::span<const OnnxOp> RecurrentOps() { return kRecurrentOps; }

}  // namespace forge::formats
