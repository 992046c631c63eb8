// SPDX-License-Identifier: Apache-2.0
// Tensor data as the text form has it; private to ir/text*.cc.
#pragma once
#include "base/bytes.h"
#include "ir/text/lexer.h"
#include "ir/type/type.h"

namespace forge::ir {

// "[1, 0.5]" when the decimal text gives the same bytes back, else their hexadecimal digits
// x"00ff". Complex numbers are real and imaginary part in turn.
//   type: constant, dense, of fixed width
std::string DataText(const Type& type, const Bytes& bytes);
// The bytes of either form.  errors: InvalidArgument with line and column
absl::StatusOr<Bytes> ParseData(Lexer& lexer, const Type& type);

}  // namespace forge::ir
