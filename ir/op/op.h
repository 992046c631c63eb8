// SPDX-License-Identifier: Apache-2.0
// The definition of ops. An op is a struct: its fields are the attributes, its members are the
// rules (inference, decomposition, gradient, evaluation, cost, cases). A node holds an `AnyOp`, the
// same with its type erased. Only the concepts are templates, so an op costs its own code and a
// table of function pointers.
#pragma once
#include <concepts>
#include <optional>

#include "base/number.h"
#include "base/record.h"
#include "ir/type/type.h"

namespace forge::ir {

class Function;  // ir/graph/module.h
class HostValue;
struct ScalarDef;  // ir/ops/elementwise/scalar_def.h

// A value of a function under construction. It refers to its function, so that `a * b` appends a
// node.
struct Value {
  Function* fn = nullptr;
  uint32_t id = 0;
  explicit operator bool() const { return fn != nullptr; }  // false: absent optional operand
  const Type& type() const;
  friend bool operator==(const Value&, const Value&) = default;
};
std::string_view NameOf(const Function& f);
using Values = std::vector<Value>;
using ValueSpan = std::span<const Value>;

// ---- the parts of an op -------------------------------------------------------------------------

// Tags for parts that do not apply. `static constexpr Primitive decompose{};`
struct Primitive {};  // no decomposition: every backend has a kernel
struct Zero {};       // the gradient is zero
struct Pending {};    // the gradient is not implemented yet
struct NotDifferentiable {
  std::string_view why;
};
struct BySignature {};  // infer: result types follow from the signature
struct PerElement {};   // cost: one flop and one term for each output element

// An in-place update: the result has the bytes of the operand, and the op writes only the elements
// that differ (update_slice, scatter, an optimiser's step). A plan assigns both the same memory and
// copies the operand first if it has later users. Kernels access these bytes only through the
// result.
struct Alias {
  int8_t output, input;
  int8_t written;  // the operand that has as many elements as are written
};

// Signatures are executed, not only printed: dtype classes, ranks and equal dimensions are checked
// before infer() runs, and refusal tests are made from them.
//   "x: float[n, c, h, w]; w: =x[m, k, *r]; bias: =x[m]?"    operands separated by ';'
// A dtype is a name (f32), a class (see docs/semantics.md, Element types), several with '|' between
// them, =NAME, the dtype of an earlier operand and in outputs also that of an attribute,
// real(NAME), which for a complex operand is the dtype of its parts, complex(NAME), the complex
// dtype of such parts, or wide(NAME), f32 for a narrower float. The words sequence, optional and
// value (anything) stand for what is no tensor. In brackets stand dimension names (equal names are
// equal dimensions), numbers, or one *NAME for any number of dimensions; no brackets: any rank. '?'
// marks an optional operand, or a result that OpInfo::saved adds; '...' after the last operand any
// number of it. Outputs use the same form; there =x alone means "dtype and shape of x".
struct OpInfo {
  std::string_view name = {}, formula = {}, inputs = {}, outputs = {}, source = {};
  // The bool attribute that adds the results marked '?'. A gradient reads them; where nobody does,
  // `Simplify` clears it.
  std::string_view saved = {};
  std::span<const Alias> in_place = {};
  bool keeps_order = false;  // the result may share the operand's bytes: elements stay in row-major
                             // order (reshape), or are their parts (view_as_real)
  bool host = false;         // strings, sequences: a host step on every device
  bool encodes = false;      // relayout: the encoding of the result follows from the attributes
  bool ordered = false;      // collectives, bind_symbol: keeps its place among its like
  bool product = false;      // sums of products, whose operands may be rounded to f16 or bf16
  // The operand that the first result sums with weights that the op computes, and may round to the
  // result's type (the values of attention); -1: none.
  int8_t weighed = -1;
};

// The known elements of each operand; nullopt: unknown.
using Known = std::span<const std::optional<Dims>>;

// What a gradient asks of the differentiation around it.
class BodyGradients {
 public:
  virtual ~BodyGradients() = default;
  // True when a gradient of the operand is used.
  virtual bool Wants(size_t operand) const = 0;
  // Appends to a body the gradients with respect to `with` of what values `of` contribute, whose
  // own gradients are `seeds`. Errors are in the status of the body.
  virtual Values Append(Function& body, ValueSpan of, ValueSpan seeds, ValueSpan with) const = 0;
};

struct GradArgs {
  Function& fn;
  ValueSpan in, out, dout;
  const BodyGradients* bodies = nullptr;  // null where an op's parts are differentiated
};

struct Cost {
  Dim flops, terms;
};  // terms: K of the error bound in docs/semantics.md; 0: nothing is rounded

// The source of an output element of a movement op. `loads` read integer elements first and define
// symbols by them, which makes gather a movement op.
struct IndexMap {
  struct Load {
    int operand;
    Dims index;
    SymbolRef defines;
  };
  struct Range {
    Dim value, low, high;
  };  // low <= value < high
  struct Piece {
    int operand;
    Dims index;
    std::vector<Range> when = {};   // all must hold
    std::optional<Dim> value = {};  // the element is this number, converted; no operand is read
  };  // the first that holds wins
  std::vector<Load> loads = {};
  std::vector<Piece> pieces = {};
  Number fill = {};  // the element where no piece holds
};

// The context of an evaluation: operands, results (allocated as inferred), and calls of bodies.
class Eval {
 public:
  virtual ~Eval() = default;
  virtual size_t inputs() const = 0;
  virtual const HostValue* in(size_t i) const = 0;  // null: absent
  virtual HostValue& out(size_t i) = 0;
  virtual absl::StatusOr<std::vector<HostValue>> Call(
      const Function& body, std::span<const HostValue* const> arguments) = 0;
  // Gives the symbol its number for the rest of the function; a constant must be that number.
  //   errors: InvalidArgument (outside of its bounds)
  virtual absl::Status Bind(const Dim& symbol, int64_t number) = 0;
};

struct Case;
using Cases = std::vector<Case>;

// ---- the concept --------------------------------------------------------------------------------

template <class T, class Tag>
concept Is = std::is_same_v<std::remove_cvref_t<T>, Tag>;

template <class T>
concept HasInfer = requires(const T op, TypeSpan in) {
  { op.infer(in) } -> Is<absl::StatusOr<Types>>;
} || requires { requires Is<decltype(T::infer), BySignature>; };
template <class T>
concept HasGradient = requires(const T op, const GradArgs& g) {
  { op.gradient(g) } -> Is<Values>;
} || requires {
  requires Is<decltype(T::gradient), Zero> || Is<decltype(T::gradient), Pending> ||
               Is<decltype(T::gradient), NotDifferentiable>;
};
template <class T>
concept HasCost = requires(const T op, TypeSpan in) {
  { op.cost(in) } -> Is<Cost>;
} || requires { requires Is<decltype(T::cost), PerElement>; };
template <class T>
concept Described = requires {
  { T::kInfo } -> Is<OpInfo>;
  { T::cases() } -> Is<Cases>;
} && std::copyable<T>;

// A composite defines its decomposition. All other parts are derived from it (ir/ops/parts.cc)
// unless the op defines a better one.
template <class T>
concept Composite = Described<T> && requires(const T op, Function& f, ValueSpan in) {
  { op.decompose(f, in) } -> Is<Values>;
};
// A primitive with kernels defines all parts.
template <class T>
concept Kernel = Described<T> && HasInfer<T> && HasGradient<T> && HasCost<T> &&
                 Is<decltype(T::decompose), Primitive> && requires(const T op, Eval& e) {
                   { op.evaluate(e) } -> Is<absl::Status>;
                 };
// A movement op defines its index map; evaluation, symbolic folding and fused loads follow from it.
template <class T>
concept Movement = Described<T> && HasInfer<T> && HasGradient<T> &&
                   requires(const T op, TypeSpan in, const Dims& at) {
                     { op.map(in, at) } -> Is<IndexMap>;
                   };
// An element-wise op defines its attributes; all other parts are a row of
// ir/ops/elementwise/families.
struct ElementWiseOp {};
template <class T>
concept ElementWise = requires { requires Is<typename T::Kind, ElementWiseOp>; };

template <class T>
concept Op = Composite<T> || Kernel<T> || Movement<T> || ElementWise<T>;

// ---- type-erased ops ----------------------------------------------------------------------------

class AnyOp;

// How an op on complex operands follows from itself on their real and imaginary parts.
enum class OnComplex : uint8_t {
  kNone,
  kEach,     // it is linear: the same op on each part
  kProduct,  // it is linear in each of the first two operands, and adds the others
};

struct OpDef {
  OpInfo info = {};
  Fields fields = {};
  std::shared_ptr<void> (*make)(const void* from) =
      nullptr;  // a copy of `from`, or defaults when null; null: no attributes
  // The parts, called through AnyOp.
  absl::StatusOr<Types> (*infer)(const AnyOp&, TypeSpan) = nullptr;
  Values (*decompose)(const AnyOp&, Function&, ValueSpan) = nullptr;  // null: primitive
  Values (*gradient)(const AnyOp&, const GradArgs&) = nullptr;        // null: see no_gradient
  std::string_view no_gradient = {};  // "zero", "pending" or the reason
  absl::Status (*evaluate)(const AnyOp&, Eval&) = nullptr;
  Cost (*cost)(const AnyOp&, TypeSpan) = nullptr;
  absl::Status (*magnitude)(const AnyOp&, Eval&) = nullptr;  // null: the op on absolute values
  std::optional<Dims> (*contents)(const AnyOp&, TypeSpan, Known) = nullptr;  // may be null
  IndexMap (*map)(const AnyOp&, TypeSpan, const Dims&) = nullptr;            // null unless movement
  // The decomposition of an op with complex operands or results; null unless primitive.
  Values (*decompose_complex)(const AnyOp&, Function&, ValueSpan) = nullptr;
  OnComplex (*on_complex)(const AnyOp&) = nullptr;  // null: kNone
  const ScalarDef* scalar = nullptr;                // null unless element-wise
  Cases (*cases)(const OpDef&) = nullptr;
};

// The header of an op ends with `const OpDef& DefOf(const Softmax*);`, its .cc with
// FORGE_DEFINE_OP(Softmax). The overload is found by argument-dependent lookup. The definition
// exists once, in libforge, so its address identifies the op in every plug-in, and op_list.cc lists
// all ops without including their headers.
template <class T>
const OpDef& DefOf() {
  return DefOf(static_cast<const T*>(nullptr));
}

class AnyOp {
 public:
  template <class T>
    requires Op<T>
  AnyOp(const T& op)  // NOLINT: an op is an op
      : def_(&DefOf<T>()), self_(def_->make ? def_->make(&op) : nullptr) {}
  // An op whose attributes a reader has set field by field; `self` is from def.make.
  AnyOp(const OpDef& def, std::shared_ptr<const void> self) : def_(&def), self_(std::move(self)) {}
  const OpDef& def() const { return *def_; }
  const void* self() const { return self_.get(); }
  std::string_view name() const { return def_->info.name; }
  template <class T>
  const T* As() const {
    return Is<T>() ? static_cast<const T*>(self_.get()) : nullptr;
  }
  template <class T>
  bool Is() const {
    return def_ == &DefOf<T>();
  }
  absl::StatusOr<Types> Infer(TypeSpan in) const;  // signature first, then the rule
  // The same while an attribute is runtime-valued: all results unranked.
  absl::StatusOr<Types> InferRuntimeValued(TypeSpan in) const;
  // Appends the decomposition to `f` and returns the results; empty for a primitive, and for a
  // composite whose attributes make it one. Of an op with complex operands or results that has
  // none, it is that over their parts. Errors are in the status of `f`.
  Values Decompose(Function& f, ValueSpan in) const;
  // True when the op has the results that OpInfo::saved adds.
  bool saves() const;
  // True when the result is the operand's bytes under another element type: it takes no step.
  bool is_view() const { return def_->info.keeps_order && def_->map == nullptr; }
  // Returns the op with or without these results; unchanged where it has none to add.
  AnyOp Saving(bool with) const;
  // Appends the gradient, and what it reads of results that were not saved. Returns one value for
  // each operand, absent where none flows; empty without a rule, see OpDef::no_gradient.
  Values Gradient(const GradArgs& g) const;
  // The cost for operands of these types; zero if one is unranked.
  ir::Cost Cost(TypeSpan in) const;
  // The source of the result's element at `at`. Movement ops only.
  IndexMap Map(TypeSpan in, const Dims& at) const { return def_->map(*this, in, at); }
  // The elements of the first result, an integer tensor, from the types and known elements of the
  // operands; nullopt without a rule. Element-wise and movement ops need no rule.
  std::optional<Dims> Contents(TypeSpan in, Known known) const;
  // Evaluate computes the results of `e` in f64, Magnitude the S of the error bound.
  absl::Status Evaluate(Eval& e) const { return def_->evaluate(*this, e); }
  absl::Status Magnitude(Eval& e) const;
  AnyOp Bind(const Bindings& values) const;  // every Dim and Type field bound
  bool is_bound() const;                     // no symbols in these
  std::string ToText() const;                // "conv{groups = 4}", defaults left out
  uint64_t Hash() const;
  friend bool operator==(const AnyOp&, const AnyOp&);  // same op, equal attributes

 private:
  const OpDef* def_;
  std::shared_ptr<const void> self_;
};

// A case: an op and its operands as text: "f16[2,3,1]", "float[4] in -4..4", "i64[5] in 0..6"; ""
// is an absent operand. A class (float, int, any) stands for each of its dtypes. Conformance tests,
// benchmarks and documentation use the same cases.
struct Case {
  AnyOp op;
  std::vector<std::string> in = {};
  std::string refuse = {};  // not empty: infer must refuse with a message that contains this
  bool bench = false;       // real size: timed by forge-bench; tests run it on fast devices only
};

std::span<const OpDef* const> AllOps();      // op_list.cc, in the order of op_list.inc
const OpDef* FindOp(std::string_view name);  // null when unknown

}  // namespace forge::ir
