// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdio>
#include <cstdlib>

namespace forge {

int ExitStatus(const absl::Status& s) {
  switch (s.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return 2;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kNotFound:
      return 3;
    case absl::StatusCode::kUnavailable:
      return 4;
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
      return 5;
    default:
      return 1;
  }
}

std::string_view Message(const absl::Status& s) { return {s.message().data(), s.message().size()}; }

absl::Status Annotate(const absl::Status& s, std::string_view where) {
  if (s.ok() || where.empty()) return s;
  absl::Status out(s.code(), fmt::format("{}: {}", where, Message(s)));
  s.ForEachPayload([&out](auto url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "forge: bug: %s:%d: the check `%s` failed\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace forge
