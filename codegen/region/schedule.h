// SPDX-License-Identifier: Apache-2.0
// A schedule turns a fused region into kernels. It never sees what is fused: it asks for elements
// of the anchor's operands and hands elements of its result over, and the region does the rest.
#pragma once
#include "codegen/region/elements.h"

namespace forge::codegen {

struct Program {
  std::string kernel;  // schedule and parameters: "matmul_shuffle_8x4"
  std::vector<Launch> launches = {};
  std::vector<int64_t> scratch_bytes =
      {};  // from Region::scratch_begin() on, each aligned to 256 by the device
};

// An argument of a region in an encoding of the generator's own.
struct Prepared {
  int argument = 0;
  ir::EncodingRef encoding;
};

// Tile numbers are a Record: `parameters` names each and lists what to search.
struct Schedule {
  std::string_view name;
  Fields parameters;
  bool (*takes)(const Region& r);                            // is this its kind of anchor?
  std::shared_ptr<void> (*defaults)(const Region& r);        // from shapes and properties only
  Verdict (*fits)(const Region& r, const void* parameters);  // limits, before anything is made
  Program (*emit)(const Region& r, const void* parameters);
  // What `emit` would make of an operand at every run, and takes as it is where it has been made.
  std::optional<Prepared> (*prepares)(const Region& r, const void* parameters) = nullptr;
  bool takes_encodings = false;  // is asked about regions that are not dense
  // Whether Region::reduction() costs less beside the anchor than by itself, where these would be
  // the numbers for the anchor alone. Null: is asked about no region with one.
  Verdict (*reduces)(const Region& r, const void* alone) = nullptr;
};
std::span<const Schedule* const> AllSchedules();  // best first for each anchor

// The program of the first schedule that fits with its defaults.  errors: Unimplemented, listing
// why each refused
absl::StatusOr<Program> Generate(const Region& r);
// Whether Generate would succeed, with the schedule's name, without emitting.
Verdict CanGenerate(const Region& r);

}  // namespace forge::codegen
