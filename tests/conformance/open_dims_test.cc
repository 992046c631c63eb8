// SPDX-License-Identifier: Apache-2.0
// Models with open dimensions on every device there is: what a binding to 1 and to more gives is
// what the same model gives with the numbers in its file.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/backends.h"
#include "runtime/session.h"
#include "tests/support/onnx_model.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

// The words of two dimensions: names, or numbers.
struct Words {
  std::string q, w;
};

struct OpenModel {
  std::string name;
  std::function<OnnxModel(const Words&)> make;
};

// Numbers between -1 and 1 that repeat late.
ir::HostValue Waves(const std::vector<int64_t>& shape, int64_t seed) {
  ir::HostValue v = *ir::HostValue::Zeros(DType::kF32, shape);
  for (int64_t i = 0; i < v.elements(); ++i)
    v.Set(i, static_cast<double>((i + seed) * 7919 % 2003) / 1001.5 - 1);
  return v;
}

// Inputs a: f32[q, 4, 4, 4], b: f32[w, 4, 4, 4]; output y.
OnnxModel WithInputs(const Words& d) {
  OnnxModel m(17);
  m.Input("a", {d.q, "4", "4", "4"}).Input("b", {d.w, "4", "4", "4"}).Output("y");
  return m;
}

std::vector<float> Weights(size_t n) {
  std::vector<float> out;
  for (size_t i = 0; i < n; ++i) out.push_back(static_cast<float>(i * 37 % 17) / 17 - 0.5f);
  return out;
}

// The product of inputs of unlike extents, and what `finish` makes of "s".
OpenModel AfterProduct(std::string name, std::function<void(OnnxModel&)> finish) {
  return {std::move(name), [finish](const Words& d) {
            OnnxModel m = WithInputs(d);
            m.Node("Mul", {"a", "b"}, {"s"});
            finish(m);
            return m;
          }};
}

// "y", an anchor's result of `a` combined with `b`.
OpenModel AnchorAnd(std::string name, const std::string& combine,
                    std::function<void(OnnxModel&)> anchor) {
  return {std::move(name), [combine, anchor](const Words& d) {
            OnnxModel m = WithInputs(d);
            anchor(m);
            m.Node(combine, {"s", "b"}, {"y"});
            return m;
          }};
}

void AddConvolution(OnnxModel& m, const std::string& from, const std::string& to) {
  m.Floats("w", {4, 4, 3, 3}, Weights(4 * 4 * 9));
  Set(m.Node("Conv", {from, "w"}, {to}), "pads", std::vector<int64_t>{1, 1, 1, 1});
}

OpenModel Resized(std::string name, std::string_view mode) {
  return {std::move(name), [mode = std::string(mode)](const Words& d) {
            OnnxModel m(17);
            m.Input("a", {"1", "2", d.q, d.w}).Input("b", {"1", "1", "7", "9"}).Output("y");
            m.Node("Shape", {"b"}, {"shape"});
            m.Ints("two", {1}, {2}).Ints("four", {1}, {4});
            m.Node("Slice", {"shape", "two", "four"}, {"size"});
            m.Node("Shape", {"a"}, {"own"});
            m.Ints("zero", {1}, {0});
            m.Node("Slice", {"own", "zero", "two"}, {"lead"});
            Set(m.Node("Concat", {"lead", "size"}, {"sizes"}), "axis", int64_t{0});
            onnx::NodeProto& resize = m.Node("Resize", {"a", "", "", "sizes"}, {"y"});
            Set(resize, "mode", mode);
            Set(resize, "coordinate_transformation_mode", std::string_view("align_corners"));
            return m;
          }};
}

std::vector<OpenModel> AlongAnAxis() {
  return {
      AfterProduct("cum_sum",
                   [](OnnxModel& m) {
                     m.Ints("axis", {}, {0});
                     m.Node("CumSum", {"s", "axis"}, {"c"});
                     m.Node("Relu", {"c"}, {"y"});
                   }),
      AfterProduct("top_k",
                   [](OnnxModel& m) {
                     m.Ints("k", {1}, {1});
                     Set(m.Node("TopK", {"s", "k"}, {"v", "i"}), "axis", int64_t{0});
                     Set(m.Node("Cast", {"i"}, {"f"}), "to", int64_t{onnx::TensorProto::FLOAT});
                     m.Node("Relu", {"v"}, {"r"});
                     m.Node("Add", {"r", "f"}, {"y"});
                   }),
      AfterProduct("arg_max",
                   [](OnnxModel& m) {
                     m.Node("ArgMax", {"s"}, {"i"});
                     Set(m.Node("Cast", {"i"}, {"y"}), "to", int64_t{onnx::TensorProto::FLOAT});
                   }),
  };
}

std::vector<OpenModel> BesideAnAnchor() {
  return {
      AnchorAnd("matmul_mul", "Mul",
                [](OnnxModel& m) {
                  m.Floats("w", {4, 4}, Weights(16));
                  m.Node("MatMul", {"a", "w"}, {"s"});
                }),
      AnchorAnd("softmax_mul", "Mul", [](OnnxModel& m) { m.Node("Softmax", {"a"}, {"s"}); }),
      AnchorAnd("conv_add", "Add", [](OnnxModel& m) { AddConvolution(m, "a", "s"); }),
      AnchorAnd("pool_add", "Add",
                [](OnnxModel& m) {
                  onnx::NodeProto& pool = m.Node("AveragePool", {"a"}, {"s"});
                  Set(pool, "kernel_shape", std::vector<int64_t>{3, 3});
                  Set(pool, "pads", std::vector<int64_t>{1, 1, 1, 1});
                }),
      AnchorAnd("reshape_after_softmax", "Add",
                [](OnnxModel& m) {
                  m.Node("Softmax", {"a"}, {"p"});
                  m.Ints("to", {4}, {4, -1, 4, 4});
                  m.Ints("back", {4}, {-1, 4, 4, 4});
                  m.Node("Reshape", {"p", "to"}, {"t"});
                  m.Node("Relu", {"t"}, {"u"});
                  m.Node("Reshape", {"u", "back"}, {"s"});
                }),
  };
}

std::vector<OpenModel> Models() {
  std::vector<OpenModel> models = {
      AfterProduct("expand",
                   [](OnnxModel& m) {
                     m.Node("Shape", {"s"}, {"shape"});
                     m.Floats("c", {1}, {3});
                     m.Node("Expand", {"c", "shape"}, {"y"});
                   }),
      AfterProduct("reshape",
                   [](OnnxModel& m) {
                     m.Ints("to", {2}, {0, -1});
                     m.Node("Reshape", {"s", "to"}, {"y"});
                   }),
      AfterProduct("reshape_by_shape",
                   [](OnnxModel& m) {
                     m.Node("Shape", {"s"}, {"shape"});
                     m.Node("Relu", {"s"}, {"r"});
                     m.Node("Reshape", {"r", "shape"}, {"y"});
                   }),
      AfterProduct("unsqueeze",
                   [](OnnxModel& m) {
                     m.Ints("axes", {1}, {1});
                     m.Node("Unsqueeze", {"s", "axes"}, {"y"});
                   }),
      AfterProduct("matmul", [](OnnxModel& m) { m.Node("MatMul", {"s", "b"}, {"y"}); }),
      AfterProduct("conv", [](OnnxModel& m) { AddConvolution(m, "s", "y"); }),
      AfterProduct("conv_transpose",
                   [](OnnxModel& m) {
                     m.Floats("w", {4, 2, 3, 3}, Weights(4 * 2 * 9));
                     Set(m.Node("ConvTranspose", {"s", "w"}, {"y"}), "strides",
                         std::vector<int64_t>{2, 2});
                   }),
      AfterProduct("max_pool",
                   [](OnnxModel& m) {
                     Set(m.Node("MaxPool", {"s"}, {"y"}), "kernel_shape",
                         std::vector<int64_t>{2, 2});
                   }),
      Resized("resize_linear", "linear"),
      Resized("resize_cubic", "cubic"),
  };
  for (std::vector<OpenModel> more : {AlongAnAxis(), BesideAnAnchor()})
    std::move(more.begin(), more.end(), std::back_inserter(models));
  return models;
}

std::vector<NamedTensor> InputsOf(OnnxModel& m, const std::map<std::string, int64_t>& dims) {
  std::vector<NamedTensor> out;
  for (const onnx::ValueInfoProto& v : m.graph().input()) {
    std::vector<int64_t> shape;
    for (const auto& d : v.type().tensor_type().shape().dim())
      shape.push_back(d.has_dim_value() ? d.dim_value() : dims.at(d.dim_param()));
    out.push_back({v.name(), Waves(shape, static_cast<int64_t>(out.size()))});
  }
  return out;
}

class OpenDimsTest : public testing::TestWithParam<std::string> {
 protected:
  // Runs the model bound to these numbers, and the same with the numbers in the file.
  void ExpectAsWithNumbers(const OpenModel& open, Session& session, int64_t q, int64_t w) {
    OnnxModel model = open.make({"q", "w"});
    const std::vector<NamedTensor> inputs = InputsOf(model, {{"q", q}, {"w", w}});
    std::vector<ir::HostValue> values;
    for (const NamedTensor& t : inputs) values.push_back(t.value);
    FORGE_ASSERT_OK_AND_ASSIGN(
        const auto want, ImportAndRun(open.make({std::to_string(q), std::to_string(w)}), values));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, session.Run(inputs));
    ASSERT_EQ(got[0].value.type(), want[0].type());
    for (int64_t i = 0; i < want[0].elements(); ++i)
      ASSERT_NEAR(got[0].value.f64(i), want[0].f64(i), 1e-5) << "element " << i;
  }
};

TEST_P(OpenDimsTest, GiveWhatNumbersGive) {
  FORGE_ASSERT_OK_AND_ASSIGN(const DeviceRef device, OpenDevice(GetParam(), {}));
  for (const OpenModel& open : Models()) {
    SCOPED_TRACE(open.name);
    FORGE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<ir::Module> module, open.make({"q", "w"}).Import());
    const auto model = std::make_shared<const Model>(std::move(module));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto session, Session::Create(model, device));
    const bool resizes = open.name.starts_with("resize");
    for (const auto& [q, w] : std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {5, 1}, {5, 5}}) {
      SCOPED_TRACE(fmt::format("q = {}, w = {}", q, w));
      ExpectAsWithNumbers(open, *session, resizes ? q + 1 : q, w);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllDevices, OpenDimsTest, testing::ValuesIn(Devices()), NameOfParameter);

}  // namespace
}  // namespace forge
