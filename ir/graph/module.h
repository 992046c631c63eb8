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
// The provenance of a node that `pass` made from nodes with the provenances `parts`. The list is
// flat and without repetition, so it stays small however many passes ran. Null parts are omitted.
ProvenanceRef MadeBy(std::string_view pass, std::span<const ProvenanceRef> parts);

// A tensor that outlives a run. Roles differ only in who may change it: nobody, training, or the
// run.
struct Variable {
  enum class Role : uint8_t { kConstant, kParameter, kState };
  std::string name;
  Role role = Role::kConstant;
  Type type;
  bool trainable = false;
  // A box of a stored tensor, so that tied, joined and sharded weights share `bytes`. `begin` is
  // empty if the box is the whole tensor.
  struct Storage {
    Bytes bytes;
    Type whole;
    std::vector<int64_t> begin;
  };
  std::optional<Storage> init;  // absent: zeros
};

// An attribute that is given by a value of the graph: the shape of Reshape, the axes of Reduce.
// Folding, binding or a read-back between segments replaces it by Dims or numbers, by reflection,
// for every op alike. Until then the node's results are unranked and cannot be compiled.
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

// Whether the node has side effects. All passes keep the relative order of such nodes, and never
// remove, merge or evaluate them early.
bool HasEffects(const Node& node);
// The functions that an op has as attributes.
std::vector<Function*> BodiesOf(const AnyOp& op);
// The op with other functions in place of those.
AnyOp WithBodies(const AnyOp& op, const absl::flat_hash_map<const Function*, Function*>& bodies);

class Module;

// A list of nodes in topological order. Functions are append-only: a pass reads one function and
// writes another, so there are no use lists to maintain and no partially rewritten graphs. Bodies
// of nodes (branches, loops, calls, fused regions) are functions too, with captures as their last
// arguments. References to nodes, types and names stay valid while a function grows.
class Function {
 public:
  // Creates a function that no module owns; `module` is the one that Replace() will give it to.
  explicit Function(std::string name, Module* module = nullptr);
  ~Function();
  Function(const Function&) = delete;
  const std::string& name() const { return name_; }
  Module* module() const {
    return module_;
  }  // bodies and symbols are added there; null: none can be

  Value Argument(std::string name, Type type);
  // Appends a node, infers its types and returns its results. Optional operands may be absent
  // Values. Errors do not need checking at each call: status() keeps the first one, with op, shapes
  // and provenance; after it, no node is checked and results have absent types, as many as the
  // signature names, at least one.
  Values Add(const AnyOp& op, ValueSpan in);
  struct RuntimeField {
    std::string_view field;
    Value value;
  };
  // The same with attributes that are given by integer values; the results are unranked.
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
  // Sets the encoding of a value; used by the pass that assigns encodings.
  void SetEncoding(Value v, EncodingRef encoding);
  // For arguments and variables the name they were created with.
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
  // The origin of a value: an argument, a variable or a node.
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
  friend class Module;     // sets the owner
  friend class Copier;     // appends nodes without inference
  friend struct Rewriter;  // reorders its output
  using Bodies = absl::flat_hash_map<const Function*, Function*>;
  uint32_t NewValue(Type type, Origin origin);
  Values Append(Node node, Types types);
  // Replaces bodies in the attributes of all nodes.
  void MapBodies(const Bodies& bodies);
  // Reorders the nodes to `order`, a topological order, and renumbers their results, after all
  // other values.
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
  // `base` owns variables and symbols that this module also uses; it must outlive the module.
  explicit Module(const Module* base = nullptr);
  ~Module();
  const Module* base() const { return base_; }
  Module(const Module&) = delete;
  Function* AddFunction(std::string name);      // a name in use gets ".1", ".2" ...
  Function* Find(std::string_view name) const;  // "main", "load", "decode"; null when absent
  // Replaces the function of that name, which is destroyed, by `f`, also in ops that have it as a
  // body. FORGE_CHECKs that the function exists.
  Function* Replace(std::string_view name, std::unique_ptr<Function> f);
  Variable* AddVariable(Variable v);  // a name in use gets ".1", ".2" ...
  // Returns the variable with the name, role, type and memory of `v`; adds it if there is none.
  // Bodies read weights of the functions around them so.
  Variable* ShareVariable(Variable v);
  Variable* FindVariable(std::string_view name) const;
  SymbolRef SymbolNamed(std::string_view name);       // creates the symbol at its first use
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

// Copies a module; the bytes of variables are shared.
std::unique_ptr<Module> Clone(const Module& m);

// Copies `in` to `out` node by node. For each node in order the rule either appends a replacement
// and returns one value for each result (absent for a result without users), or returns nullopt,
// which copies the node. Arguments, names, results, updates and provenance are preserved. Nodes
// without users are dropped unless they have side effects. The rule's `in` holds the operands of
// the node, then the values of its runtime-valued attributes. Bodies are not rewritten: rewrite a
// body first and Replace() it.
//   errors: the first of `out`; Internal if the values of a rule do not fit the node's results
struct Rewriter {
  using Rule =
      absl::FunctionRef<std::optional<Values>(Function& out, const Node& node, ValueSpan in)>;
  std::string_view pass;           // recorded in the provenance of replacements
  const Bindings* bind = nullptr;  // binds argument types and attributes too
  absl::Status Run(const Function& in, Function& out, Rule rule) const;
  // Copies without a rule: drops nodes without users.
  absl::Status Run(const Function& in, Function& out) const;
};

// Checks the invariants: operand order, types as inferred, arity, variables of this module or its
// base, acyclic bodies, unique names. Encodings of results are not checked, except those of
// relayouts.
//   errors: Internal naming function and node, or the status() of a function that failed
absl::Status Verify(const Module& m);
// The same for one function, which need not be in its module() yet.
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
