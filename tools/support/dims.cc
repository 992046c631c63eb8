// SPDX-License-Identifier: Apache-2.0
#include "tools/support/dims.h"

#include <charconv>

namespace forge::tools {

absl::StatusOr<std::map<std::string, int64_t>> ParseDims(const std::vector<std::string>& dims) {
  std::map<std::string, int64_t> out;
  for (const std::string& d : dims) {
    const size_t eq = d.rfind('=');
    int64_t n = 0;
    const char* end = d.data() + d.size();
    const bool good = eq != d.npos && eq > 0 && eq + 1 < d.size();
    const auto parsed = good ? std::from_chars(d.data() + eq + 1, end, n)
                             : std::from_chars_result{d.data(), std::errc()};
    if (!good || parsed.ec != std::errc() || parsed.ptr != end || n < 0)
      return InvalidArgument("'{}' is not SYMBOL=N", d);
    out[d.substr(0, eq)] = n;
  }
  return out;
}

}  // namespace forge::tools
