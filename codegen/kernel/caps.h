// SPDX-License-Identifier: Apache-2.0
// The capabilities of a device, as queried and self-tested. Schedules and printers read nothing
// else about it; there is no vendor among them.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/record.h"

namespace forge::codegen {

// One shape of cooperative matrices: C[m, n] += A[m, k] B[k, n].
struct MatrixShape {
  DType a = DType::kF32, b = DType::kF32, c = DType::kF32;
  uint16_t m = 0, n = 0, k = 0;
  // Elements, rows, columns and depth: "f16_16x8x16", "u8_i8_16x16x16".
  std::string ToText() const {
    return fmt::format("{}_{}x{}x{}",
                       a == b ? std::string(Name(a)) : fmt::format("{}_{}", Name(a), Name(b)), m, n,
                       k);
  }
};

// Of matrices that a workgroup holds.
inline constexpr int64_t kHoldersOfRows = 128, kMostWorkgroupColumns = 256;

// The defaults are the limits that every Vulkan 1.1 device guarantees, and no optional feature.
struct Caps {
  int64_t max_workgroup_invocations = 128;
  int64_t max_workgroup_x = 128, max_workgroup_y = 128, max_workgroup_z = 64;
  int64_t max_grid_x = 65535, max_grid_y = 65535, max_grid_z = 65535;  // workgroups
  int64_t max_shared_bytes = 16384;
  // Shared memory of a workgroup that takes so much that few others run beside it; 0: not offered.
  int64_t max_large_shared_bytes = 0;
  int64_t max_operands = 4;               // storage buffers one kernel can bind
  int64_t max_operand_bytes = 128 << 20;  // range of one storage buffer
  int64_t max_scalar_bytes = 128;         // push constants
  int64_t subgroup_size = 1;  // the size a kernel gets when it asks for none; 1: not usable
  int64_t min_subgroup_size = 1,
          max_subgroup_size = 1;  // sizes a kernel can rely on when it asks for them; 1: none
  bool runs_on_cpu = false;       // barriers and shared memory are slow, caches are large
  int64_t cores = 1;              // of a CPU
  // Measured on the device and rounded to powers of two, so that noise does not change kernels; 0:
  // not known.
  int64_t cache_bytes = 0;     // the largest working set that is read at the speed of a cache
  int64_t flops_per_byte = 0;  // multiply-adds count twice; bytes are those of a copy
  bool subgroup_arithmetic = false, subgroup_shuffle = false, subgroup_ballot = false;
  // Invocations that leave a loop early reconverge with the others behind it.
  bool subgroup_reconvergence = false;
  bool subgroup_uniform_control_flow = false;  // VK_KHR_shader_subgroup_uniform_control_flow
  bool f16 = false, f64 = false, i8 = false, i16 = false, i64 = false;  // arithmetic
  bool storage8 = false, storage16 = false;                             // loads and stores
  bool int_dot = false;  // of four bytes; accelerated: of two signed, unsigned, or one of each
  bool int_dot_signed_accelerated = false, int_dot_unsigned_accelerated = false,
       int_dot_mixed_accelerated = false;
  bool signed_zero_inf_nan = false;  // f32 keeps NaN and infinity (float controls)
  bool rounds_to_f16 = false;        // f32 converts to the nearest f16, half to even
  // f32 quotients are right where the reciprocal of the divisor is below all normal numbers.
  bool large_divisors = false;
  bool memory_model = false;
  bool f32_atomic_add = false;  // in storage buffers and shared memory
  bool async_copies = false;    // from global to shared memory, past registers
  std::vector<MatrixShape> matrices;
  // Held by a workgroup: `m` rows for each kHoldersOfRows invocations; columns and depth are
  // multiples of `n` and `k`.
  std::vector<MatrixShape> workgroup_matrices;
  bool matrix_elements = false;  // kernels can access single elements of a matrix
  bool matrix_values = false;  // and make matrices of them, reduce rows, and multiply by the result
  // Neighbours of a row that they access at once, of matrices held by a subgroup, by a workgroup.
  int64_t elements_together = 1, workgroup_elements_together = 1;

  // Vulkan does not report registers. GPUs with workgroups this small are mobile GPUs with 64
  // registers for each invocation; more values spill to memory.
  bool few_registers() const { return !runs_on_cpu && max_workgroup_invocations <= 256; }

  // The largest of the matrices of such elements that a subgroup holds; null: none.
  const MatrixShape* LargestMatrix(DType a, DType b) const {
    const MatrixShape* best = nullptr;
    const auto size = [](const MatrixShape& s) { return int64_t{s.m} * s.n * s.k; };
    for (const MatrixShape& s : matrices)
      if (s.a == a && s.b == b && (best == nullptr || size(s) > size(*best))) best = &s;
    return best;
  }

  // Of a workgroup, however few others then run beside it.
  int64_t most_shared_bytes() const { return std::max(max_shared_bytes, max_large_shared_bytes); }

  std::array<int64_t, 3> max_grid() const { return {max_grid_x, max_grid_y, max_grid_z}; }

  // The subgroup size that kernels ask for: wider subgroups leave fewer registers for each
  // invocation, and below 16 some units are half idle.
  int64_t narrow_subgroup_size() const {
    return std::clamp<int64_t>(16, min_subgroup_size, max_subgroup_size);
  }
  // The subgroup size of kernels with cooperative matrices: matrix units work on the smallest one.
  int64_t matrix_subgroup_size() const { return min_subgroup_size; }

  // The limits.
  static constexpr Field kFields[] = {
      FieldOf<&Caps::max_workgroup_invocations>("max_workgroup_invocations",
                                                "Invocations in a workgroup."),
      FieldOf<&Caps::max_workgroup_x>("max_workgroup_x", "Invocations along x."),
      FieldOf<&Caps::max_workgroup_y>("max_workgroup_y", "Invocations along y."),
      FieldOf<&Caps::max_workgroup_z>("max_workgroup_z", "Invocations along z."),
      FieldOf<&Caps::max_grid_x>("max_grid_x", "Workgroups along x."),
      FieldOf<&Caps::max_grid_y>("max_grid_y", "Workgroups along y."),
      FieldOf<&Caps::max_grid_z>("max_grid_z", "Workgroups along z."),
      FieldOf<&Caps::max_shared_bytes>("max_shared_bytes", "Shared memory of a workgroup."),
      FieldOf<&Caps::max_operands>("max_operands", "Storage buffers one kernel can bind."),
      FieldOf<&Caps::max_operand_bytes>("max_operand_bytes", "Range of one storage buffer."),
      FieldOf<&Caps::max_scalar_bytes>("max_scalar_bytes", "Push constants."),
      FieldOf<&Caps::subgroup_size>("subgroup_size", "Invocations in a subgroup; 1 when unusable."),
      FieldOf<&Caps::min_subgroup_size>("min_subgroup_size", "Smallest size a kernel can rely on."),
      FieldOf<&Caps::max_subgroup_size>("max_subgroup_size", "Largest size a kernel can rely on."),
      FieldOf<&Caps::cache_bytes>("cache_bytes",
                                  "Largest working set at the speed of a cache; 0: not known."),
      FieldOf<&Caps::flops_per_byte>("flops_per_byte",
                                     "Operations in the time of copying a byte; 0: not known."),
  };
};

}  // namespace forge::codegen
