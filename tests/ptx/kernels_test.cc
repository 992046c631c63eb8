// SPDX-License-Identifier: Apache-2.0
// What NVRTC made of kernels/*.cu, in both dialects, in all orders of warps and blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/ptx/machine/instructions/narrow.h"
#include "tests/ptx/runner.h"

namespace forge::ptx {
namespace {

std::vector<float> Uniform(size_t n, int seed) {
  std::mt19937 random(seed);
  std::vector<float> v(n);
  for (float& x : v) x = static_cast<float>(random() % 2001) / 1000 - 1;
  return v;
}

class KernelsTest : public ::testing::TestWithParam<std::tuple<const char*, Order>> {
 protected:
  std::string Text(const char* name) const { return KernelText(name, std::get<0>(GetParam())); }
  RunOptions Options(Dim3 grid, Dim3 threads) const {
    return {.grid = grid, .threads = threads, .order = std::get<1>(GetParam())};
  }
};

TEST_P(KernelsTest, VectorAdd) {
  const int n = 1000;
  std::vector<float> a = Uniform(n, 1), b = Uniform(n, 2), y(n);
  const absl::Status status =
      RunPtx(Text("vector_add"), "vector_add", Options({8}, {128}),
             {Argument::Buffer(a), Argument::Buffer(b), Argument::Buffer(y), Argument::Scalar(n)});
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], a[i] + b[i]) << i;
}

TEST_P(KernelsTest, TiledMatmul) {
  const int m = 70, n = 50, k = 45;
  std::vector<float> a = Uniform(m * k, 1), b = Uniform(k * n, 2), c(m * n);
  const absl::Status status =
      RunPtx(Text("tiled_matmul"), "tiled_matmul", Options({2, 3}, {16, 16}),
             {Argument::Buffer(a), Argument::Buffer(b), Argument::Buffer(c), Argument::Scalar(m),
              Argument::Scalar(n), Argument::Scalar(k)});
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += static_cast<double>(a[i * k + l]) * b[l * n + j];
      EXPECT_NEAR(c[i * n + j], sum, 1e-5) << i << "," << j;
    }
  }
}

TEST_P(KernelsTest, Softmax) {
  const int rows = 7, columns = 100;
  std::vector<float> x = Uniform(rows * columns, 3), y(rows * columns);
  const absl::Status status = RunPtx(Text("softmax"), "softmax", Options({4}, {64}),
                                     {Argument::Buffer(x), Argument::Buffer(y),
                                      Argument::Scalar(rows), Argument::Scalar(columns)});
  ASSERT_TRUE(status.ok()) << status.message();
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < columns; ++i) sum += std::exp(x[r * columns + i]);
    for (int i = 0; i < columns; ++i)
      EXPECT_NEAR(y[r * columns + i], std::exp(x[r * columns + i]) / sum, 1e-6);
  }
}

TEST_P(KernelsTest, MmaMatmul) {
  const int m = 64, n = 32, k = 96;
  std::vector<float> fa = Uniform(m * k, 1), fb = Uniform(n * k, 2), c(m * n);
  std::vector<uint16_t> a, b;
  for (const float v : fa) a.push_back(F16::Encode(v));
  for (const float v : fb) b.push_back(F16::Encode(v));
  Statistics statistics;
  const absl::Status status = RunPtx(Text("mma_matmul"), "mma_matmul", Options({1, 2}, {128}),
                                     {Argument::Buffer(a), Argument::Buffer(b), Argument::Buffer(c),
                                      Argument::Scalar(n), Argument::Scalar(k)},
                                     &statistics);
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += static_cast<double>(F16::Decode(a[i * k + l])) * F16::Decode(b[j * k + l]);
      EXPECT_NEAR(c[i * n + j], sum, 1e-4) << i << "," << j;
    }
  }
  EXPECT_EQ(statistics.bank_conflicts, 0u) << statistics.Text();
}

INSTANTIATE_TEST_SUITE_P(Both, KernelsTest,
                         ::testing::Combine(::testing::Values("80", "100"),
                                            ::testing::Values(Order::kForward, Order::kReversed,
                                                              Order::kRandom)));

}  // namespace
}  // namespace forge::ptx
