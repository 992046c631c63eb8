// SPDX-License-Identifier: Apache-2.0
// Signatures of ops, executed: what ir/op/op.h says about OpInfo::inputs and outputs.
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
  DType (*of)(DType) = nullptr;           // what the dtype is made of that of `like` by; null: it
  std::optional<std::vector<Axis>> axes;  // absent: any rank
  bool optional = false, variadic = false;
};

struct Signature {
  std::vector<Parameter> inputs, outputs;
  const Parameter& input(size_t i) const { return inputs[std::min(i, inputs.size() - 1)]; }
};

// errors: InvalidArgument with the place in the text
absl::StatusOr<Signature> ParseSignature(std::string_view inputs, std::string_view outputs);
// Parsed once for each op and kept; safe from any thread. FORGE_CHECKs that the text parses.
const Signature& SignatureOf(const OpDef& def);

// What the names of a signature stand for after its operands were checked.
struct SignatureMatch {
  absl::flat_hash_map<std::string, Dim> dims;    // "n"
  absl::flat_hash_map<std::string, Dims> rests;  // "*d"
  bool ranked = true;  // false: an operand is still unranked, so axes are not known
};

// Checks arity, kinds, dtypes, ranks and equal dimensions of `in`; trailing optional operands may
// be left out.  errors: InvalidArgument naming op, operand and types
absl::StatusOr<SignatureMatch> CheckSignature(const OpDef& def, TypeSpan in);

// Result types as the outputs of the signature say: for ops that declare BySignature.
//   errors: InvalidArgument
absl::StatusOr<Types> InferBySignature(const AnyOp& op, TypeSpan in);

// Result types while an operand's rank is unknown or an attribute is runtime-valued: all unranked.
//   errors: InvalidArgument when a result's dtype follows neither from an operand nor an attribute
absl::StatusOr<Types> InferUnranked(const AnyOp& op, TypeSpan in);

// "x: f32[2, 3], w: f32[4]": operands as messages show them.
std::string OperandsText(const OpDef& def, TypeSpan in);

}  // namespace forge::ir
