// SPDX-License-Identifier: Apache-2.0
#include "ir/op/signature.h"

#include <bit>
#include <charconv>
#include <mutex>
#include <shared_mutex>

#include "base/narrow_float.h"
#include "base/quote.h"

namespace forge::ir {
namespace {

struct DTypeClass {
  std::string_view name;
  DTypes types;
};
constexpr DTypeClass kClasses[] = {{"float", kFloatTypes},     {"int", kIntTypes},
                                   {"signed", kSignedTypes},   {"unsigned", kUnsignedTypes},
                                   {"complex", kComplexTypes}, {"real", kRealTypes},
                                   {"ordered", kOrderedTypes}, {"number", kNumberTypes},
                                   {"any", kAnyTypes},         {"narrow", kStoredOnlyTypes}};

std::string ClassNames() {
  std::string out;
  for (const DTypeClass& c : kClasses) out += (out.empty() ? "" : ", ") + std::string(c.name);
  return out;
}

std::string_view Trim(std::string_view s) {
  const size_t first = s.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(' ') - first + 1);
}

std::vector<std::string_view> SplitList(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  if (Trim(text).empty()) return out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    out.push_back(Trim(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// "float", "f32", "float|bool"; 0 when unknown
DTypes ParseDTypes(std::string_view text) {
  DTypes out = 0;
  for (std::string_view word : SplitList(text, '|')) {
    DTypes types = 0;
    if (auto t = ParseDType(word)) types = Bit(*t);
    for (const DTypeClass& c : kClasses)
      if (c.name == word) types = c.types;
    if (types == 0) return 0;
    out |= types;
  }
  return out;
}

absl::StatusOr<Parameter::Axis> ParseAxis(std::string_view text) {
  if (IsWord(text)) return Parameter::Axis{Parameter::Axis::kName, std::string(text)};
  if (text.starts_with('*') && IsWord(text.substr(1)))
    return Parameter::Axis{Parameter::Axis::kRest, std::string(text.substr(1))};
  Parameter::Axis axis{Parameter::Axis::kNumber, {}};
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, axis.number);
  if (error == std::errc() && rest == end && axis.number >= 0) return axis;
  return InvalidArgument("'{}' is no dimension", text);
}

absl::StatusOr<std::vector<Parameter::Axis>> ParseAxes(std::string_view text) {
  std::vector<Parameter::Axis> out;
  int rests = 0;
  for (std::string_view word : SplitList(text, ',')) {
    FORGE_ASSIGN_OR_RETURN(Parameter::Axis axis, ParseAxis(word));
    rests += axis.kind == Parameter::Axis::kRest;
    out.push_back(std::move(axis));
  }
  if (rests > 1) return InvalidArgument("'[{}]' has more than one *", text);
  return out;
}

bool TakeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text = Trim(text.substr(0, text.size() - suffix.size()));
  return true;
}

// "x: float[n, *d]?" with '?' and '...' after it
absl::StatusOr<Parameter> ParseParameter(std::string_view text) {
  Parameter p;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return InvalidArgument("'{}' has no ':'", text);
  p.name = Trim(text.substr(0, colon));
  if (!IsWord(p.name)) return InvalidArgument("'{}' is no name", p.name);
  std::string_view type = Trim(text.substr(colon + 1));
  p.variadic = TakeSuffix(type, "...");
  p.optional = TakeSuffix(type, "?");
  if (const size_t open = type.find('['); open != std::string_view::npos) {
    if (!type.ends_with(']')) return InvalidArgument("'{}' lacks a ']'", type);
    FORGE_ASSIGN_OR_RETURN(p.axes, ParseAxes(type.substr(open + 1, type.size() - open - 2)));
    type = Trim(type.substr(0, open));
  }
  p.dtype_text = type;
  if (type.starts_with('=') && IsWord(type.substr(1))) {
    p.like = type.substr(1);
  } else if (type.starts_with("real(") && type.ends_with(')')) {
    p.like = type.substr(5, type.size() - 6);
    p.of = &RealOf;
  } else if (type.starts_with("wide(") && type.ends_with(')')) {
    p.like = type.substr(5, type.size() - 6);
    p.of = &WideOf;
  } else if (type.starts_with("complex(") && type.ends_with(')')) {
    p.like = type.substr(8, type.size() - 9);
    p.of = &ComplexOf;
  } else if (type == "sequence" || type == "optional" || type == "value") {
    p.kind = type == "sequence"   ? Parameter::Class::kSequence
             : type == "optional" ? Parameter::Class::kOptional
                                  : Parameter::Class::kValue;
    p.dtypes = kAnyTypes;
  } else if (p.dtypes = ParseDTypes(type); p.dtypes == 0) {
    return InvalidArgument("'{}' is neither a dtype nor a class of them ({})", type, ClassNames());
  }
  return p;
}

absl::StatusOr<std::vector<Parameter>> ParseParameters(std::string_view text) {
  std::vector<Parameter> out;
  for (std::string_view part : SplitList(text, ';')) {
    if (!out.empty() && out.back().variadic)
      return InvalidArgument("'...' stands before '{}'", part);
    FORGE_ASSIGN_OR_RETURN(Parameter p, ParseParameter(part));
    out.push_back(std::move(p));
  }
  return out;
}

const Field* FieldOfKind(const OpDef& def, std::string_view name, FieldKind kind) {
  for (const Field& f : def.fields)
    if (f.name == name && f.kind == kind) return &f;
  return nullptr;
}

// The checks of one call, and what the names stand for so far.
class Checker {
 public:
  Checker(const OpDef& def, TypeSpan in) : def_(def), signature_(SignatureOf(def)), in_(in) {}

  absl::StatusOr<SignatureMatch> Run() {
    FORGE_RETURN_IF_ERROR(CheckArity());
    for (size_t i = 0; i < in_.size(); ++i) {
      if (!in_[i]) continue;
      const Parameter& p = signature_.input(i);
      if (absl::Status s = CheckOperand(p, in_[i]); !s.ok())
        return InvalidArgument("{}: operand {} is {}: {}", def_.info.name, p.name, in_[i].ToText(),
                               Message(s));
    }
    return std::move(match_);
  }

 private:
  absl::Status CheckArity() const {
    const auto& inputs = signature_.inputs;
    const bool variadic = !inputs.empty() && inputs.back().variadic;
    if (in_.size() > inputs.size() && !variadic)
      return InvalidArgument("{}: takes {} operands, not {}", def_.info.name, inputs.size(),
                             in_.size());
    for (size_t i = 0; i < std::max(inputs.size(), in_.size()); ++i) {
      const Parameter& p = signature_.input(i);
      if (p.optional || (i >= in_.size() && p.variadic)) continue;
      if (i >= in_.size() || !in_[i])
        return InvalidArgument("{}: operand {} is missing", def_.info.name, p.name);
    }
    return absl::OkStatus();
  }

  absl::Status CheckOperand(const Parameter& p, const Type& t) {
    using Kind = Type::Kind;
    if (p.kind == Parameter::Class::kValue) return absl::OkStatus();
    if (p.kind == Parameter::Class::kSequence && t.kind() != Kind::kSequence)
      return InvalidArgument("expected a sequence");
    if (p.kind == Parameter::Class::kOptional && t.kind() != Kind::kOptional)
      return InvalidArgument("expected an optional");
    if (p.kind != Parameter::Class::kTensor) return absl::OkStatus();
    if (t.kind() != Kind::kTensor && t.kind() != Kind::kUnranked)
      return InvalidArgument("expected a tensor");
    FORGE_RETURN_IF_ERROR(CheckDType(p, t));
    if (t.kind() == Kind::kTensor) return CheckShape(p, t.shape());
    match_.ranked = false;
    return absl::OkStatus();
  }

  absl::Status CheckDType(const Parameter& p, const Type& t) const {
    if (!p.like.empty()) {
      const Type* other = Operand(p.like);
      if (other == nullptr || !*other) return absl::OkStatus();
      const DType expected = p.of ? p.of(other->dtype()) : other->dtype();
      if (expected == t.dtype()) return absl::OkStatus();
      return InvalidArgument("expected {} like {}", Name(expected), p.like);
    }
    if (Has(p.dtypes, t.dtype())) return absl::OkStatus();
    return InvalidArgument("expected {}", p.dtype_text);
  }

  const Type* Operand(std::string_view name) const {
    for (size_t i = 0; i < in_.size() && i < signature_.inputs.size(); ++i)
      if (signature_.inputs[i].name == name) return &in_[i];
    return nullptr;
  }

  absl::Status CheckShape(const Parameter& p, const Dims& shape) {
    if (!p.axes) return absl::OkStatus();
    size_t rest_at = p.axes->size();
    for (size_t i = 0; i < p.axes->size(); ++i)
      if ((*p.axes)[i].kind == Parameter::Axis::kRest) rest_at = i;
    const bool has_rest = rest_at < p.axes->size();
    const size_t least = p.axes->size() - has_rest;
    if (has_rest ? shape.size() < least : shape.size() != least)
      return InvalidArgument("expected {}rank {}", has_rest ? "at least " : "", least);
    const size_t rest = shape.size() - least;
    for (size_t i = 0, at = 0; i < p.axes->size(); ++i) {
      const size_t n = i == rest_at ? rest : 1;
      FORGE_RETURN_IF_ERROR(CheckAxis((*p.axes)[i], std::span(shape).subspan(at, n)));
      at += n;
    }
    return absl::OkStatus();
  }

  absl::Status CheckAxis(const Parameter::Axis& axis, std::span<const Dim> dims) {
    if (axis.kind == Parameter::Axis::kRest) return CheckRest(axis.name, dims);
    if (axis.kind == Parameter::Axis::kNumber) {
      if (!Unify(dims[0], axis.number).ok())
        return InvalidArgument("expected a dimension of {}, got {}", axis.number, dims[0].ToText());
      return absl::OkStatus();
    }
    auto [known, added] = match_.dims.try_emplace(axis.name, dims[0]);
    if (added) return absl::OkStatus();
    auto unified = Unify(known->second, dims[0]);
    if (!unified.ok())
      return InvalidArgument("dimension {} should be {}, got {}", axis.name, known->second.ToText(),
                             dims[0].ToText());
    known->second = *unified;
    return absl::OkStatus();
  }

  absl::Status CheckRest(const std::string& name, std::span<const Dim> dims) {
    auto [known, added] = match_.rests.try_emplace(name, dims.begin(), dims.end());
    if (added) return absl::OkStatus();
    Dims& before = known->second;
    bool equal = before.size() == dims.size();
    for (size_t i = 0; equal && i < dims.size(); ++i) {
      auto unified = Unify(before[i], dims[i]);
      equal = unified.ok();
      if (equal) before[i] = *unified;
    }
    if (equal) return absl::OkStatus();
    return InvalidArgument("dimensions {} should be {}, got {}", name, ToText(before),
                           ToText(Dims(dims.begin(), dims.end())));
  }

  const OpDef& def_;
  const Signature& signature_;
  TypeSpan in_;
  SignatureMatch match_;
};

// What `p.like` names: an operand, or null and then a dtype attribute may bear the name.
const Type* OperandNamed(const Signature& s, std::string_view name, TypeSpan in) {
  for (size_t i = 0; i < s.inputs.size() && i < in.size(); ++i)
    if (s.inputs[i].name == name) return &in[i];
  return nullptr;
}

absl::StatusOr<DType> ResultDType(const OpDef& def, const void* self, const Parameter& p,
                                  TypeSpan in) {
  if (p.like.empty()) {
    if (std::has_single_bit(p.dtypes)) return static_cast<DType>(std::countr_zero(p.dtypes));
  } else if (const Type* t = OperandNamed(SignatureOf(def), p.like, in)) {
    if (*t) return p.of ? p.of(t->dtype()) : t->dtype();
  } else if (const Field* f = FieldOfKind(def, p.like, FieldKind::kDType)) {
    return *static_cast<const DType*>(f->at_const(self));
  }
  return InvalidArgument("{}: the dtype of result {} is not known", def.info.name, p.name);
}

absl::StatusOr<Dims> ResultShape(const OpDef& def, const Parameter& p, const SignatureMatch& m) {
  Dims out;
  for (const Parameter::Axis& axis : *p.axes) {
    if (axis.kind == Parameter::Axis::kNumber) {
      out.emplace_back(axis.number);
    } else if (axis.kind == Parameter::Axis::kName && m.dims.contains(axis.name)) {
      out.push_back(m.dims.at(axis.name));
    } else if (axis.kind == Parameter::Axis::kRest && m.rests.contains(axis.name)) {
      const Dims& rest = m.rests.at(axis.name);
      out.insert(out.end(), rest.begin(), rest.end());
    } else {
      return InvalidArgument("{}: dimension {} of result {} is not known", def.info.name, axis.name,
                             p.name);
    }
  }
  return out;
}

absl::StatusOr<Type> TypeOfResult(const OpDef& def, const void* self, const Parameter& p,
                                  TypeSpan in, const SignatureMatch& match) {
  const Type* like = OperandNamed(SignatureOf(def), p.like, in);
  if (!p.axes && like != nullptr) {
    if (!*like) return InvalidArgument("{}: operand {} is missing", def.info.name, p.like);
    if (!like->is_tensor()) return *like;
    return p.of ? Type::Tensor(p.of(like->dtype()), like->shape()) : like->With(EncodingRef());
  }
  FORGE_ASSIGN_OR_RETURN(const DType dtype, ResultDType(def, self, p, in));
  if (!match.ranked) return Type::Unranked(dtype);
  if (!p.axes)
    return InvalidArgument("{}: the shape of result {} is not known", def.info.name, p.name);
  FORGE_ASSIGN_OR_RETURN(Dims shape, ResultShape(def, p, match));
  return Type::Tensor(dtype, std::move(shape));
}

}  // namespace

absl::StatusOr<Signature> ParseSignature(std::string_view inputs, std::string_view outputs) {
  Signature s;
  FORGE_ASSIGN_OR_RETURN(s.inputs, ParseParameters(inputs));
  FORGE_ASSIGN_OR_RETURN(s.outputs, ParseParameters(outputs));
  return s;
}

const Signature& SignatureOf(const OpDef& def) {
  static std::shared_mutex mutex;
  static auto& known = *new absl::flat_hash_map<const OpDef*, std::unique_ptr<const Signature>>();
  {
    std::shared_lock lock(mutex);
    if (auto at = known.find(&def); at != known.end()) return *at->second;
  }
  auto parsed = ParseSignature(def.info.inputs, def.info.outputs);
  if (!parsed.ok()) {
    const std::string why = fmt::format("{}: {}", def.info.name, Message(parsed.status()));
    CheckFailed(why.c_str(), __FILE__, __LINE__);
  }
  std::unique_lock lock(mutex);
  auto [at, added] = known.try_emplace(&def);
  if (added) at->second = std::make_unique<const Signature>(*std::move(parsed));
  return *at->second;
}

absl::StatusOr<SignatureMatch> CheckSignature(const OpDef& def, TypeSpan in) {
  return Checker(def, in).Run();
}

absl::StatusOr<Types> InferBySignature(const AnyOp& op, TypeSpan in) {
  const OpDef& def = op.def();
  FORGE_ASSIGN_OR_RETURN(const SignatureMatch match, CheckSignature(def, in));
  Types out;
  for (const Parameter& p : SignatureOf(def).outputs) {
    if (p.optional && !op.saves()) continue;
    FORGE_ASSIGN_OR_RETURN(Type t, TypeOfResult(def, op.self(), p, in, match));
    out.push_back(std::move(t));
  }
  return out;
}

absl::StatusOr<Types> InferUnranked(const AnyOp& op, TypeSpan in) {
  const OpDef& def = op.def();
  Types out;
  for (const Parameter& p : SignatureOf(def).outputs) {
    if (p.optional && !op.saves()) continue;
    if (p.variadic) return InvalidArgument("{}: the number of results is not known", def.info.name);
    FORGE_ASSIGN_OR_RETURN(const DType dtype, ResultDType(def, op.self(), p, in));
    out.push_back(Type::Unranked(dtype));
  }
  return out;
}

std::string OperandsText(const OpDef& def, TypeSpan in) {
  const Signature& s = SignatureOf(def);
  std::string out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    const std::string_view name = s.inputs.empty() ? std::string_view() : s.input(i).name;
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", name, in[i].ToText());
  }
  return out;
}

}  // namespace forge::ir
