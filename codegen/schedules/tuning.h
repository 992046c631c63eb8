// SPDX-License-Identifier: Apache-2.0
// The ways in which a region can be compiled, as a search sees them: schedules with numbers, in
// words that a cache can keep.
#pragma once
#include "codegen/region/schedule.h"

namespace forge::codegen {

struct Choice {
  const Schedule* schedule = nullptr;
  std::shared_ptr<void> parameters;
  std::string ToText() const;  // "matmul_shuffle(subgroups=4, shared=8, lanes_on_rows=0)"
};

// The first schedule that fits with its defaults.  errors: Unimplemented, listing why each refused
absl::StatusOr<Choice> DefaultChoice(const Region& r);
// The last one, which is the quickest to compile.  errors: Unimplemented
absl::StatusOr<Choice> SimplestChoice(const Region& r);
// Every choice that fits, at most `most`: the default, then the others by how many numbers differ
// from their schedule's defaults.
std::vector<Choice> ChoicesFor(const Region& r, size_t most);
// The choice in words of an earlier ToText.
//   errors: InvalidArgument (no such schedule or number), Unimplemented (it does not fit)
absl::StatusOr<Choice> ParseChoice(const Region& r, std::string_view text);
Program Generate(const Region& r, const Choice& choice);
// What the choice would rather find made than make at every run; nullopt: nothing.
std::optional<Prepared> PreparedFor(const Region& r, const Choice& choice);

// Whether the reduction of a region is computed by the schedule that would make the anchor alone,
// with tiles as quick: others may cost more than a launch and memory do.
Verdict ReductionPays(const Region& r);

// A region in a device's eyes: equal for equal bodies that the same choice compiles by default.
// Emits nothing.  errors: as DefaultChoice
absl::StatusOr<uint64_t> TuningKey(const Region& r);

}  // namespace forge::codegen
