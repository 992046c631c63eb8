// SPDX-License-Identifier: Apache-2.0
#include "tools/support/document.h"

#include <fstream>
#include <iostream>
#include <sstream>

#include "base/platform.h"

namespace forge::tools {

std::string MarkdownCell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

absl::Status WriteText(const std::string& path, std::string_view text) {
  return WriteFile(path, AsBytes(text));
}

absl::Status PrintOrCheck(std::string_view document, const std::string& file,
                          std::string_view command) {
  if (file.empty()) {
    std::cout << document;
    return absl::OkStatus();
  }
  std::ifstream in(file);
  if (!in) return NotFound("{} cannot be opened", file);
  std::ostringstream content;
  content << in.rdbuf();
  if (content.str() == document) return absl::OkStatus();
  return Internal("{} is stale; regenerate it with: {} >{}", file, command, file);
}

}  // namespace forge::tools
