// SPDX-License-Identifier: Apache-2.0
// What changed between two texts, line by line.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forge::tools {

using Lines = std::vector<std::string>;

// Pairs of equal lines (place in `a`, place in `b`), rising in both: those that are unique in both
// first, then what lies between. Near-linear in time; not always the most pairs there could be.
//   source: patience diff (Bram Cohen)
std::vector<std::pair<size_t, size_t>> MatchLines(std::span<const std::string> a,
                                                  std::span<const std::string> b);

// The difference as a unified diff without file names, each hunk with three lines around it; empty
// when nothing changed.  source: POSIX diff -u
std::string UnifiedDiff(std::span<const std::string> a, std::span<const std::string> b);

Lines SplitLines(std::string_view text);  // without the line ends

}  // namespace forge::tools
