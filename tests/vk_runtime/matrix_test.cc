// SPDX-License-Identifier: Apache-2.0
// Products by cooperative matrices, on a device that has them.
#include "ir/ops/matmul.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

constexpr size_t kMostChoices = 4;  // software devices take seconds to compile one

class MatrixTest : public VulkanRunTest {
 protected:
  // Operands of f16 whose sizes are no multiples of a matrix's.
  void SetOperands(const ir::MatMul& op, std::vector<ir::Dims> shapes, ir::Dims out) {
    op_ = op;
    for (ir::Dims& shape : shapes) {
      in_.push_back(ir::Type::Tensor(DType::kF16, std::move(shape)));
      auto v = ir::HostValue::Zeros(DType::kF16, ir::Constants(in_.back().shape()));
      ASSERT_OK(v.status());
      for (int64_t i = 0; i < v->elements(); ++i)
        v->Set(i, static_cast<double>((i * 37 + 11) % 101) / 25 - 2);
      operands_.push_back(*std::move(v));
    }
    out_ = {ir::Type::Tensor(DType::kF16, std::move(out))};
  }

  std::vector<std::string> Choices() {
    const CompileRequest request{&op_, in_, out_, "a product"};
    std::vector<std::string> choices = device_->Choices(request, 1000);
    std::erase_if(choices, [](const std::string& c) { return !c.starts_with("matmul_matrix"); });
    choices.resize(std::min(choices.size(), kMostChoices));
    return choices;
  }

  void ExpectRight() {
    std::vector<const ir::HostValue*> in;
    for (const ir::HostValue& v : operands_) in.push_back(&v);
    const std::vector<std::string> choices = Choices();
    if (choices.empty()) GTEST_SKIP() << "the device has no cooperative matrices of f16";
    for (const std::string& choice : choices) ExpectRightBy(choice, op_, in);
  }

  ir::AnyOp op_ = ir::MatMul{};
  ir::Types in_, out_;
  std::vector<ir::HostValue> operands_;
};

TEST_F(MatrixTest, MultipliesBatches) {
  SetOperands({}, {{2, 70, 52}, {52, 76}}, {2, 70, 76});
  ExpectRight();
}

TEST_F(MatrixTest, MultipliesTransposedOperandsOfOddSizes) {
  SetOperands({.transpose_a = true, .transpose_b = true}, {{33, 35}, {19, 33}}, {35, 19});
  ExpectRight();
}

}  // namespace
}  // namespace forge::vk
