// SPDX-License-Identifier: Apache-2.0
// The view that an operator builder has of a node: attributes, operands, and the function under
// construction.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "formats/onnx/tensor.h"
#include "ir/analysis/dim_values.h"
#include "ir/graph/module.h"
#include "ir/type/host_value.h"

namespace forge::formats {

// A named value of the file. Initialisers and Constant nodes are added to the function at their
// first use as operands; those that only give shapes or axes are not added.
struct OnnxValue {
  ir::Value value;
  std::optional<ir::HostValue> constant;
  ir::Variable::Role role = ir::Variable::Role::kParameter;
};

using Opsets = std::map<std::string, int64_t, std::less<>>;  // by domain

class OnnxFunctions;

// The state of the import of one graph: the model's, or one that is a body of a node.
struct OnnxScope {
  ir::Module& module;
  ir::Function& fn;
  const Opsets* opsets = nullptr;  // of the model, or of the function whose nodes are imported
  ExternalFiles& files;
  absl::flat_hash_map<std::string, OnnxValue> values;
  ir::DimValues& dims;                         // values of dimensions in `fn`
  absl::flat_hash_set<std::string> read = {};  // names that a node or the caller reads
  OnnxFunctions* functions = nullptr;          // of the model; may be null
  bool is_body = false;  // nodes that cannot be built are deferred: the body may not be called
  int trials = 0;        // imports around this one that only find types
};

// Returns the value of a defined name and adds it to the function if necessary.
ir::Value ValueOf(OnnxScope& scope, const std::string& name);

// Builds one node and defines its results. A node whose types depend on values that are not known
// becomes ir::Deferred.
//   errors: DataLoss naming the node
absl::Status ImportNode(OnnxScope& scope, onnx::NodeProto& proto);
// Imports a graph that is a body, as a new function of the module. The first arguments are the
// graph's inputs, of these types; the others are the values that it takes from `outer`.
//   captures: the names of those values
//   trial: a module that gets the function in place of the model's; null: the model's
absl::StatusOr<ir::Function*> ImportBody(OnnxScope& outer, onnx::GraphProto& graph,
                                         const ir::Types& inputs,
                                         const std::vector<std::string>& captures,
                                         ir::Module* trial = nullptr);

struct OnnxOp;

// A node during import. After the first error every accessor returns a default, so builders need no
// error checks; the importer reads status() when they return.
class OnnxNode {
 public:
  OnnxNode(onnx::NodeProto& proto, const OnnxOp& op, OnnxScope& scope)
      : proto_(proto),
        op_(op),
        scope_(scope),
        asked_(static_cast<size_t>(proto.attribute_size())) {}

  // ---- attributes; `fallback` is returned where the file has none
  bool Has(std::string_view name) const;
  // Fails beyond 32 bits, so that sums and products of a few do not overflow.
  int64_t Int(std::string_view name, int64_t fallback);
  int64_t Int64(std::string_view name, int64_t fallback);
  double Float(std::string_view name, double fallback);
  bool Flag(std::string_view name, bool fallback = false) { return Int(name, fallback) != 0; }
  std::string String(std::string_view name, std::string_view fallback);
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> fallback = {});
  std::vector<double> Floats(std::string_view name);
  std::vector<std::string> Strings(std::string_view name);
  std::optional<ir::HostValue> Tensor(std::string_view name);
  // Accepts an attribute that does not affect the result.
  void Ignore(std::string_view name);

  // ---- operands
  size_t inputs() const { return static_cast<size_t>(proto_.input_size()); }
  bool HasInput(size_t i) const {
    return i < inputs() && !proto_.input(static_cast<int>(i)).empty();
  }
  ir::Value in(size_t i);          // absent where the file gives none
  const ir::Type& type(size_t i);  // an absent type where the file gives none
  // Numbers of an operand that is constant in the file; nullopt for computed or absent operands.
  std::optional<ir::HostValue> Constant(size_t i);
  std::optional<std::vector<int64_t>> ConstantInts(size_t i);
  std::optional<Number> ConstantNumber(size_t i);  // of one element
  // Elements of a list of integers that are known as dimensions are: the shape of an input, what is
  // computed of it.
  std::optional<ir::Dims> Contents(size_t i);

  // Operands whose elements a builder asked for in vain.
  const std::vector<int64_t>& unknown() const { return unknown_; }

  // ---- bodies
  // The names of values around the node that its bodies take and that no constants are.
  std::vector<std::string> Captures() const;
  ir::Values ValuesOf(std::span<const std::string> names);
  // The graph of that attribute as a function of `inputs` and the captures; null with an error.
  ir::Function* Body(std::string_view name, const ir::Types& inputs);
  // The types that Body() would return of `inputs`; nullopt where that is not tried: it fails, or
  // this import is part of too many trials.
  std::optional<ir::Types> TryBody(std::string_view name, const ir::Types& inputs);
  // How many inputs and outputs that graph has; zeros where the file has none.
  std::pair<int, int> BodyArity(std::string_view name) const;

  // ---- results
  // Returns true when the file names result `i`.
  bool HasOutput(size_t i) const {
    return i < static_cast<size_t>(proto_.output_size()) &&
           !proto_.output(static_cast<int>(i)).empty();
  }
  // How many results the file lists, named or not.
  size_t outputs() const { return static_cast<size_t>(proto_.output_size()); }
  ir::Function& fn() { return scope_.fn; }
  // Adds a constant that the node itself gives.
  ir::Value MakeConstant(const ir::HostValue& value);
  // Defines the result of the node as a constant, which is added to the function only if an operand
  // needs it.
  void Define(ir::HostValue value) { defined_ = std::move(value); }
  std::optional<ir::HostValue>& defined() { return defined_; }

  // The prefix of messages: "Conv 'conv_1'".
  std::string where() const;
  int since() const;  // the operator version that is imported
  // Records an error if there is none yet.
  template <class... A>
  void Fail(fmt::format_string<A...> format, A&&... a) {
    if (status_.ok()) status_ = DataLoss("{}", fmt::format(format, std::forward<A>(a)...));
  }
  const absl::Status& status() const { return status_; }
  // Fails on attributes that no builder read, because their meaning is unknown.
  void CheckAttributes();

 private:
  // Returns the attribute and marks it as read; null when it is absent or, with an error, of
  // another type.
  onnx::AttributeProto* Find(std::string_view name, onnx::AttributeProto::AttributeType type);

  onnx::NodeProto& proto_;
  const OnnxOp& op_;
  OnnxScope& scope_;
  void NoteUnknown(size_t operand);
  std::optional<ir::HostValue> ConstantOf(size_t i);

  std::vector<bool> asked_;
  std::vector<int64_t> unknown_;
  std::optional<ir::HostValue> defined_;
  absl::Status status_;
};

}  // namespace forge::formats
