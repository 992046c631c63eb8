// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace forge {

// Returns `text` with each byte that is not part of well-formed UTF-8 replaced by U+FFFD.
//   source: the Unicode standard, table 3-7
std::string WellFormedUtf8(std::string_view text);

}  // namespace forge
