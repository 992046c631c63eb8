// SPDX-License-Identifier: Apache-2.0
// What can be read off a kernel.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// ---- who is sure to see the same value: one rule for an instruction, one walk for a block -------

// How uniformly the body of an If, For or While runs: what decides is made already.
Uniform UniformOfControl(const Kernel& k, const Inst& i);
// Computes the uniformity of what `i` makes of its operands, and of all within where it is control:
// loops are assumed uniform and corrected until nothing changes.
void PropagateUniform(Kernel& k, const Inst& i);

// Do subgroup operations follow a loop that invocations of a subgroup may leave at different trips?
// SPIR-V promises that they meet again only to kernels that declare uniform control flow.
bool JoinsSubgroupsBehindLoops(const Kernel& k);

// ---- captures -----------------------------------------------------------------------------------

// What a block, with those inside of it, takes from outside.
struct Captures {
  std::vector<Id> values;       // ascending
  std::vector<uint16_t> views;  // ascending
};
Captures CapturesOf(const Kernel& k, BlockId block);

// ---- trips --------------------------------------------------------------------------------------

bool HasLoop(const Kernel& k, BlockId block);  // with the blocks inside of it
// Of all loops that an invocation runs, at most; a loop whose end memory decides counts as one.
int64_t MostTrips(const Kernel& k);

// ---- needs --------------------------------------------------------------------------------------

// The optional features a kernel uses: what the verifier compares with a device's, and what a
// printer declares. Narrow types that are only loaded, converted and stored need no arithmetic.
struct Needs {
  bool f16 = false, f64 = false, i8 = false, i16 = false, i64 = false;
  bool storage8 = false, storage16 = false;
  bool subgroup_basic = false, subgroup_arithmetic = false, subgroup_shuffle = false;
  bool subgroup_ballot = false, subgroup_i64 = false, int_dot = false, f32 = false;
  bool matrices = false, matrix_elements = false, memory_model = false, f32_atomics = false;
};
Needs NeedsOf(const Kernel& k);

// Whether all operations on 64-bit integers have a form on two of 32 bits: products' high parts and
// reductions over subgroups do not.
bool HasHalves(const Kernel& k);

}  // namespace forge::codegen
