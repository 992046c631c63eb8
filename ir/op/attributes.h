// SPDX-License-Identifier: Apache-2.0
// Access to the attributes of all ops by reflection, for the text form, model.bin, hashing, binding
// and passes.
#pragma once
#include <variant>

#include "base/number.h"
#include "ir/op/op.h"

namespace forge::ir {

// The value of a field. Enums are given by name.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, DType, Dim, Dims, Type, Function*, Number>;

Attribute GetAttribute(const Field& field, const void* record);
// Sets a field. Fields of kind kNumber also accept integers and doubles.
//   errors: InvalidArgument (a value of another kind, an unknown choice), naming the field
absl::Status SetAttribute(const Field& field, void* record, Attribute value);
// Sets a runtime-valued attribute from known elements: a list, or exactly one for kInt and kDim.
// Only kDim and kDims accept symbolic dimensions.
//   errors: InvalidArgument naming the field (a kind that cannot be runtime-valued, a wrong number
//   of elements, a symbol)
absl::Status SetFromDims(const Field& field, void* record, const Dims& known);

// The names of the values of an enum: "none|top_left" split at the bars.
std::vector<std::string_view> ChoicesOf(const Field& field);
// Returns the field with this name; null when there is none.
const Field* FindField(Fields fields, std::string_view name);

bool FieldEqual(const Field& field, const void* a, const void* b);  // floats compared by their bits
bool FieldsEqual(Fields fields, const void* a, const void* b);
// Returns a hash that is equal in every process; functions and symbols are hashed by name.
uint64_t HashFields(Fields fields, const void* record, uint64_t seed);
// Replaces symbols in every Dim, Dims and Type field.
void BindFields(Fields fields, void* record, const Bindings& values);
// True when no Dim, Dims or Type field has a symbol.
bool FieldsAreBound(Fields fields, const void* record);
// Returns the value in the text form: 4, 0.5, (1.5, -2), "s", [1, 2], f32, top_left, [n, 3],
// f32[n], @body. Floats have the shortest digits that parse back to the same bits.
std::string FieldText(const Field& field, const void* record);
// Returns "{axis = 1, groups = 4}", without the fields that equal `defaults`; empty when all do.
std::string FieldsText(Fields fields, const void* record, const void* defaults);

}  // namespace forge::ir
