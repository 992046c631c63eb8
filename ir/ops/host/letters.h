// SPDX-License-Identifier: Apache-2.0
// Upper and lower case of letters in UTF-8, by tables of our own: those of the system depend on its
// locale.
#pragma once
#include <string>
#include <string_view>

#include "ir/ops/host/strings.h"

namespace forge::ir {

// The text with its letters in that case: ASCII, Latin-1, Latin Extended-A, Greek and Cyrillic;
// other characters, and bytes that are no UTF-8, stay.  source: Unicode 15, simple case mappings
std::string WithLetters(std::string_view text, LetterCase to);

}  // namespace forge::ir
