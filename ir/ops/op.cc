// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/op.h"

#include "base/hash.h"
#include "ir/attributes.h"
#include "ir/module.h"
#include "ir/signature.h"

namespace forge::ir {
namespace {

// Operands as the signature has them: optional ones that were left out at the end are absent, so
// that a rule may look at each by its place.
Types Padded(const OpDef& def, TypeSpan in) {
  const Signature& s = SignatureOf(def);
  const size_t fixed = s.inputs.size() - (!s.inputs.empty() && s.inputs.back().variadic);
  Types out(in.begin(), in.end());
  if (out.size() < fixed) out.resize(fixed);
  return out;
}

}  // namespace

const Type& Value::type() const {
  static const Type kNone;
  return fn != nullptr ? fn->type(id) : kNone;
}

absl::StatusOr<Types> AnyOp::Infer(TypeSpan in) const {
  if (def_->infer == &InferBySignature) return InferBySignature(*def_, self(), in);
  FORGE_ASSIGN_OR_RETURN(const SignatureMatch match, CheckSignature(*def_, in));
  if (!match.ranked) return InferUnranked(*def_, self(), in);
  auto out = def_->infer(*def_, self(), Padded(*def_, in));
  if (out.ok()) return out;
  return Annotate(out.status(), fmt::format("{}({})", name(), OperandsText(*def_, in)));
}

absl::StatusOr<Types> AnyOp::InferLate(TypeSpan in) const {
  if (auto match = CheckSignature(*def_, in); !match.ok()) return match.status();
  return InferUnranked(*def_, self(), in);
}

AnyOp AnyOp::Bind(const Bindings& values) const {
  if (def_->make == nullptr || values.empty()) return *this;
  std::shared_ptr<void> bound = def_->make(self());
  BindFields(def_->fields, bound.get(), values);
  return AnyOp(*def_, std::move(bound));
}

std::string AnyOp::ToText() const {
  std::string out(name());
  if (def_->make != nullptr) out += FieldsText(def_->fields, self(), def_->make(nullptr).get());
  return out;
}

uint64_t AnyOp::Hash() const { return HashFields(def_->fields, self(), HashText(name())); }

bool operator==(const AnyOp& a, const AnyOp& b) {
  return a.def_ == b.def_ && FieldsEqual(a.def_->fields, a.self(), b.self());
}

}  // namespace forge::ir
