// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/product/byte_products.h"

#include <algorithm>

#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

// In tiles of rows and columns.
class ByteProductsCall final : public AnchorCall {
 public:
  explicit ByteProductsCall(ByteProducts p)
      : p_(std::move(p)),
        down_((p_.rows + ByteProduct::kMaxRows - 1) / ByteProduct::kMaxRows),
        across_((p_.columns + kColumns - 1) / kColumns) {}
  std::string_view kernel() const override { return p_.kernel; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(p_.threads) * ByteProduct::kScratchBytes;
  }

  absl::Status Run(const Arguments& args) const override {
    const int64_t tiles = static_cast<int64_t>(p_.matrices.size()) * down_ * across_;
    const double products = static_cast<double>(p_.matrices.size() * p_.b_rows.size()) *
                            static_cast<double>(p_.rows) * static_cast<double>(p_.columns);
    const int threads = WorthThreads(products) ? p_.threads : 1;
    ParallelParts({tiles, 1, threads}, [&](int thread, int64_t begin, int64_t end) {
      uint8_t* scratch = args.scratch + static_cast<uint64_t>(thread) * ByteProduct::kScratchBytes;
      for (int64_t t = begin; t < end; ++t) Tile(args, t, scratch);
    });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kColumns = 256;

  void Tile(const Arguments& args, int64_t tile, uint8_t* scratch) const {
    const auto& from = p_.matrices[static_cast<size_t>(tile / across_ / down_)];
    const int64_t row = tile / across_ % down_ * ByteProduct::kMaxRows;
    const int64_t column = tile % across_ * kColumns;
    ByteProduct product{.rows = std::min(ByteProduct::kMaxRows, p_.rows - row),
                        .depth = static_cast<int64_t>(p_.b_rows.size()),
                        .columns = std::min(kColumns, p_.columns - column),
                        .a = p_.a,
                        .b = {p_.b, args.operands[p_.b_operand] + from.b, p_.b_rows.data(),
                              p_.b_columns.data() + column},
                        .y = reinterpret_cast<int32_t*>(args.out) + from.y + row * p_.y_row_stride +
                             column * p_.y_column_stride,
                        .y_row_stride = p_.y_row_stride,
                        .y_column_stride = p_.y_column_stride,
                        .scratch = scratch};
    product.a.data = args.operands[p_.a_operand] + from.a + row * p_.a.row_stride;
    MultiplyBytes(product);
  }

  ByteProducts p_;
  int64_t down_, across_;  // tiles of a matrix
};

}  // namespace

std::unique_ptr<AnchorCall> MakeByteProducts(ByteProducts p) {
  return std::make_unique<ByteProductsCall>(std::move(p));
}

}  // namespace forge::cpu
