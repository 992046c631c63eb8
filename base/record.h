// SPDX-License-Identifier: Apache-2.0
// Reflection: structs that list their fields. The attributes of ops, the parameters of schedules
// and the capabilities of devices are such structs, so the text form, model.bin, hashing, equality,
// --explain, the tuning cache and the documentation are each implemented once.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace forge {
namespace ir {
class Dim;
class Type;
class Function;
struct Variable;
}  // namespace ir

class Number;

enum class FieldKind : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kDType,
  kEnum,
  kDim,
  kDims,
  kType,
  kFunction,
  kNumber,
};

template <class F>
constexpr FieldKind KindOf() {
  using T = std::remove_cv_t<F>;
  if constexpr (std::is_same_v<T, bool>)
    return FieldKind::kBool;
  else if constexpr (std::is_same_v<T, int64_t>)
    return FieldKind::kInt;
  else if constexpr (std::is_same_v<T, double>)
    return FieldKind::kFloat;
  else if constexpr (std::is_same_v<T, std::string>)
    return FieldKind::kString;
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return FieldKind::kInts;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return FieldKind::kFloats;
  else if constexpr (std::is_same_v<T, DType>)
    return FieldKind::kDType;
  else if constexpr (std::is_enum_v<T>) {
    static_assert(sizeof(T) == 1);
    return FieldKind::kEnum;
  } else if constexpr (std::is_same_v<T, ir::Dim>)
    return FieldKind::kDim;
  else if constexpr (std::is_same_v<T, std::vector<ir::Dim>>)
    return FieldKind::kDims;
  else if constexpr (std::is_same_v<T, Number>)
    return FieldKind::kNumber;
  else if constexpr (std::is_same_v<T, ir::Type>)
    return FieldKind::kType;
  else {
    static_assert(std::is_same_v<T, ir::Function*>, "no such field kind");
    return FieldKind::kFunction;
  }
}

struct Field {
  std::string_view name, doc;
  FieldKind kind;
  void* (*at)(void* record);      // the only code instantiated per field
  std::string_view choices = {};  // enums: "none|top_left"; ints: "16|32|64" to search
  const void* at_const(const void* record) const { return at(const_cast<void*>(record)); }
};
using Fields = std::span<const Field>;

template <class>
struct MemberOf;
template <class C, class F>
struct MemberOf<F C::*> {
  using Record = C;
  using Type = F;
};

// FieldOf<&Softmax::axis>("axis", "Negative counts from the end.")
template <auto kMember>
constexpr Field FieldOf(std::string_view name, std::string_view doc,
                        std::string_view choices = {}) {
  using M = MemberOf<decltype(kMember)>;
  return {name, doc, KindOf<typename M::Type>(),
          [](void* r) -> void* { return &(static_cast<typename M::Record*>(r)->*kMember); },
          choices};
}

// The number of initialisers of the aggregate T. A static_assert compares it with kFields, so a
// missing field does not compile.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT: converts to the type of any field
};
template <class T, class... A>
consteval size_t FieldCount() {
  if constexpr (requires { T{A{}..., AnyField{}}; })
    return FieldCount<T, A..., AnyField>();
  else
    return sizeof...(A);
}

}  // namespace forge
