// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cases/case_inputs.h"

namespace forge::tools {

// Parses cases from the text that ConcreteCase::ToText prints, in which operands may also say what
// their values are (case_inputs.h): "matmul{transpose_b = true}(f16[64, 32], f16[8, 32])".
//   errors: InvalidArgument naming the text and what is wrong with it
absl::StatusOr<std::vector<ir::ConcreteCase>> ParseCase(const std::string& text);

}  // namespace forge::tools
