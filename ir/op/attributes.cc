// SPDX-License-Identifier: Apache-2.0
#include "ir/op/attributes.h"

#include <bit>

#include "base/hash.h"
#include "base/quote.h"

namespace forge::ir {
namespace {

template <class T>
const T& At(const Field& f, const void* record) {
  return *static_cast<const T*>(f.at_const(record));
}

// Calls `use` with the field as its own C++ type. Enums, which are one byte, come as uint8_t.
template <class Use>
auto Visit(const Field& f, const void* record, Use use) {
  switch (f.kind) {
    case FieldKind::kBool:
      return use(At<bool>(f, record));
    case FieldKind::kInt:
      return use(At<int64_t>(f, record));
    case FieldKind::kFloat:
      return use(At<double>(f, record));
    case FieldKind::kString:
      return use(At<std::string>(f, record));
    case FieldKind::kInts:
      return use(At<std::vector<int64_t>>(f, record));
    case FieldKind::kFloats:
      return use(At<std::vector<double>>(f, record));
    case FieldKind::kDType:
      return use(At<DType>(f, record));
    case FieldKind::kEnum:
      return use(At<uint8_t>(f, record));
    case FieldKind::kDim:
      return use(At<Dim>(f, record));
    case FieldKind::kDims:
      return use(At<Dims>(f, record));
    case FieldKind::kType:
      return use(At<Type>(f, record));
    case FieldKind::kNumber:
      return use(At<Number>(f, record));
    case FieldKind::kFunction:
      break;
  }
  return use(At<Function*>(f, record));
}

// A choice that no word stands for is a bug of the op, but prints all the same.
std::string ChoiceText(const Field& f, uint8_t choice) {
  const auto words = ChoicesOf(f);
  return choice < words.size() ? std::string(words[choice]) : std::to_string(choice);
}

template <class T>
std::string ListText(const std::vector<T>& list) {
  std::string out = "[";
  for (const T& v : list) out += fmt::format("{}{}", out.size() > 1 ? ", " : "", v);
  return out + "]";
}

struct TextOf {
  const Field& field;
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const Number& v) const { return v.ToText(); }
  std::string operator()(const std::string& v) const { return Quoted(v); }
  std::string operator()(const std::vector<int64_t>& v) const { return ListText(v); }
  std::string operator()(const std::vector<double>& v) const { return ListText(v); }
  std::string operator()(DType v) const { return std::string(Name(v)); }
  std::string operator()(uint8_t v) const { return ChoiceText(field, v); }
  std::string operator()(const Dim& v) const { return v.ToText(); }
  std::string operator()(const Dims& v) const { return ToText(v); }
  std::string operator()(const Type& v) const { return v.ToText(); }
  std::string operator()(const Function* v) const {
    return v != nullptr ? "@" + NameText(NameOf(*v)) : "@";
  }
};

uint64_t HashType(const Type& t, uint64_t seed);

struct HashOf {
  uint64_t seed;
  uint64_t operator()(bool v) const { return HashMix(seed, v); }
  uint64_t operator()(int64_t v) const { return HashMix(seed, static_cast<uint64_t>(v)); }
  uint64_t operator()(double v) const { return HashMix(seed, std::bit_cast<uint64_t>(v)); }
  uint64_t operator()(const Number& v) const {
    return HashMix(HashMix(HashMix(seed, static_cast<uint64_t>(v.kind())), v.bits()),
                   v.imaginary_bits());
  }
  uint64_t operator()(const std::string& v) const { return HashText(v, seed); }
  template <class T>
  uint64_t operator()(const std::vector<T>& v) const {
    uint64_t h = HashMix(seed, v.size());
    for (const T& x : v) h = HashOf{h}(x);
    return h;
  }
  uint64_t operator()(DType v) const { return HashMix(seed, static_cast<uint64_t>(v)); }
  uint64_t operator()(uint8_t v) const { return HashMix(seed, v); }
  uint64_t operator()(const Dim& v) const { return HashMix(seed, v.Hash()); }
  uint64_t operator()(const Type& v) const { return HashType(v, seed); }
  uint64_t operator()(const Function* v) const {
    return v != nullptr ? HashText(NameOf(*v), seed) : seed;
  }
};

uint64_t HashType(const Type& t, uint64_t seed) {
  uint64_t h = HashMix(seed, static_cast<uint64_t>(t.kind()));
  if (t.kind() == Type::Kind::kSequence || t.kind() == Type::Kind::kOptional)
    return HashType(t.element(), h);
  h = HashOf{HashMix(h, static_cast<uint64_t>(t.dtype()))}(t.shape());
  return t.encoding() != nullptr ? HashText(t.encoding()->name(), h) : h;
}

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return SameBits(x, y); });
}

absl::Status WrongKind(const Field& f) {
  static constexpr std::string_view kKinds[] = {"a boolean",
                                                "an integer",
                                                "a number",
                                                "a string",
                                                "a list of integers",
                                                "a list of numbers",
                                                "a dtype",
                                                "a choice",
                                                "a dimension",
                                                "a list of dimensions",
                                                "a type",
                                                "a function",
                                                "a number"};
  return InvalidArgument("{} takes {}", f.name, kKinds[static_cast<size_t>(f.kind)]);
}

Attribute AsNumber(Attribute value) {
  if (const auto* v = std::get_if<int64_t>(&value)) return Number(*v);
  if (const auto* v = std::get_if<double>(&value)) return Number(*v);
  return value;
}

absl::Status SetChoice(const Field& f, void* record, const Attribute& value) {
  const auto* word = std::get_if<std::string>(&value);
  if (word == nullptr) return WrongKind(f);
  const auto words = ChoicesOf(f);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != *word) continue;
    *static_cast<uint8_t*>(f.at(record)) = static_cast<uint8_t>(i);
    return absl::OkStatus();
  }
  return InvalidArgument("{} takes one of {}, not '{}'", f.name, f.choices, *word);
}

}  // namespace

Attribute GetAttribute(const Field& field, const void* record) {
  if (field.kind == FieldKind::kEnum) return ChoiceText(field, At<uint8_t>(field, record));
  return Visit(field, record, [](const auto& v) -> Attribute {
    if constexpr (std::is_same_v<std::decay_t<decltype(v)>, uint8_t>)
      return false;  // enums were answered above
    else
      return v;
  });
}

absl::Status SetAttribute(const Field& field, void* record, Attribute value) {
  if (field.kind == FieldKind::kEnum) return SetChoice(field, record, value);
  if (field.kind == FieldKind::kNumber) value = AsNumber(std::move(value));
  return Visit(field, record, [&](const auto& current) -> absl::Status {
    using T = std::decay_t<decltype(current)>;
    if constexpr (!std::is_same_v<T, uint8_t>) {
      if (T* v = std::get_if<T>(&value)) {
        *static_cast<T*>(field.at(record)) = std::move(*v);
        return absl::OkStatus();
      }
    }
    return WrongKind(field);
  });
}

absl::Status SetFromDims(const Field& field, void* record, const Dims& known) {
  const bool one = field.kind == FieldKind::kInt || field.kind == FieldKind::kDim;
  const bool many = field.kind == FieldKind::kInts || field.kind == FieldKind::kDims;
  if (!one && !many) return InvalidArgument("{} cannot be computed by the model", field.name);
  if (one && known.size() != 1)
    return InvalidArgument("{} takes one number, not {}", field.name, known.size());
  if (field.kind == FieldKind::kDims) return SetAttribute(field, record, known);
  if (field.kind == FieldKind::kDim) return SetAttribute(field, record, known[0]);
  if (!AllConstant(known))
    return InvalidArgument("{} takes numbers, not {}", field.name, ToText(known));
  if (many) return SetAttribute(field, record, Constants(known));
  return SetAttribute(field, record, known[0].constant());
}

std::vector<std::string_view> ChoicesOf(const Field& field) {
  std::vector<std::string_view> out;
  std::string_view left = field.choices;
  while (!left.empty()) {
    const size_t bar = std::min(left.find('|'), left.size());
    out.push_back(left.substr(0, bar));
    left.remove_prefix(std::min(bar + 1, left.size()));
  }
  return out;
}

const Field* FindField(Fields fields, std::string_view name) {
  for (const Field& f : fields)
    if (f.name == name) return &f;
  return nullptr;
}

bool FieldEqual(const Field& field, const void* a, const void* b) {
  return Visit(field, a, [&](const auto& x) {
    using T = std::decay_t<decltype(x)>;
    const T& y = At<T>(field, b);
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::vector<double>>)
      return SameBits(x, y);
    else
      return x == y;
  });
}

bool FieldsEqual(Fields fields, const void* a, const void* b) {
  if (a == b) return true;
  return std::all_of(fields.begin(), fields.end(),
                     [&](const Field& f) { return FieldEqual(f, a, b); });
}

uint64_t HashFields(Fields fields, const void* record, uint64_t seed) {
  for (const Field& f : fields) seed = Visit(f, record, HashOf{HashText(f.name, seed)});
  return seed;
}

void BindFields(Fields fields, void* record, const Bindings& values) {
  for (const Field& f : fields) {
    if (f.kind == FieldKind::kDim) {
      Dim& d = *static_cast<Dim*>(f.at(record));
      d = d.Bind(values);
    } else if (f.kind == FieldKind::kDims) {
      for (Dim& d : *static_cast<Dims*>(f.at(record))) d = d.Bind(values);
    } else if (f.kind == FieldKind::kType) {
      Type& t = *static_cast<Type*>(f.at(record));
      t = t.Bind(values);
    }
  }
}

bool FieldsAreBound(Fields fields, const void* record) {
  return std::ranges::all_of(fields, [&](const Field& f) {
    if (f.kind == FieldKind::kDim)
      return static_cast<const Dim*>(f.at_const(record))->is_constant();
    if (f.kind == FieldKind::kDims)
      return AllConstant(*static_cast<const Dims*>(f.at_const(record)));
    if (f.kind != FieldKind::kType) return true;
    const Type& t = *static_cast<const Type*>(f.at_const(record));
    return !t.is_tensor() || t.is_constant();
  });
}

std::string FieldText(const Field& field, const void* record) {
  return Visit(field, record, TextOf{field});
}

std::string FieldsText(Fields fields, const void* record, const void* defaults) {
  std::string out;
  for (const Field& f : fields) {
    if (FieldEqual(f, record, defaults)) continue;
    out += fmt::format("{}{} = {}", out.empty() ? "{" : ", ", f.name, FieldText(f, record));
  }
  return out.empty() ? out : out + "}";
}

}  // namespace forge::ir
