// SPDX-License-Identifier: Apache-2.0
// Choices: a schedule with its parameters, in a text form that a cache stores and a search varies.
#pragma once
#include "codegen/region/schedule.h"

namespace forge::codegen {

struct Choice {
  const Schedule* schedule = nullptr;
  std::shared_ptr<void> parameters;
  std::string ToText() const;  // "matmul_shuffle(subgroups=4, shared=8, lanes_on_rows=0)"
};

// Returns the first schedule that fits with its defaults.
//   errors: Unimplemented, with the reason of each schedule
absl::StatusOr<Choice> DefaultChoice(const Region& r);
// Returns the last one that fits, which compiles fastest.  errors: Unimplemented
absl::StatusOr<Choice> SimplestChoice(const Region& r);
// Returns up to `most` choices that fit: the default first, the others by how many parameters
// differ from the defaults of their schedule.
std::vector<Choice> ChoicesFor(const Region& r, size_t most);
// Parses the text form of a choice.
//   errors: InvalidArgument (no such schedule or number), Unimplemented (it does not fit)
absl::StatusOr<Choice> ParseChoice(const Region& r, std::string_view text);
Program Generate(const Region& r, const Choice& choice);
// The argument that this choice wants in an encoding of its own, prepared once; nullopt: none.
std::optional<Prepared> PreparedFor(const Region& r, const Choice& choice);

// Whether fusing the region's reduction is faster than a second launch: the schedule of the anchor
// alone computes it, with tiles that are as fast.
Verdict ReductionPays(const Region& r);

// A key for cached choices: equal for regions with equal bodies and the same default choice on a
// device. Emits no kernel.  errors: those of DefaultChoice
absl::StatusOr<uint64_t> TuningKey(const Region& r);

}  // namespace forge::codegen
