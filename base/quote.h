// SPDX-License-Identifier: Apache-2.0
// How names and strings of a model, which may hold any byte, stand in texts.
#pragma once
#include <string>
#include <string_view>

namespace forge {

// In double quotes; quotes, backslashes and bytes outside printable ASCII escaped as \", \\, \n, \t
// and \xNN; bytes of UTF-8 stay.
std::string Quoted(std::string_view text);
// As it is when it is a word (a letter or '_', then letters, digits and '_'), else Quoted().
std::string NameText(std::string_view name);
bool IsWord(std::string_view name);

}  // namespace forge
