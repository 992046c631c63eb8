// SPDX-License-Identifier: Apache-2.0
// Graphs of the C interface.
#include <map>
#include <memory>

#include "ir/text/parts.h"
#include "ir/training/differentiate.h"
#include "ir/type/host_value.h"
#include "runtime/forge_c.h"
#include "runtime/op_descriptions.h"

struct forge_graph {
  // Shared by a graph and its bodies; null once the model is made.
  using SharedModule = std::shared_ptr<std::unique_ptr<forge::ir::Module>>;
  forge_graph(SharedModule of, const char* name)
      : shared(std::move(of)), function((*shared)->AddFunction(name)) {}
  forge::ir::Module* module() const { return shared->get(); }

  const SharedModule shared;
  forge::ir::Function* const function;
  std::map<forge_value, std::string> types;  // those that were asked for
};

namespace {

using forge::ErrorOf;
using forge::InvalidArgument;

constexpr const char* kMain = "main";
constexpr uintptr_t kAlignment = 16;  // of elements that are used in place

// Does `work` on a graph, unless its function has failed.
template <class Work>
forge_error* OnGraph(forge_graph* graph, Work work) {
  return ErrorOf([&]() -> absl::Status {
    if (graph == nullptr) return InvalidArgument("graph must not be NULL");
    if (graph->module() == nullptr) return InvalidArgument("the graph is finished");
    FORGE_RETURN_IF_ERROR(graph->function->status());
    FORGE_RETURN_IF_ERROR(work(*graph));
    return graph->module() != nullptr ? graph->function->status() : absl::OkStatus();
  });
}

absl::StatusOr<forge::ir::Value> ValueOf(forge_graph& graph, forge_value value) {
  if (value < 0 || value >= graph.function->value_count())
    return InvalidArgument("the graph has no value {}", value);
  return graph.function->value(static_cast<uint32_t>(value));
}

absl::Status DeclareSymbol(forge_graph& graph, forge::ir::Symbol symbol) {
  if (symbol.name.empty() || graph.module()->FindSymbol(symbol.name) != nullptr)
    return InvalidArgument("the symbol name '{}' is empty or used twice", symbol.name);
  if (symbol.min > symbol.max || symbol.divisor < 1)
    return InvalidArgument("the symbol '{}' has no values", symbol.name);
  graph.module()->AddSymbol(std::make_shared<forge::ir::Symbol>(std::move(symbol)));
  return absl::OkStatus();
}

absl::Status AddInput(forge_graph& graph, const char* name, const char* type, forge_value* value) {
  if (name == nullptr || type == nullptr || value == nullptr)
    return InvalidArgument("name, type and value must not be NULL");
  FORGE_ASSIGN_OR_RETURN(forge::ir::Type parsed, forge::ir::ParseType(type, *graph.module()));
  if (!parsed.is_tensor()) return InvalidArgument("input '{}' is {}, no tensor", name, type);
  *value = graph.function->Argument(name, std::move(parsed)).id;
  return absl::OkStatus();
}

absl::StatusOr<forge::ir::Variable::Role> RoleNamed(std::string_view name) {
  using Role = forge::ir::Variable::Role;
  if (name == "constant") return Role::kConstant;
  if (name == "parameter") return Role::kParameter;
  if (name == "state") return Role::kState;
  return InvalidArgument("'{}' is no role: constant, parameter or state", name);
}

// Owns what the caller lends, from the beginning of the call; null where it lends nothing.
std::shared_ptr<const void> LentBy(const forge_variable& v) {
  if (v.release == nullptr) return nullptr;
  return {v.context, [release = v.release](void* context) { release(context); }};
}

// The elements, in place where they are lent and aligned.
forge::Bytes ElementsOf(const forge_variable& v, std::shared_ptr<const void> lent) {
  const std::span elements(static_cast<const uint8_t*>(v.data), v.bytes);
  if (lent != nullptr && reinterpret_cast<uintptr_t>(v.data) % kAlignment == 0)
    return {elements, std::move(lent)};
  return forge::Bytes(std::vector<uint8_t>(elements.begin(), elements.end()));
}

absl::Status AddVariable(forge_graph& graph, const forge_variable& v,
                         std::shared_ptr<const void> lent, forge_value* value) {
  if (v.name == nullptr || v.role == nullptr || v.type == nullptr || value == nullptr ||
      (v.data == nullptr && v.bytes > 0))
    return InvalidArgument("name, role, type, data and value must not be NULL");
  const forge::Bytes elements = ElementsOf(v, std::move(lent));
  forge::ir::Variable made{.name = v.name, .role = {}, .type = {}, .trainable = false, .init = {}};
  FORGE_ASSIGN_OR_RETURN(made.role, RoleNamed(v.role));
  FORGE_ASSIGN_OR_RETURN(made.type, forge::ir::ParseType(v.type, *graph.module()));
  if (!made.type.is_constant() || made.type.encoding() != nullptr)
    return InvalidArgument("variable '{}' is {}, not dense with fixed extents", v.name, v.type);
  FORGE_RETURN_IF_ERROR(
      forge::ir::HostValue::Of(made.type.dtype(), forge::ir::Constants(made.type.shape()), elements)
          .status());
  made.init = forge::ir::Variable::Storage{.bytes = elements, .whole = made.type, .begin = {}};
  *value = graph.function->Read(graph.module()->ShareVariable(std::move(made))).id;
  return absl::OkStatus();
}

struct Results {
  forge_value* values;
  size_t capacity;
  size_t* count;
};

// The source's node in the words of the source; null where it has none.
forge::ir::ProvenanceRef ProvenanceOf(const forge_node& node) {
  if (node.source == nullptr) return nullptr;
  return std::make_shared<forge::ir::Provenance>(
      forge::ir::Provenance{.node = node.source,
                            .kind = node.source_kind != nullptr ? node.source_kind : "",
                            .pass = {},
                            .parts = {}});
}

absl::Status AddNode(forge_graph& graph, const forge_node& node, const Results& results) {
  if (node.op == nullptr || results.count == nullptr ||
      (node.operands == nullptr && node.operand_count > 0) ||
      (results.values == nullptr && results.capacity > 0))
    return InvalidArgument("op, operands, results and count must not be NULL");
  const std::string_view attributes = node.attributes != nullptr ? node.attributes : "";
  const auto in_context = [&](const absl::Status& s) {
    const std::string what = fmt::format("{} {{{}}}", node.op, attributes);
    return forge::Annotate(
        s, node.source != nullptr ? fmt::format("{}: {}", node.source, what) : what);
  };
  const auto op = forge::ir::ParseOp(node.op, attributes, *graph.module());
  if (!op.ok()) return in_context(op.status());
  forge::ir::Values in;
  forge::ir::Types types;
  for (const forge_value v : std::span(node.operands, node.operand_count)) {
    in.emplace_back();
    if (v != FORGE_ABSENT) {
      FORGE_ASSIGN_OR_RETURN(in.back(), ValueOf(graph, v));
    }
    types.push_back(in.back() ? in.back().type() : forge::ir::Type());
  }
  // Ahead of the function, which would keep the error.
  if (const auto inferred = op->Infer(types); !inferred.ok()) return in_context(inferred.status());
  const forge::ir::Function::Scope scope(*graph.function, ProvenanceOf(node));
  const forge::ir::Values out = graph.function->Add(*op, in);
  FORGE_RETURN_IF_ERROR(graph.function->status());
  for (size_t i = 0; i < std::min(out.size(), results.capacity); ++i) results.values[i] = out[i].id;
  *results.count = out.size();
  return absl::OkStatus();
}

absl::StatusOr<forge::ir::Values> ValuesOf(forge_graph& graph, const forge_value* values,
                                           size_t count) {
  if (values == nullptr && count > 0) return InvalidArgument("an array of values must not be NULL");
  forge::ir::Values out;
  for (size_t i = 0; i < count; ++i) {
    FORGE_ASSIGN_OR_RETURN(out.emplace_back(), ValueOf(graph, values[i]));
  }
  return out;
}

absl::Status AddGradients(forge_graph& graph, const forge_gradients& g, forge_value* results) {
  if (results == nullptr && g.with_count > 0) return InvalidArgument("results must not be NULL");
  FORGE_ASSIGN_OR_RETURN(const forge::ir::Values of, ValuesOf(graph, g.of, g.of_count));
  FORGE_ASSIGN_OR_RETURN(const forge::ir::Values seeds, ValuesOf(graph, g.seeds, g.of_count));
  FORGE_ASSIGN_OR_RETURN(const forge::ir::Values with, ValuesOf(graph, g.with, g.with_count));
  FORGE_ASSIGN_OR_RETURN(const forge::ir::Values out,
                         forge::ir::Differentiate(*graph.function, of, seeds, with));
  for (size_t i = 0; i < out.size(); ++i) results[i] = out[i].id;
  return absl::OkStatus();
}

absl::Status StoreState(forge_graph& graph, forge_value variable, forge_value value) {
  FORGE_ASSIGN_OR_RETURN(const forge::ir::Value read, ValueOf(graph, variable));
  FORGE_ASSIGN_OR_RETURN(const forge::ir::Value stored, ValueOf(graph, value));
  forge::ir::Variable* state = graph.function->VariableOf(read.id);
  if (state == nullptr || state->role != forge::ir::Variable::Role::kState)
    return InvalidArgument("value {} is not that of a state", variable);
  graph.function->Store(state, stored);
  return absl::OkStatus();
}

absl::Status Finish(forge_graph& graph, forge_model** model) {
  if (model == nullptr) return InvalidArgument("model must not be NULL");
  if (graph.function->name() != kMain)
    return InvalidArgument("'{}' is a body: it is finished with its graph", graph.function->name());
  FORGE_RETURN_IF_ERROR(forge::ir::Verify(*graph.module()));
  *model = forge::WrapModel(std::make_shared<const forge::Model>(std::move(*graph.shared)));
  return absl::OkStatus();
}

}  // namespace

extern "C" {

const char* forge_ops_json(void) {
  static const auto* const text = new std::string(forge::OpDescriptions());
  return text->c_str();
}

forge_error* forge_graph_create(forge_graph** graph) {
  return ErrorOf([&]() -> absl::Status {
    if (graph == nullptr) return InvalidArgument("graph must not be NULL");
    *graph = new forge_graph(
        std::make_shared<std::unique_ptr<forge::ir::Module>>(std::make_unique<forge::ir::Module>()),
        kMain);
    return absl::OkStatus();
  });
}
void forge_graph_free(forge_graph* graph) { delete graph; }

forge_error* forge_graph_symbol(forge_graph* graph, const char* name, int64_t min, int64_t max,
                                int64_t divisor) {
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (name == nullptr) return InvalidArgument("name must not be NULL");
    return DeclareSymbol(g, {.name = name, .min = min, .max = max, .divisor = divisor});
  });
}
forge_error* forge_graph_input(forge_graph* graph, const char* name, const char* type,
                               forge_value* value) {
  return OnGraph(graph, [&](forge_graph& g) { return AddInput(g, name, type, value); });
}
forge_error* forge_graph_variable(forge_graph* graph, const forge_variable* variable,
                                  forge_value* value) {
  std::shared_ptr<const void> lent = variable != nullptr ? LentBy(*variable) : nullptr;
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (variable == nullptr) return InvalidArgument("variable must not be NULL");
    return AddVariable(g, *variable, std::move(lent), value);
  });
}
forge_error* forge_graph_node(forge_graph* graph, const forge_node* node, forge_value* results,
                              size_t capacity, size_t* count) {
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (node == nullptr) return InvalidArgument("node must not be NULL");
    return AddNode(g, *node, {results, capacity, count});
  });
}
forge_error* forge_graph_gradients(forge_graph* graph, const forge_gradients* gradients,
                                   forge_value* results) {
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (gradients == nullptr) return InvalidArgument("gradients must not be NULL");
    return AddGradients(g, *gradients, results);
  });
}
forge_error* forge_graph_body(forge_graph* graph, const char* name, forge_graph** body) {
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (name == nullptr || body == nullptr)
      return InvalidArgument("name and body must not be NULL");
    if (*name == '\0' || g.module()->Find(name) != nullptr)
      return InvalidArgument("the function name '{}' is empty or used twice", name);
    *body = new forge_graph(g.shared, name);
    return absl::OkStatus();
  });
}
forge_error* forge_graph_name(forge_graph* graph, forge_value value, const char* name) {
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (name == nullptr) return InvalidArgument("name must not be NULL");
    FORGE_ASSIGN_OR_RETURN(const forge::ir::Value named, ValueOf(g, value));
    g.function->SetName(named, name);
    return absl::OkStatus();
  });
}
const char* forge_graph_type(forge_graph* graph, forge_value value) {
  if (graph == nullptr || graph->module() == nullptr || value < 0 ||
      value >= graph->function->value_count())
    return nullptr;
  auto& text = graph->types[value];
  if (text.empty()) text = graph->function->type(static_cast<uint32_t>(value)).ToText();
  return text.c_str();
}
forge_error* forge_graph_output(forge_graph* graph, const char* name, forge_value value) {
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (name == nullptr) return InvalidArgument("name must not be NULL");
    FORGE_ASSIGN_OR_RETURN(const forge::ir::Value result, ValueOf(g, value));
    g.function->Return(name, result);
    return absl::OkStatus();
  });
}
forge_error* forge_graph_store(forge_graph* graph, forge_value variable, forge_value value) {
  return OnGraph(graph, [&](forge_graph& g) { return StoreState(g, variable, value); });
}
forge_error* forge_graph_metadata(forge_graph* graph, const char* key, const char* value) {
  return OnGraph(graph, [&](forge_graph& g) -> absl::Status {
    if (key == nullptr || value == nullptr)
      return InvalidArgument("key and value must not be NULL");
    g.module()->metadata.emplace_back(key, value);
    return absl::OkStatus();
  });
}
forge_error* forge_graph_finish(forge_graph* graph, forge_model** model) {
  return OnGraph(graph, [&](forge_graph& g) { return Finish(g, model); });
}

}  // extern "C"
