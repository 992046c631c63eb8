// SPDX-License-Identifier: Apache-2.0
// Compiles regions and runs them on the kernel machine.
#pragma once
#include "codegen/region/schedule.h"
#include "ir/type/host_value.h"
#include "tests/support/kernel_machine.h"

namespace forge::testing {

// A function of one node whose operands are its arguments; absent types are absent operands.
std::unique_ptr<ir::Function> FunctionOf(const ir::AnyOp& op, ir::TypeSpan in);

// Runs every launch of `program`; each kernel is verified first, and its SPIR-V validated and
// turned into Metal.
//   in: the region's arguments     errors: also those of RunKernel
absl::StatusOr<std::vector<ir::HostValue>> RunProgram(const codegen::Region& region,
                                                      const codegen::Program& program,
                                                      std::span<const ir::HostValue* const> in,
                                                      const MachineOptions& options = {});

// Devices that differ in what schedules look at.
codegen::Caps PoorestCaps();         // the guaranteed limits and no feature
codegen::Caps CpuCaps();             // a software device with subgroups of 8
codegen::Caps GpuCaps();             // a large GPU with every optional feature but matrices
codegen::Caps SmallRangeCaps();      // the same with storage buffers of 512 bytes at most
codegen::Caps PoorSmallRangeCaps();  // the poorest with those, and as many
codegen::Caps MatrixCaps();          // the same with matrices of f16, 16 x 8 x 16
codegen::Caps MatrixElementCaps();   // and kernels that see their elements
codegen::Caps GroupMatrixCaps();     // and with matrices that a workgroup holds, on CUDA alone

}  // namespace forge::testing
