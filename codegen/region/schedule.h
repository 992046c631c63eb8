// SPDX-License-Identifier: Apache-2.0
// A schedule turns a region into kernels. It does not see the fused ops: it requests elements of
// the anchor's operands and passes elements of its result to Elements::Finish.
#pragma once
#include "codegen/region/elements.h"

namespace forge::codegen {

struct Program {
  std::string kernel;  // schedule and parameters: "matmul_shuffle_8x4"
  std::vector<Launch> launches = {};
  std::vector<int64_t> scratch_bytes =
      {};  // from Region::scratch_begin() on, each aligned to 256 by the device
};

// An argument that a schedule reads in an encoding of its own.
struct Prepared {
  int argument = 0;
  ir::EncodingRef encoding;
};

// The parameters of a schedule are a Record: `parameters` describes each field with the values that
// a search tries.
struct Schedule {
  std::string_view name;
  Fields parameters;
  bool (*takes)(const Region& r);                            // supports this anchor
  std::shared_ptr<void> (*defaults)(const Region& r);        // from shapes and capabilities
  Verdict (*fits)(const Region& r, const void* parameters);  // within the limits of the device
  Program (*emit)(const Region& r, const void* parameters);
  // The operand that `emit` transforms at every run unless it is prepared once; nullopt: none.
  std::optional<Prepared> (*prepares)(const Region& r, const void* parameters) = nullptr;
  bool takes_encodings = false;  // supports regions with operands that are not dense
  // Whether fusing Region::reduction() is faster than a second launch; `alone` are the parameters
  // for the anchor alone. Null: the schedule does not support reductions.
  Verdict (*reduces)(const Region& r, const void* alone) = nullptr;
};
std::span<const Schedule* const> AllSchedules();  // best first for each anchor

// Returns the program of the first schedule that fits with its defaults.
//   errors: Unimplemented, with the reason of each schedule
absl::StatusOr<Program> Generate(const Region& r);
// Whether Generate would succeed, with the name of the schedule; emits nothing.
Verdict CanGenerate(const Region& r);

}  // namespace forge::codegen
