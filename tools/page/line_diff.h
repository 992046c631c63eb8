// SPDX-License-Identifier: Apache-2.0
// Line-by-line difference of two texts.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forge::tools {

using Lines = std::vector<std::string>;

// Returns pairs of equal lines (index in `a`, index in `b`), ascending in both: unique lines are
// matched first, then the lines between them. Near-linear in time; the number of pairs is not
// always maximal.
//   source: patience diff (Bram Cohen)
std::vector<std::pair<size_t, size_t>> MatchLines(std::span<const std::string> a,
                                                  std::span<const std::string> b);

// Returns the difference as a unified diff without file names, with three lines of context; empty
// when the texts are equal.
//   source: POSIX diff -u
std::string UnifiedDiff(std::span<const std::string> a, std::span<const std::string> b);

Lines SplitLines(std::string_view text);  // without the line ends

}  // namespace forge::tools
