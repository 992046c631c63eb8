// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/node.h"

#include <algorithm>

#include "formats/onnx/graph.h"
#include "formats/onnx/ops.h"

namespace forge::formats {
namespace {

using Attribute = onnx::AttributeProto;

// The elements of a scalar or short list of integers: shapes and axes are short.
std::optional<std::vector<int64_t>> IntsOf(const ir::HostValue& v) {
  constexpr int64_t kMost = 1024;
  if (v.rank() > 1 || v.elements() > kMost || !Has(kIntTypes, v.dtype())) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < v.elements(); ++i) out.push_back(v.i64(i));
  return out;
}

ir::Value ReadConstant(OnnxScope& scope, const std::string& name, const ir::HostValue& contents,
                       ir::Variable::Role role) {
  const ir::Type type = contents.type();
  ir::Variable* v = scope.module.ShareVariable(
      {.name = name,
       .role = role,
       .type = type,
       .init = ir::Variable::Storage{contents.shared_bytes(), type, {}}});
  return scope.fn.Read(v);
}

}  // namespace

ir::Value ValueOf(OnnxScope& scope, const std::string& name) {
  OnnxValue& entry = scope.values.at(name);
  if (!entry.value && entry.constant)
    entry.value = ReadConstant(scope, name, *entry.constant, entry.role);
  return entry.value;
}

std::string OnnxNode::where() const {
  return fmt::format("node '{}' ({})", NameOfNode(proto_), proto_.op_type());
}

int OnnxNode::since() const { return op_.since; }

// ---- attributes -------------------------------------------------------------------------------

bool OnnxNode::Has(std::string_view name) const {
  return std::ranges::any_of(proto_.attribute(),
                             [&](const Attribute& a) { return a.name() == name; });
}

Attribute* OnnxNode::Find(std::string_view name, Attribute::AttributeType type) {
  for (int i = 0; i < proto_.attribute_size(); ++i) {
    Attribute& a = *proto_.mutable_attribute(i);
    if (a.name() != name) continue;
    if (asked_[static_cast<size_t>(i)]) continue;
    asked_[static_cast<size_t>(i)] = true;
    if (a.type() == type) return &a;
    Fail("attribute '{}' has kind {} instead of {}", name, Attribute::AttributeType_Name(a.type()),
         Attribute::AttributeType_Name(type));
    return nullptr;
  }
  return nullptr;
}

int64_t OnnxNode::Int(std::string_view name, int64_t fallback) {
  const int64_t value = Int64(name, fallback);
  if (value == fallback || (value >= -INT32_MAX && value <= INT32_MAX)) return value;
  Fail("attribute '{}' is {}", name, value);
  return fallback;
}

int64_t OnnxNode::Int64(std::string_view name, int64_t fallback) {
  const Attribute* a = Find(name, Attribute::INT);
  return a != nullptr ? a->i() : fallback;
}

double OnnxNode::Float(std::string_view name, double fallback) {
  const Attribute* a = Find(name, Attribute::FLOAT);
  return a != nullptr ? static_cast<double>(a->f()) : fallback;
}

std::string OnnxNode::String(std::string_view name, std::string_view fallback) {
  const Attribute* a = Find(name, Attribute::STRING);
  return a != nullptr ? a->s() : std::string(fallback);
}

std::vector<int64_t> OnnxNode::Ints(std::string_view name, std::vector<int64_t> fallback) {
  const Attribute* a = Find(name, Attribute::INTS);
  if (a == nullptr) return fallback;
  return {a->ints().begin(), a->ints().end()};
}

std::vector<double> OnnxNode::Floats(std::string_view name) {
  const Attribute* a = Find(name, Attribute::FLOATS);
  if (a == nullptr) return {};
  return {a->floats().begin(), a->floats().end()};
}

std::vector<std::string> OnnxNode::Strings(std::string_view name) {
  const Attribute* a = Find(name, Attribute::STRINGS);
  if (a == nullptr) return {};
  return {a->strings().begin(), a->strings().end()};
}

std::optional<ir::HostValue> OnnxNode::Tensor(std::string_view name) {
  Attribute* a = Find(name, Attribute::TENSOR);
  if (a == nullptr) return std::nullopt;
  absl::StatusOr<ir::HostValue> value = TakeOnnxTensor(*a->mutable_t(), scope_.files);
  if (value.ok()) return *std::move(value);
  Fail("attribute '{}': {}", name, Message(value.status()));
  return std::nullopt;
}

void OnnxNode::Ignore(std::string_view name) {
  for (int i = 0; i < proto_.attribute_size(); ++i)
    if (proto_.attribute(i).name() == name) asked_[static_cast<size_t>(i)] = true;
}

void OnnxNode::CheckAttributes() {
  Ignore("consumed_inputs");  // a hint for memory, gone since opset 6
  for (int i = 0; i < proto_.attribute_size(); ++i) {
    const std::string& name = proto_.attribute(i).name();
    if (asked_[static_cast<size_t>(i)]) continue;
    Fail("attribute '{}' is not an attribute of {} as of opset {}, or is given twice", name,
         proto_.op_type(), since());
  }
}

// ---- operands ---------------------------------------------------------------------------------

ir::Value OnnxNode::MakeConstant(const ir::HostValue& value) {
  const std::string name = proto_.output_size() > 0 ? proto_.output(0) + ".constant" : "constant";
  return ReadConstant(scope_, name, value, ir::Variable::Role::kConstant);
}

ir::Value OnnxNode::in(size_t i) {
  return HasInput(i) ? ValueOf(scope_, proto_.input(static_cast<int>(i))) : ir::Value();
}

const ir::Type& OnnxNode::type(size_t i) {
  static const ir::Type kAbsentType;
  const ir::Value value = in(i);
  return value ? value.type() : kAbsentType;
}

void OnnxNode::NoteUnknown(size_t operand) {
  const auto i = static_cast<int64_t>(operand);
  if (std::ranges::find(unknown_, i) == unknown_.end()) unknown_.push_back(i);
}

std::optional<ir::HostValue> OnnxNode::Constant(size_t i) {
  std::optional<ir::HostValue> value = ConstantOf(i);
  if (!value || (value->is_tensor() && value->dtype() != DType::kString)) return value;
  Fail("input {} is {}, where numbers are needed", i, value->type().ToText());
  return std::nullopt;
}

std::optional<ir::HostValue> OnnxNode::ConstantOf(size_t i) {
  if (!HasInput(i)) return std::nullopt;
  const OnnxValue& entry = scope_.values.at(proto_.input(static_cast<int>(i)));
  if (entry.constant || !entry.value) return entry.constant;
  const ir::Variable* v = fn().VariableOf(entry.value.id);  // by way of an Identity
  if (v == nullptr || !v->init || v->role == ir::Variable::Role::kState) {
    NoteUnknown(i);
    return std::nullopt;
  }
  absl::StatusOr<ir::HostValue> value =
      ir::HostValue::Of(v->type.dtype(), ir::Constants(v->type.shape()), v->init->bytes);
  return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
}

std::optional<std::vector<int64_t>> OnnxNode::ConstantInts(size_t i) {
  if (const std::optional<ir::HostValue> v = Constant(i)) return IntsOf(*v);
  const std::optional<ir::Dims> dims = Contents(i);
  if (!dims || !ir::AllConstant(*dims)) return std::nullopt;
  return ir::Constants(*dims);
}

std::optional<Number> OnnxNode::ConstantNumber(size_t i) {
  const std::optional<ir::HostValue> v = Constant(i);
  if (!v || v->elements() != 1) return std::nullopt;
  return v->number(0);
}

std::optional<ir::Dims> OnnxNode::Contents(size_t i) {
  if (const std::optional<ir::HostValue> v = Constant(i)) {
    const std::optional<std::vector<int64_t>> ints = IntsOf(*v);
    return ints ? std::optional<ir::Dims>({ints->begin(), ints->end()}) : std::nullopt;
  }
  const ir::Value value = in(i);
  std::optional<ir::Dims> known = value ? scope_.dims.ContentsOf(value.id) : std::nullopt;
  if (known) std::erase(unknown_, static_cast<int64_t>(i));
  return known;
}

// ---- bodies -----------------------------------------------------------------------------------

std::vector<std::string> OnnxNode::Captures() const {
  std::vector<std::string> names;
  for (const Attribute& a : proto_.attribute()) {
    if (!a.has_g()) continue;
    for (std::string& name : FreeNames(a.g())) {
      const auto at = scope_.values.find(name);
      const bool constant = at != scope_.values.end() && at->second.constant.has_value();
      if (!constant && std::ranges::find(names, name) == names.end())
        names.push_back(std::move(name));
    }
  }
  return names;
}

ir::Values OnnxNode::ValuesOf(std::span<const std::string> names) {
  ir::Values values;
  for (const std::string& name : names) {
    if (!scope_.values.contains(name)) {
      Fail("it reads '{}', which is not defined", name);
      return {};
    }
    values.push_back(ValueOf(scope_, name));
  }
  return values;
}

ir::Function* OnnxNode::Body(std::string_view name, const ir::Types& inputs) {
  Attribute* a = Find(name, Attribute::GRAPH);
  if (a == nullptr) {
    Fail("attribute '{}' is missing", name);
    return nullptr;
  }
  absl::StatusOr<ir::Function*> body = ImportBody(scope_, *a->mutable_g(), inputs, Captures());
  if (body.ok()) return *body;
  Fail("{}: {}", name, Message(body.status()));
  return nullptr;
}

std::optional<ir::Types> OnnxNode::TryBody(std::string_view name, const ir::Types& inputs) {
  constexpr int kMostTrials = 2;  // one within the other: each level multiplies the work
  const auto at = std::ranges::find(proto_.attribute(), name, &Attribute::name);
  if (at == proto_.attribute().end() || scope_.trials >= kMostTrials) return std::nullopt;
  onnx::GraphProto graph = at->g();  // an import takes the weights out of it
  ir::Module trial(&scope_.module);
  const absl::StatusOr<ir::Function*> body = ImportBody(scope_, graph, inputs, Captures(), &trial);
  if (!body.ok()) return std::nullopt;
  ir::Types types;
  for (const auto& result : (*body)->results()) types.push_back((*body)->type(result.value));
  return types;
}

std::pair<int, int> OnnxNode::BodyArity(std::string_view name) const {
  for (const Attribute& a : proto_.attribute())
    if (a.name() == name) return {a.g().input_size(), a.g().output_size()};
  return {0, 0};
}

}  // namespace forge::formats
