// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models.h"

#include <cmath>

#include "formats/load.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "tools/train/generator.h"

namespace forge::tools {
namespace {

using ir::Dim;
using ir::Dims;
using ir::Value;

// Builds a network layer by layer.
class Builder {
 public:
  Builder(ir::Module& m, uint64_t seed) : m_(m), f_(*m.AddFunction("main")), random_(seed, 0) {}

  Value Input(Dims sample) {
    sample.insert(sample.begin(), Dim(m_.SymbolNamed("N")));
    return f_.Argument("image", ir::Type::Tensor(DType::kF32, sample));
  }

  Value Linear(Value x, const std::string& name, int64_t from, int64_t to) {
    const Value w = Parameter(name + ".weight", {to, from}, from);
    const Value b = Parameter(name + ".bias", {to}, from);
    return f_(ir::MatMul{.transpose_b = true}, {x, w}) + b;
  }

  // A 3x3 convolution with its relu, and pooling by two.
  Value Block(Value x, const std::string& name, int64_t from, int64_t to) {
    const Value w = Parameter(name + ".weight", {to, from, 3, 3}, 9 * from);
    const Value b = Parameter(name + ".bias", {to}, 9 * from);
    const Value y = f_(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w, b});
    return f_(ir::Pool{.kernel = {2, 2}, .strides = {2, 2}}, {Relu(y)});
  }

  Value Relu(Value x) { return f_(ir::Relu{}, {x}); }
  Value Flat(Value x, int64_t elements) {
    return f_(ir::Reshape{{Dim(m_.SymbolNamed("N")), Dim(elements)}}, {x});
  }

  absl::Status Finish(Value scores) {
    f_.Return("scores", scores);
    return f_.status();
  }

 private:
  Value Parameter(std::string name, const std::vector<int64_t>& shape, int64_t fan_in) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    int64_t elements = 1;
    Dims dims;
    for (const int64_t d : shape) {
      elements *= d;
      dims.emplace_back(d);
    }
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(elements));
    for (float& v : *values) v = static_cast<float>((2 * random_.Unit() - 1) * bound);
    const forge::Bytes bytes({reinterpret_cast<const uint8_t*>(values->data()), values->size() * 4},
                             values);
    const ir::Type type = ir::Type::Tensor(DType::kF32, dims);
    return f_.Read(m_.AddVariable({.name = std::move(name),
                                   .role = ir::Variable::Role::kParameter,
                                   .type = type,
                                   .trainable = true,
                                   .init = ir::Variable::Storage{bytes, type, {}}}));
  }

  ir::Module& m_;
  ir::Function& f_;
  Generator random_;
};

absl::Status BuildMlp(ir::Module& m, uint64_t seed) {
  Builder b(m, seed);
  const Value x = b.Input({Dim(784)});
  return b.Finish(b.Linear(b.Relu(b.Linear(x, "fc1", 784, 256)), "fc2", 256, 10));
}

absl::Status BuildCnn(ir::Module& m, uint64_t seed) {
  Builder b(m, seed);
  const Value x = b.Input({Dim(1), Dim(28), Dim(28)});
  const Value features = b.Block(b.Block(x, "conv1", 1, 16), "conv2", 16, 32);
  const Value hidden = b.Relu(b.Linear(b.Flat(features, 1568), "fc1", 1568, 128));
  return b.Finish(b.Linear(hidden, "fc2", 128, 10));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Module>> ModelToTrain(const std::string& model, uint64_t seed) {
  if (model != "mnist-mlp" && model != "mnist-cnn") return LoadModel(model);
  auto module = std::make_unique<ir::Module>();
  FORGE_RETURN_IF_ERROR(model == "mnist-mlp" ? BuildMlp(*module, seed) : BuildCnn(*module, seed));
  return module;
}

}  // namespace forge::tools
