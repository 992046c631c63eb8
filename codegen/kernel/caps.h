// SPDX-License-Identifier: Apache-2.0
// What a GPU can do, as queried and verified: all that schedules and printers know of it. No
// vendor.
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

// The defaults are the limits that every Vulkan 1.1 device guarantees, and no optional feature.
struct Caps {
  int64_t max_workgroup_invocations = 128;
  int64_t max_workgroup_x = 128, max_workgroup_y = 128, max_workgroup_z = 64;
  int64_t max_grid_x = 65535, max_grid_y = 65535, max_grid_z = 65535;  // workgroups
  int64_t max_shared_bytes = 16384;
  int64_t max_operands = 4;               // storage buffers one kernel can bind
  int64_t max_operand_bytes = 128 << 20;  // range of one storage buffer
  int64_t max_scalar_bytes = 128;         // push constants
  int64_t subgroup_size = 1;  // the size a kernel gets when it asks for none; 1: not usable
  int64_t min_subgroup_size = 1,
          max_subgroup_size = 1;  // sizes a kernel can rely on when it asks for them; 1: none
  bool runs_on_cpu = false;       // shared memory and barriers are dear, caches are large
  int64_t cores = 1;              // that workgroups are spread over, where that is known
  // Measured on the device, as powers of two so that noise makes no other kernels; 0: not known.
  int64_t cache_bytes = 0;     // what is read again is not read from memory, up to so many
  int64_t flops_per_byte = 0;  // multiply-adds are two, bytes are of a copy
  bool subgroup_arithmetic = false, subgroup_shuffle = false, subgroup_ballot = false;
  // Subgroups are whole again behind a loop that some of their invocations leave earlier.
  bool subgroup_reconvergence = false;
  bool subgroup_uniform_control_flow = false;  // kernels may declare that they rely on it
  bool f16 = false, f64 = false, i8 = false, i16 = false, i64 = false;  // arithmetic
  bool storage8 = false, storage16 = false;                             // loads and stores
  bool int_dot = false;  // of four bytes; accelerated: of two signed, unsigned, or one of each
  bool int_dot_signed_accelerated = false, int_dot_unsigned_accelerated = false,
       int_dot_mixed_accelerated = false;
  bool signed_zero_inf_nan = false;  // f32 keeps NaN and infinity (float controls)
  bool memory_model = false;
  bool f32_atomic_add = false;  // in storage buffers and shared memory
  std::vector<MatrixShape> matrices;
  bool matrix_elements = false;  // kernels see their elements one by one

  // No query tells how many registers an invocation has. GPUs with workgroups this small are mobile
  // ones of 64, where what does not fit goes to memory.
  bool few_registers() const { return !runs_on_cpu && max_workgroup_invocations <= 256; }

  std::array<int64_t, 3> max_grid() const { return {max_grid_x, max_grid_y, max_grid_z}; }

  // Of kernels that ask for a size: wide subgroups share the registers of a unit among more
  // invocations, and below 16 some units are half idle.
  int64_t narrow_subgroup_size() const {
    return std::clamp<int64_t>(16, min_subgroup_size, max_subgroup_size);
  }
  // Of kernels that use matrices, whose units are fed by the smallest subgroups that a device has.
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
      FieldOf<&Caps::cache_bytes>("cache_bytes", "Read again quickly; 0: not known."),
      FieldOf<&Caps::flops_per_byte>("flops_per_byte", "Of what is copied; 0: not known."),
  };
};

}  // namespace forge::codegen
