// SPDX-License-Identifier: Apache-2.0
// Execution of signatures; ir/op/op.h describes the syntax at OpInfo.
#pragma once
#include "absl/container/flat_hash_map.h"
#include "ir/op/op.h"

namespace forge::ir {

// One operand or result of a signature.
struct Parameter {
  struct Axis {
    enum Kind : uint8_t { kName, kNumber, kRest } kind;
    std::string name;  // of kName and kRest
    int64_t number = 0;
  };
  enum class Class : uint8_t { kTensor, kSequence, kOptional, kValue };
  std::string name;
  std::string dtype_text;  // as written: "float", "=x"
  Class kind = Class::kTensor;
  DTypes dtypes = 0;                      // 0: the dtype of `like`
  std::string like;                       // an earlier operand, or an attribute that is a dtype
  DType (*of)(DType) = nullptr;           // maps the dtype of `like`; null: identity
  std::optional<std::vector<Axis>> axes;  // absent: any rank
  bool optional = false, variadic = false;
};

struct Signature {
  std::vector<Parameter> inputs, outputs;
  const Parameter& input(size_t i) const { return inputs[std::min(i, inputs.size() - 1)]; }
};

// Parses a signature. errors: InvalidArgument with the place in the text
absl::StatusOr<Signature> ParseSignature(std::string_view inputs, std::string_view outputs);
// Returns the signature of an op, parsed once. May be called from any thread. FORGE_CHECKs that the
// text parses.
const Signature& SignatureOf(const OpDef& def);

// The values of the names of a signature for given operands.
struct SignatureMatch {
  absl::flat_hash_map<std::string, Dim> dims;    // "n"
  absl::flat_hash_map<std::string, Dims> rests;  // "*d"
  bool ranked = true;  // false: an operand is unranked, so axes are unknown
};

// Checks the arity, kinds, dtypes, ranks and equal dimensions of operands; trailing optional
// operands may be left out. errors: InvalidArgument naming op, operand and types
absl::StatusOr<SignatureMatch> CheckSignature(const OpDef& def, TypeSpan in);

// Infers result types from the outputs of the signature, for ops that declare BySignature.
//   errors: InvalidArgument
absl::StatusOr<Types> InferBySignature(const AnyOp& op, TypeSpan in);

// Infers unranked result types, for operands of unknown rank and runtime-valued attributes.
//   errors: InvalidArgument (the dtype of a result depends neither on an operand nor on an
//   attribute)
absl::StatusOr<Types> InferUnranked(const AnyOp& op, TypeSpan in);

// Describes operands for messages: "x: f32[2, 3], w: f32[4]".
std::string OperandsText(const OpDef& def, TypeSpan in);

}  // namespace forge::ir
