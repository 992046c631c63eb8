// SPDX-License-Identifier: Apache-2.0
// A module: functions over typed values, and the variables that outlive a run.
#pragma once
#include <deque>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/bytes.h"
#include "ir/op/op.h"

namespace forge::ir {

// Where a node came from: the model file's own node name, or the nodes a pass made it of.
struct Provenance;
using ProvenanceRef = std::shared_ptr<const Provenance>;
struct Provenance {
  std::string node;  // "Conv_0", as the source file names it; empty for merged nodes
  std::string kind;  // the source's operator: "Conv"
  std::string pass;  // the pass that made it; empty for an importer's node
  std::vector<ProvenanceRef> parts;  // what it was made of
  std::string ToText() const;        // "Conv_0 (Conv)", "Conv_0 + Relu_1"
};
// What `pass` made of `parts`. Flat and without repetition: the parts of parts are taken in their
// place, so that provenance stays small however many passes ran. Null parts are left out.
ProvenanceRef MadeBy(std::string_view pass, std::span<const ProvenanceRef> parts);

// A tensor that outlives a run. Roles differ in who may change it, and in nothing else.
struct Variable {
  enum class Role : uint8_t { kConstant, kParameter, kState };
  std::string name;
  Role role = Role::kConstant;
  Type type;
  bool trainable = false;
  // A box of a stored tensor: tied, joined and sharded weights share `bytes`. `begin` is empty when
  // the box is the whole.
  struct Storage {
    Bytes bytes;
    Type whole;
    std::vector<int64_t> begin;
  };
  std::optional<Storage> init;  // absent: zeros
};

// A field of an op that is still a value: Reshape's shape, Reduce's axes, TopK's k, NonZero's
// count. Folding, binding or at last a break in the plan turns it into Dims or numbers, by
// reflection, once for every op. Until then the node's results are unranked and nothing compiles.
struct RuntimeAttribute {
  uint16_t field;
  uint32_t value;
};

inline constexpr uint32_t kAbsent = UINT32_MAX;

struct Node {
  AnyOp op;
  std::vector<uint32_t> in;  // value ids; kAbsent for an operand not given
  uint32_t first_out = 0;    // its results are values first_out .. first_out + outs - 1
  uint16_t outs = 1;
  std::vector<RuntimeAttribute> runtime_attributes;
  ProvenanceRef from;
};

// Whether the node does more than compute its results. Such nodes keep their order among each other
// through every pass, and none is left out, merged with another or evaluated ahead of the run.
bool HasEffects(const Node& node);
// The functions that an op has as attributes.
std::vector<Function*> BodiesOf(const AnyOp& op);

class Module;

// A list of nodes in an order in which every operand comes first. Functions only grow: a pass reads
// one and writes another, so there is no use list to keep and no half-changed graph to meet. Bodies
// of If, While, Scan, Call and of fused regions are functions too, with captures as their last
// arguments: there is no second kind of nesting. References to nodes, types and names stay valid as
// it grows.
class Function {
 public:
  // A function outside a module belongs to none, or is made for `module`, to be kept there by
  // Replace().
  explicit Function(std::string name, Module* module = nullptr);
  ~Function();
  Function(const Function&) = delete;
  const std::string& name() const { return name_; }
  Module* module() const {
    return module_;
  }  // bodies and symbols are added there; null: none can be

  Value Argument(std::string name, Type type);
  // Appends a node and infers its types. The first error stays in status() with op, shapes and
  // provenance; after it, results have absent types and nothing more is checked. So rules need no
  // StatusOr, and read as the formula they are. After an error an op gives what its signature
  // names, at least one. Operands are absent Values where an optional one is not given.
  Values Add(const AnyOp& op, ValueSpan in);
  struct RuntimeField {
    std::string_view field;
    Value value;
  };
  // As Add, with fields that are values of integers; results are unranked.
  Values AddRuntimeValued(const AnyOp& op, ValueSpan in, std::span<const RuntimeField> runtime);
  Value operator()(const AnyOp& op, std::initializer_list<Value> in) {
    return Add(op, ValueSpan(in.begin(), in.size()))[0];
  }
  Value Read(Variable* v);               // the value at the start of the run; one value each
  Value ReadAs(Variable* v, Type type);  // the same where symbols of its type are bound
  void Store(Variable* v, Value value);  // committed at the end of the run; planned in place
  void Return(std::string name, Value value);
  void Fail(absl::Status s);  // keeps the first error; annotated with the scope
  const absl::Status& status() const { return status_; }

  // The model's own name of a value ("relu_1.tmp_0"); empty when it has none. The first name stays.
  void SetName(Value v, std::string_view name);
  // The value is laid out so; said by the pass that assigns encodings.
  void SetEncoding(Value v, EncodingRef encoding);
  // Arguments and variables' values have their own.
  std::string_view NameOf(uint32_t value) const;
  // `at` is the provenance of every node added until the scope ends.
  class Scope {
   public:
    Scope(Function& f, ProvenanceRef at) : f_(f), before_(std::exchange(f.scope_, std::move(at))) {}
    ~Scope() { f_.scope_ = std::move(before_); }

   private:
    Function& f_;
    ProvenanceRef before_;
  };

  struct Result {
    std::string name;
    uint32_t value;
  };
  struct Update {
    Variable* variable;
    uint32_t value;
  };
  struct Input {
    std::string name;
    uint32_t value;
  };
  struct VariableRead {
    Variable* variable;
    uint32_t value;
  };
  // Who makes a value: exactly one of them.
  struct Origin {
    enum Kind : uint8_t { kArgument, kVariable, kNode } kind;
    uint32_t index;
  };

  const std::deque<Node>& nodes() const { return nodes_; }
  std::span<const Input> arguments() const { return arguments_; }
  std::span<const VariableRead> reads() const { return reads_; }
  std::span<const Result> results() const { return results_; }
  std::span<const Update> updates() const { return updates_; }
  const Type& type(uint32_t value) const { return types_[value]; }
  const Origin& origin(uint32_t value) const { return origins_[value]; }
  Variable* VariableOf(uint32_t value) const;  // null unless the value is a variable's
  uint32_t value_count() const { return static_cast<uint32_t>(types_.size()); }
  Value value(uint32_t id) { return {this, id}; }
  Types TypesOf(std::span<const uint32_t> values) const;  // absent type for kAbsent
  // For each value, how many nodes, results and updates read it.
  std::vector<int> UseCounts() const;

 private:
  friend class Module;     // whose it becomes
  friend class Copier;     // appends nodes whose types are known
  friend struct Rewriter;  // reorders what it has written
  using Bodies = absl::flat_hash_map<const Function*, Function*>;
  uint32_t NewValue(Type type, Origin origin);
  Values Append(Node node, Types types);
  // Puts other bodies into ops.
  void MapBodies(const Bodies& bodies);
  // Puts the nodes in `order`, in which every operand still comes first, and numbers results anew,
  // behind all other values.
  void Reorder(std::span<const uint32_t> order);
  Values Absent(const AnyOp& op);
  std::vector<uint32_t> Ids(const AnyOp& op, ValueSpan in) const;
  std::string name_;
  Module* module_ = nullptr;
  std::deque<Node> nodes_;
  std::deque<Type> types_;
  std::vector<Origin> origins_;
  std::vector<Input> arguments_;
  std::vector<VariableRead> reads_;
  absl::flat_hash_map<const Variable*, uint32_t> read_of_;
  std::vector<Result> results_;
  std::vector<Update> updates_;
  absl::node_hash_map<uint32_t, std::string> names_;
  ProvenanceRef scope_;
  absl::Status status_;
};

class Module {
 public:
  // `base` owns variables and symbols that functions of this module name too; it must live as long.
  explicit Module(const Module* base = nullptr);
  ~Module();
  const Module* base() const { return base_; }
  Module(const Module&) = delete;
  Function* AddFunction(std::string name);      // a name in use gets ".1", ".2" ...
  Function* Find(std::string_view name) const;  // "main", "load", "decode"; null when absent
  // Puts `f` in the place of the function of that name, which is destroyed; ops that have it as a
  // body get `f` instead. FORGE_CHECKs that the function exists.
  Function* Replace(std::string_view name, std::unique_ptr<Function> f);
  Variable* AddVariable(Variable v);  // a name in use gets ".1", ".2" ...
  Variable* FindVariable(std::string_view name) const;
  SymbolRef SymbolNamed(std::string_view name);       // one symbol for each name, made at first use
  SymbolRef FindSymbol(std::string_view name) const;  // null when absent
  void AddSymbol(SymbolRef s);  // FORGE_CHECKs that no other symbol has its name
  std::span<const std::unique_ptr<Variable>> variables() const { return variables_; }
  std::span<const std::unique_ptr<Function>> functions() const { return functions_; }
  std::span<const SymbolRef> symbols() const { return symbols_; }
  std::string_view Metadata(std::string_view key) const;  // empty when absent
  std::vector<std::pair<std::string, std::string>> metadata;

 private:
  const Module* base_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::vector<SymbolRef> symbols_;
  absl::flat_hash_map<std::string, Function*> function_of_;
  absl::flat_hash_map<std::string, Variable*> variable_of_;
  absl::flat_hash_map<std::string, SymbolRef> symbol_of_;
};

// A copy whose functions may be rewritten; variables' bytes are shared.
std::unique_ptr<Module> Clone(const Module& m);

// Copies `in` to `out` node by node, remapping values. A rule is asked for each node in order and
// either appends a replacement (one value for each result) or returns nothing, which copies the
// node. Arguments, names, results, updates and provenance are carried over; nodes whose results
// nobody reads are left out, save those of ordered ops. A rule's `in` holds the node's operands and
// then those of its runtime-valued attributes. A body is kept as it is: rewrite it first and
// Replace() it.
//   errors: the first of `out`, or Internal when a rule's values do not fit the node's results
struct Rewriter {
  using Rule =
      absl::FunctionRef<std::optional<Values>(Function& out, const Node& node, ValueSpan in)>;
  std::string_view pass;           // goes into provenance of what rules make
  const Bindings* bind = nullptr;  // binds argument types and attributes too
  absl::Status Run(const Function& in, Function& out, Rule rule) const;
  // Copies what is needed of `in`.
  absl::Status Run(const Function& in, Function& out) const;
};

// Checks everything later code relies on: operand order, types as inferred, arity, variables of
// this module or its base, acyclic bodies, unique names. How a result is laid out is a choice, save
// a relayout's.
//   errors: Internal naming function and node, or the status() of a function that failed
absl::Status Verify(const Module& m);
// The same for one function that its module() need not hold yet.
absl::Status Verify(const Function& f);
std::string ToText(const Module& m);
std::string ToText(const Function& f);
// The stored tensors that the text names as `blob N`, in that order: all but those of at most 16
// elements that nobody shares.
std::vector<Bytes> BlobsOf(const Module& m);
// Text with `blob N` storages takes their bytes from `blobs`.  errors: InvalidArgument with line
// and column
absl::StatusOr<std::unique_ptr<Module>> FromText(std::string_view text,
                                                 std::span<const Bytes> blobs = {});

}  // namespace forge::ir
