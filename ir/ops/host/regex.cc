// SPDX-License-Identifier: Apache-2.0
// Regular expressions, by RE2, whose time is linear in the text for every pattern.
#include "ir/op/define.h"
#include "ir/ops/host/strings.h"

#ifdef FORGE_HAS_RE2
#include <re2/re2.h>
#endif

namespace forge::ir {

#ifdef FORGE_HAS_RE2

absl::Status RegexFullMatch::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  if (!x.is_tensor() || x.dtype() != DType::kString)
    return InvalidArgument("{} where strings are needed", x.type().ToText());
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 compiled(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled.ok()) return InvalidArgument("pattern '{}': {}", pattern, compiled.error());
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(DType::kBool, x.shape()));
  for (int64_t i = 0; i < x.elements(); ++i) {
    const std::string_view text = x.string(i);
    out.SetI64(i, RE2::FullMatch(re2::StringPiece(text.data(), text.size()), compiled) ? 1 : 0);
  }
  e.out(0) = std::move(out);
  return absl::OkStatus();
}

#else

absl::Status RegexFullMatch::evaluate(Eval&) const {
  return Unimplemented("this build has no regular expressions: RE2 was not found");
}

#endif

FORGE_DEFINE_OP(RegexFullMatch)

}  // namespace forge::ir
