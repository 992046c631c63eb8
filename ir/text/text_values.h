// SPDX-License-Identifier: Apache-2.0
// Dimensions, types and attributes in the text form. Private to ir/text*.cc.
#pragma once
#include "absl/functional/function_ref.h"
#include "ir/graph/module.h"
#include "ir/text/lexer.h"

namespace forge::ir {

// Parses values from a lexer. Errors: InvalidArgument with line and column.
class ValueParser {
 public:
  // Symbols that `module` lacks are created with default bounds.
  ValueParser(Lexer& lexer, Module& module) : lexer_(lexer), module_(module) {}

  absl::StatusOr<Dim> ParseDim();
  absl::StatusOr<Dims> ParseDims();
  absl::StatusOr<Type> ParseType();
  // Returns a function by name.
  using Body = absl::FunctionRef<absl::StatusOr<Function*>(const std::string& name)>;
  absl::Status ParseAttribute(const Field& field, void* record, Body body);
  // Parses "axis = 1, groups = 4" up to and including `end`; "" stands for the end of the text.
  //   taken: parses a value in another way and returns true, or returns false
  using Taken = absl::FunctionRef<absl::StatusOr<bool>(const Field& field)>;
  absl::Status ParseAttributes(const OpDef& def, void* self, std::string_view end, Body body,
                               Taken taken);

 private:
  absl::StatusOr<Dim> ParseProduct(bool negative);
  absl::StatusOr<Dim> ParseFactor();
  absl::StatusOr<Dim> ParseCall(const Token& function);
  absl::StatusOr<Type> ParseTensor();
  absl::Status Enter();  // enters a nesting level; fails beyond the limit
  void Leave() { --depth_; }

  Lexer& lexer_;
  Module& module_;
  int depth_ = 0;
};

}  // namespace forge::ir
