// SPDX-License-Identifier: Apache-2.0
// What the builder of an operator sees of a node: attributes, operands and the function that grows.
#pragma once
#include <onnx/onnx_pb.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "formats/onnx/tensor.h"
#include "ir/analysis/dim_values.h"
#include "ir/graph/module.h"
#include "ir/type/host_value.h"

namespace forge::formats {

// A name of the file. Initialisers and Constant nodes enter the function when a node first reads
// them as operands: those that only state shapes and axes leave no trace.
struct OnnxValue {
  ir::Value value;
  std::optional<ir::HostValue> constant;
  ir::Variable::Role role = ir::Variable::Role::kParameter;
};

// The state of one import.
struct OnnxScope {
  ir::Module& module;
  ir::Function& fn;
  ExternalFiles files;
  absl::flat_hash_map<std::string, OnnxValue> values;
  ir::DimValues dims;  // of `fn`
};

// The value of a name that is defined, in the function from here on.
ir::Value ValueOf(OnnxScope& scope, const std::string& name);

struct OnnxOp;

// The first error stays, and everything read after it is a default: so builders read as formulas,
// and the importer looks at status() when they return.
class OnnxNode {
 public:
  OnnxNode(onnx::NodeProto& proto, const OnnxOp& op, OnnxScope& scope)
      : proto_(proto),
        op_(op),
        scope_(scope),
        asked_(static_cast<size_t>(proto.attribute_size())) {}

  // ---- attributes; `fallback` where the file has none
  bool Has(std::string_view name) const;
  int64_t Int(std::string_view name, int64_t fallback);
  double Float(std::string_view name, double fallback);
  bool Flag(std::string_view name, bool fallback = false) { return Int(name, fallback) != 0; }
  std::string String(std::string_view name, std::string_view fallback);
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> fallback = {});
  std::vector<double> Floats(std::string_view name);
  std::optional<ir::HostValue> Tensor(std::string_view name);
  // Of no effect on the result.
  void Ignore(std::string_view name);

  // ---- operands
  size_t inputs() const { return static_cast<size_t>(proto_.input_size()); }
  bool HasInput(size_t i) const {
    return i < inputs() && !proto_.input(static_cast<int>(i)).empty();
  }
  ir::Value in(size_t i);          // absent where the file gives none
  const ir::Type& type(size_t i);  // absent type likewise
  // Elements of an operand that the file fixes; nothing for computed or absent ones.
  std::optional<ir::HostValue> Constant(size_t i);
  std::optional<std::vector<int64_t>> ConstantInts(size_t i);
  std::optional<Number> ConstantNumber(size_t i);  // of one element
  // Elements of a list of integers that are known as dimensions are: the shape of an input, what is
  // computed of it.
  std::optional<ir::Dims> Contents(size_t i);

  // ---- results
  // Does the file give result `i` a name?
  bool HasOutput(size_t i) const {
    return i < static_cast<size_t>(proto_.output_size()) &&
           !proto_.output(static_cast<int>(i)).empty();
  }
  ir::Function& fn() { return scope_.fn; }
  // A constant that the node states.
  ir::Value MakeConstant(const ir::HostValue& value);
  // The node's result is this constant, read only where an operand needs it.
  void Define(ir::HostValue value) { defined_ = std::move(value); }
  std::optional<ir::HostValue>& defined() { return defined_; }

  // "Conv 'conv_1'": the start of messages.
  std::string where() const;
  int since() const;  // the version of the operator that it is read as
  template <class... A>
  void Fail(fmt::format_string<A...> format, A&&... a) {
    if (status_.ok()) status_ = DataLoss("{}", fmt::format(format, std::forward<A>(a)...));
  }
  const absl::Status& status() const { return status_; }
  // Fails on attributes that no builder asked for: what they mean is unknown.
  void CheckAttributes();

 private:
  // The attribute, marked as asked for; null when absent or, with an error, of another type.
  onnx::AttributeProto* Find(std::string_view name, onnx::AttributeProto::AttributeType type);

  onnx::NodeProto& proto_;
  const OnnxOp& op_;
  OnnxScope& scope_;
  std::vector<bool> asked_;
  std::optional<ir::HostValue> defined_;
  absl::Status status_;
};

}  // namespace forge::formats
