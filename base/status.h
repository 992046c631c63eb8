// SPDX-License-Identifier: Apache-2.0
// Errors: absl::Status with formatted messages, verdicts with reasons, and FORGE_CHECK for bugs of
// Forge.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace forge {

// One function for each code that callers distinguish (see ExitStatus).
#define FORGE_STATUS_MAKER(Name, kCode)                                                       \
  template <class... A>                                                                       \
  absl::Status Name(fmt::format_string<A...> format, A&&... a) {                              \
    return absl::Status(absl::StatusCode::kCode, fmt::format(format, std::forward<A>(a)...)); \
  }
FORGE_STATUS_MAKER(InvalidArgument, kInvalidArgument)
FORGE_STATUS_MAKER(DataLoss, kDataLoss)
FORGE_STATUS_MAKER(NotFound, kNotFound)
FORGE_STATUS_MAKER(Unavailable, kUnavailable)
FORGE_STATUS_MAKER(Unimplemented, kUnimplemented)
FORGE_STATUS_MAKER(OutOfRange, kOutOfRange)
FORGE_STATUS_MAKER(ResourceExhausted, kResourceExhausted)
FORGE_STATUS_MAKER(Aborted, kAborted)
FORGE_STATUS_MAKER(Internal, kInternal)
#undef FORGE_STATUS_MAKER

// Returns the status with `where` put before its message: "softmax 'prob': axis 3 is outside rank
// 2".
absl::Status Annotate(const absl::Status& s, std::string_view where);
// The exit status of the tools and the code of the C interface: 0 OK; 2 InvalidArgument (usage,
// names, shapes); 3 DataLoss and NotFound (files); 4 Unavailable (devices); 5 Unimplemented and
// ResourceExhausted (the model cannot run on the device); 1 others.
int ExitStatus(const absl::Status& s);
// The message as a std::string_view (Debian's absl::string_view is a type of its own).
std::string_view Message(const absl::Status& s);

// Yes, or no with the reason: the answer of a device to a query.
class Verdict {
 public:
  static Verdict Yes(std::string how = {}) { return Verdict(true, std::move(how)); }
  static Verdict No(std::string why) { return Verdict(false, std::move(why)); }
  explicit operator bool() const { return yes_; }
  const std::string& text() const { return text_; }

 private:
  Verdict(bool yes, std::string text) : yes_(yes), text_(std::move(text)) {}
  bool yes_;
  std::string text_;
};

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace forge

// Prints the source location and aborts. Only for bugs of Forge, never for input.
#define FORGE_CHECK(condition)                         \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::forge::CheckFailed(#condition, __FILE__, __LINE__))

#define FORGE_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                        \
    if (absl::Status forge_status_ = (expression); !forge_status_.ok()) return forge_status_; \
  } while (false)

#define FORGE_CONCAT_INNER(a, b) a##b
#define FORGE_CONCAT(a, b) FORGE_CONCAT_INNER(a, b)
#define FORGE_ASSIGN_OR_RETURN(target, expression) \
  FORGE_ASSIGN_OR_RETURN_IMPL(FORGE_CONCAT(forge_result_, __LINE__), target, expression)
#define FORGE_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return result.status();                     \
  target = *std::move(result)
