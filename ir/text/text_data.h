// SPDX-License-Identifier: Apache-2.0
// Tensor data in the text form. Private to ir/text*.cc.
#pragma once
#include "base/bytes.h"
#include "ir/text/lexer.h"
#include "ir/type/type.h"

namespace forge::ir {

// Returns decimal text "[1, 0.5]" when it parses back to the same bytes, otherwise hexadecimal
// digits x"00ff". A complex number is its real part, then its imaginary part.
//   type: constant, dense, of fixed width
std::string DataText(const Type& type, const Bytes& bytes);
// Parses either form. errors: InvalidArgument with line and column
absl::StatusOr<Bytes> ParseData(Lexer& lexer, const Type& type);

}  // namespace forge::ir
