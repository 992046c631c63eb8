// SPDX-License-Identifier: Apache-2.0
// The declarations that a printed kernel begins with: element and vector types, and the functions
// it calls. A kernel declares what it uses, so that it needs no header.
#pragma once
#include <cstdint>
#include <string>

#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// The functions, in an order in which each needs only earlier ones.
enum class Helper : uint8_t {
  kHalves,         // conversions of f16
  kBitcast,        // bitcast<T>(x)
  kMixedDot,       // mixed_dot4
  kShuffle,        // shuffle, shuffle_xor, shuffle_up: of 1 to 8 bytes
  kReduce,         // subgroup_sum ...
  kScan,           // subgroup_scan_sum ...
  kMatrices,       // fragments, load_a, load_b, load_c, store_c
  kHalfMma,        // multiply_add of f16 and bf16
  kByteMma,        // multiply_add of bytes
  kRowReduction,   // reduce_rows
  kSumConversion,  // convert_sums
  kSwizzle,        // swizzled
  kCopies,         // copy_async, commit_copies, wait_copies
  kTiles,          // tile_at, group_sums
  kApproximate,    // fast_exp2, fast_log2 ...
  kCount
};

class Prelude {
 public:
  void Need(Helper h);
  // Notes that a vector type is used, and returns its name, or that of a scalar.
  std::string TypeName(const Type& t);
  // Notes that a workgroup multiplies such elements to sums of so many columns.
  void NeedGroupProduct(DType elem, int columns);
  std::string Text() const;

 private:
  struct GroupProduct {
    DType elem;
    int columns;
    friend bool operator==(const GroupProduct&, const GroupProduct&) = default;
  };
  static std::string TextOf(const GroupProduct& p);
  static std::string WaitText(int sums);
  static std::string SumOperands(int sums);
  std::array<bool, static_cast<size_t>(Helper::kCount)> helpers_{};
  std::vector<Type> vectors_;  // in order of their first use
  std::vector<GroupProduct> products_;
};

// The name of an element type: "f32".
std::string_view ElementName(DType t);

}  // namespace forge::codegen
