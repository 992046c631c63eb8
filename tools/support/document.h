// SPDX-License-Identifier: Apache-2.0
// Texts that programs generate: files, and documents that .ci/run checks.
#pragma once
#include <string>
#include <string_view>

#include "base/status.h"

namespace forge::tools {

// Text for a cell of a Markdown table, which a bar would end.
std::string MarkdownCell(std::string_view text);

absl::Status WriteText(const std::string& path, std::string_view text);  // as WriteFile

// Prints the document, or compares it with a file where one is named.
//   command: what makes the file anew     errors: NotFound, Internal (the file is stale)
absl::Status PrintOrCheck(std::string_view document, const std::string& file,
                          std::string_view command);

}  // namespace forge::tools
