// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/product/byte_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace forge::cpu {
namespace {

class ByteProductsTest : public ::testing::Test {
 protected:
  int64_t Draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  DType DrawType() { return Draw(0, 1) == 0 ? DType::kU8 : DType::kI8; }
  std::vector<uint8_t> Bytes(int64_t count) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random_());
    return bytes;
  }

  // Where elements of b lie: as those of a matrix, of a transposed one, or of windows of an image
  // with rows of some width.
  void PlaceColumns() {
    const int64_t width = Draw(3, 40), step = Draw(1, 2), kind = Draw(0, 2);
    for (int64_t k = 0; k < depth_; ++k)
      rows_.push_back(kind == 0 ? k * columns_ : kind == 1 ? k : Draw(0, 200));
    for (int64_t j = 0; j < columns_; ++j)
      places_.push_back(kind == 0   ? j
                        : kind == 1 ? j * depth_
                                    : j / width * (width * step + 3) + j % width * step);
  }

  static int Number(DType t, uint8_t byte) {
    return t == DType::kU8 ? byte : static_cast<int8_t>(byte);
  }

  void Check() {
    const DType a_type = DrawType(), b_type = DrawType();
    const bool transposed = Draw(0, 1) == 1, by_columns = Draw(0, 1) == 1;
    PlaceColumns();
    // Memory ends with the last element, so that a sanitizer sees reads beyond it.
    const std::vector<uint8_t> a = Bytes(height_ * depth_);
    const std::vector<uint8_t> b =
        depth_ == 0
            ? std::vector<uint8_t>()
            : Bytes(*std::ranges::max_element(rows_) + *std::ranges::max_element(places_) + 1);
    std::vector<int32_t> y(static_cast<size_t>(height_ * columns_), 123);
    std::vector<uint8_t> scratch(ByteProduct::kScratchBytes + kAlignment);
    void* aligned = scratch.data();
    size_t space = scratch.size();
    ASSERT_NE(std::align(kAlignment, ByteProduct::kScratchBytes, aligned, space), nullptr);
    const ByteProduct p{.rows = height_,
                        .depth = depth_,
                        .columns = columns_,
                        .a = {a_type, a.data(), transposed ? 1 : depth_, transposed ? height_ : 1},
                        .b = {b_type, b.data(), rows_.data(), places_.data()},
                        .y = y.data(),
                        .y_row_stride = by_columns ? 1 : columns_,
                        .y_column_stride = by_columns ? height_ : 1,
                        .scratch = static_cast<uint8_t*>(aligned),
                        .vnni = HasVnni() && Draw(0, 1) == 1};
    MultiplyBytes(p);
    for (int64_t i = 0; i < height_; ++i)
      for (int64_t j = 0; j < columns_; ++j) {
        int sum = 0;
        for (size_t k = 0; k < rows_.size(); ++k) {
          const auto at = static_cast<int64_t>(k);
          sum +=
              Number(a_type, a[static_cast<size_t>(i * p.a.row_stride + at * p.a.column_stride)]) *
              Number(b_type, b[static_cast<size_t>(rows_[k] + places_[static_cast<size_t>(j)])]);
        }
        ASSERT_EQ(y[static_cast<size_t>(i * p.y_row_stride + j * p.y_column_stride)], sum)
            << height_ << " x " << depth_ << " x " << columns_ << ", element " << i << ", " << j;
      }
  }

  static constexpr size_t kAlignment = 64;
  std::mt19937 random_{7};
  int64_t height_ = 0, depth_ = 0, columns_ = 0;
  std::vector<int64_t> rows_, places_;
};

TEST_F(ByteProductsTest, OfEveryShapeAndLayout) {
  for (int i = 0; i < 800; ++i) {
    height_ = Draw(1, ByteProduct::kMaxRows);
    depth_ = Draw(0, i % 20 == 0 ? 2600 : 70);
    columns_ = Draw(1, 70);
    rows_.clear();
    places_.clear();
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

}  // namespace
}  // namespace forge::cpu
