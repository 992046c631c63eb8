// SPDX-License-Identifier: Apache-2.0
// Products by cooperative matrices, on a device that has them.
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

constexpr size_t kMostChoices = 4;  // software devices take seconds to compile one

// Bytes of every value, or some numbers.
ir::HostValue Operand(const ir::Type& t) {
  auto v = ir::HostValue::Zeros(t.dtype(), ir::Constants(t.shape()));
  EXPECT_TRUE(v.ok());
  for (int64_t i = 0; i < v->elements(); ++i) {
    const int64_t n = i * 37 + 11;
    v->Set(i, t.dtype() == DType::kF16  ? static_cast<double>(n % 101) / 25 - 2
              : t.dtype() == DType::kI8 ? static_cast<double>(n % 256 - 128)
                                        : static_cast<double>(n % 256));
  }
  return *std::move(v);
}

class MatrixTest : public GpuKernelTest {
 protected:
  // What the device offers for the product.
  std::vector<std::string> Choices(const ir::AnyOp& op, const ir::Types& in, const ir::Type& out) {
    const CompileRequest request{&op, in, {&out, 1}, "a product"};
    const std::vector<std::string> choices = device_->Choices(request, 1000);
    std::vector<std::string> some;
    for (const char* way : {"in_registers=0", "in_registers=1"}) {
      size_t left = kMostChoices / 2;
      for (const std::string& c : choices)
        if (c.starts_with("matmul_matrix") && c.find(way) != std::string::npos && left > 0)
          some.push_back(c), --left;
    }
    return some;
  }

  // Whether the device has matrices of such elements; expects each choice to be right.
  bool ExpectRight(const ir::AnyOp& op, const ir::Types& in, const ir::Type& out) {
    const std::vector<std::string> choices = Choices(op, in, out);
    const ir::HostValue a = Operand(in[0]), b = Operand(in[1]);
    const ir::HostValue* operands[] = {&a, &b};
    for (const std::string& choice : choices) ExpectRightBy(choice, op, operands);
    return !choices.empty();
  }

  // Sizes are no multiples of a matrix's.
  bool ExpectHalvesRight(const ir::MatMul& op, const ir::Dims& a, const ir::Dims& b,
                         const ir::Dims& c) {
    const auto half = [](const ir::Dims& d) { return ir::Type::Tensor(DType::kF16, d); };
    return ExpectRight(op, {half(a), half(b)}, half(c));
  }
};

TEST_F(MatrixTest, MultipliesBatches) {
  if (!ExpectHalvesRight({}, {2, 70, 52}, {52, 76}, {2, 70, 76}))
    GTEST_SKIP() << "the device has no cooperative matrices of f16";
}

TEST_F(MatrixTest, MultipliesTransposedOperandsOfOddSizes) {
  if (!ExpectHalvesRight({.transpose_a = true, .transpose_b = true}, {33, 35}, {19, 33}, {35, 19}))
    GTEST_SKIP() << "the device has no cooperative matrices of f16";
}

TEST_F(MatrixTest, MultipliesBytes) {
  bool has_some = false;
  for (const DType a : {DType::kI8, DType::kU8})
    for (const DType b : {DType::kI8, DType::kU8}) {
      SCOPED_TRACE(fmt::format("{} {}", Name(a), Name(b)));
      const auto sums = [](const ir::Dims& d) { return ir::Type::Tensor(DType::kI32, d); };
      has_some |= ExpectRight(ir::MatMulInteger{},
                              {ir::Type::Tensor(a, {2, 70, 52}), ir::Type::Tensor(b, {52, 76})},
                              sums({2, 70, 76}));
      has_some |= ExpectRight(ir::MatMulInteger{.transpose_b = true},
                              {ir::Type::Tensor(a, {35, 37}), ir::Type::Tensor(b, {19, 37})},
                              sums({35, 19}));
    }
  if (!has_some) GTEST_SKIP() << "the device has no cooperative matrices of bytes";
}

}  // namespace
}  // namespace forge::vk
