// SPDX-License-Identifier: Apache-2.0
// Analyses of kernels.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// ---- uniformity --------------------------------------------------------------------------------

// Returns the uniformity of the control flow into the blocks of an If, For or While.
Uniform UniformOfControl(const Kernel& k, const Inst& i);
// Computes the uniformity of the results of `i`, and of all values in its blocks. Loops are assumed
// uniform and revised until nothing changes.
void PropagateUniform(Kernel& k, const Inst& i);

// True when subgroup operations follow a loop that the invocations of a subgroup may leave at
// different trips. SPIR-V guarantees reconvergence only to kernels that declare subgroup-uniform
// control flow.
bool JoinsSubgroupsBehindLoops(const Kernel& k);

// ---- captures -----------------------------------------------------------------------------------

// The values and views from outside that a block and its inner blocks use.
struct Captures {
  std::vector<Id> values;       // ascending
  std::vector<uint16_t> views;  // ascending
};
Captures CapturesOf(const Kernel& k, BlockId block);

// ---- trips --------------------------------------------------------------------------------------

bool HasLoop(const Kernel& k, BlockId block);  // including inner blocks
// Returns an upper bound of the loop trips of an invocation; a loop whose end depends on memory
// counts as one.
int64_t MostTrips(const Kernel& k);

// ---- needs --------------------------------------------------------------------------------------

// The optional features that a kernel uses: the verifier compares them with those of the device,
// and a printer declares them. Narrow types that are only loaded, converted and stored need no
// arithmetic.
struct Needs {
  bool f16 = false, f64 = false, i8 = false, i16 = false, i64 = false;
  bool storage8 = false, storage16 = false;
  bool subgroup_basic = false, subgroup_arithmetic = false, subgroup_shuffle = false;
  bool subgroup_ballot = false, subgroup_i64 = false, int_dot = false, f32 = false;
  bool matrices = false, matrix_elements = false, matrix_values = false, memory_model = false,
       f32_atomics = false;
  bool async_copies = false;
};
Needs NeedsOf(const Kernel& k);

// True when all operations on 64-bit integers can be expressed with two 32-bit integers: all but
// high products and subgroup reductions.
bool HasHalves(const Kernel& k);

}  // namespace forge::codegen
