// SPDX-License-Identifier: Apache-2.0
#include "ir/op/op.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/op/attributes.h"
#include "ir/op/define.h"
#include "ir/op/signature.h"

namespace forge::ir {
namespace {

// Operands as the signature has them: optional ones that were left out at the end are absent, so
// that a rule may look at each by its place.
template <class T>
std::vector<T> Padded(const OpDef& def, std::span<const T> in) {
  const Signature& s = SignatureOf(def);
  const size_t fixed = s.inputs.size() - (!s.inputs.empty() && s.inputs.back().variadic);
  std::vector<T> out(in.begin(), in.end());
  if (out.size() < fixed) out.resize(fixed);
  return out;
}

Types TypesOf(ValueSpan in) {
  Types types;
  for (const Value& v : in) types.push_back(v ? v.type() : Type());
  return types;
}

bool AnyComplex(const Types& types) {
  return std::any_of(types.begin(), types.end(),
                     [](const Type& t) { return t && Has(kComplexTypes, t.dtype()); });
}

// True when an operand or a result is complex.
bool TakesComplex(const AnyOp& op, const Types& in) {
  if (AnyComplex(in)) return true;
  const absl::StatusOr<Types> out = op.Infer(in);
  return out.ok() && AnyComplex(*out);
}

}  // namespace

absl::StatusOr<Types> AnyOp::Infer(TypeSpan in) const {
  if (def_->infer == &InferBySignature) return InferBySignature(*this, in);
  FORGE_ASSIGN_OR_RETURN(const SignatureMatch match, CheckSignature(*def_, in));
  if (!match.ranked) return InferUnranked(*this, in);
  auto out = def_->infer(*this, Padded(*def_, in));
  if (out.ok()) return out;
  return Annotate(out.status(), fmt::format("{}({})", name(), OperandsText(*def_, in)));
}

absl::StatusOr<Types> AnyOp::InferRuntimeValued(TypeSpan in) const {
  if (auto match = CheckSignature(*def_, in); !match.ok()) return match.status();
  return InferUnranked(*this, in);
}

Values AnyOp::Decompose(Function& f, ValueSpan in) const {
  Values made;
  if (def_->decompose != nullptr) made = def_->decompose(*this, f, Padded(*def_, in));
  if (!made.empty() || def_->decompose_complex == nullptr) return made;
  return TakesComplex(*this, TypesOf(in)) ? def_->decompose_complex(*this, f, in) : Values();
}

bool AnyOp::saves() const {
  const Field* field = FindField(def_->fields, def_->info.saved);
  return field != nullptr && *static_cast<const bool*>(field->at_const(self()));
}

AnyOp AnyOp::Saving(bool with) const {
  const Field* field = FindField(def_->fields, def_->info.saved);
  if (field == nullptr || saves() == with) return *this;
  std::shared_ptr<void> op = def_->make(self());
  *static_cast<bool*>(field->at(op.get())) = with;
  return AnyOp(*def_, std::move(op));
}

Values AnyOp::Gradient(const GradArgs& g) const {
  // Gradients of complex numbers are those of their parts, as PyTorch defines them.
  if (def_->decompose_complex != nullptr &&
      (AnyComplex(TypesOf(g.in)) || AnyComplex(TypesOf(g.out))))
    return GradientByParts(*this, g);
  return def_->gradient != nullptr ? def_->gradient(*this, g) : Values();
}

Cost AnyOp::Cost(TypeSpan in) const { return AreRanked(in) ? def_->cost(*this, in) : ir::Cost{}; }

std::optional<Dims> AnyOp::Contents(TypeSpan in, Known known) const {
  return def_->contents != nullptr ? def_->contents(*this, in, known) : std::nullopt;
}

absl::Status AnyOp::Magnitude(Eval& e) const {
  return def_->magnitude != nullptr ? def_->magnitude(*this, e) : Evaluate(e);
}

AnyOp AnyOp::Bind(const Bindings& values) const {
  if (def_->make == nullptr || values.empty()) return *this;
  std::shared_ptr<void> bound = def_->make(self());
  BindFields(def_->fields, bound.get(), values);
  return AnyOp(*def_, std::move(bound));
}

bool AnyOp::is_bound() const { return FieldsAreBound(def_->fields, self()); }

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
