// SPDX-License-Identifier: Apache-2.0
// Generated texts: files, and documents that .ci/run checks.
#pragma once
#include <string>
#include <string_view>

#include "base/status.h"

namespace forge::tools {

// Escapes text for a cell of a Markdown table.
std::string MarkdownCell(std::string_view text);

// Writes a file; errors as WriteFile.
absl::Status WriteText(const std::string& path, std::string_view text);

// Prints the document, or compares it with `file` where one is named.
//   command: regenerates the file; named in messages     errors: NotFound, Internal (the file is
//   stale)
absl::Status PrintOrCheck(std::string_view document, const std::string& file,
                          std::string_view command);

}  // namespace forge::tools
