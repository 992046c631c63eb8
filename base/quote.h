// SPDX-License-Identifier: Apache-2.0
// Quoting of names and strings of a model, which may contain any byte.
#pragma once
#include <string>
#include <string_view>

namespace forge {

// Returns the text in double quotes. Quotes, backslashes and unprintable ASCII are escaped as \",
// \\, \n, \t and \xNN; UTF-8 is kept.
std::string Quoted(std::string_view text);
// Returns the name if it is a word (a letter or '_', then letters, digits and '_'), otherwise
// Quoted().
std::string NameText(std::string_view name);
bool IsWord(std::string_view name);

}  // namespace forge
