// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace forge {

// `text` with U+FFFD in place of each byte that is no part of well-formed UTF-8.
//   source: the Unicode standard, table 3-7
std::string WellFormedUtf8(std::string_view text);

}  // namespace forge
