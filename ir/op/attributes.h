// SPDX-License-Identifier: Apache-2.0
// Attributes of ops by reflection over their Fields: what the text form, model.bin, hashing,
// binding and passes need, once for all ops.
#pragma once
#include <variant>

#include "base/number.h"
#include "ir/op/op.h"

namespace forge::ir {

// One field's value with its record forgotten. Enums are the word of their choice.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, DType, Dim, Dims, Type, Function*, Number>;

Attribute GetAttribute(const Field& field, const void* record);
// Fields of kind kNumber take integers and doubles too.
//   errors: InvalidArgument (a value of another kind, an unknown choice), naming the field
absl::Status SetAttribute(const Field& field, void* record, Attribute value);
// A runtime-valued attribute's value from what is known of it: a list, or exactly one for kInt and
// kDim; only kDim and kDims take dimensions that are no numbers.
//   errors: InvalidArgument (a kind that cannot be runtime-valued, or other than that), naming the
//   field
absl::Status SetFromDims(const Field& field, void* record, const Dims& known);

// The words of an enum's choices, "none|top_left" cut at the bars.
std::vector<std::string_view> ChoicesOf(const Field& field);
// null when no field has the name
const Field* FindField(Fields fields, std::string_view name);

bool FieldEqual(const Field& field, const void* a, const void* b);  // floats compared by their bits
bool FieldsEqual(Fields fields, const void* a, const void* b);
// The same in every process: functions count by name, symbols too.
uint64_t HashFields(Fields fields, const void* record, uint64_t seed);
// Binds every Dim, Dims and Type field.
void BindFields(Fields fields, void* record, const Bindings& values);
// The value as the text form has it: 4, 0.5, (1.5, -2), "s", [1, 2], f32, top_left, [n, 3], f32[n],
// @body. Floats print the shortest digits that parse back to the same bits.
std::string FieldText(const Field& field, const void* record);
// "{axis = 1, groups = 4}" without the fields that equal `defaults`; empty when none is left.
std::string FieldsText(Fields fields, const void* record, const void* defaults);

}  // namespace forge::ir
