// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/interpreter.h"

#include <algorithm>

#include "ir/graph/string_ranks.h"
#include "ir/op/attributes.h"
#include "ir/op/elements.h"
#include "ir/op/signature.h"

namespace forge::ir {
namespace {

constexpr int kMaxCallDepth = 64;  // bodies within bodies

using Operands = std::span<const HostValue* const>;

absl::StatusOr<Interpretation> RunFunction(const Interpreter& how, const Function& f,
                                           Operands arguments, Bindings bindings, int depth);

// What an op sees of the run that it is part of.
struct Context {
  const Interpreter& how;
  Bindings& symbols;  // their values
  int depth = 0;      // of bodies within bodies
};

// The symbols of a body: extents of its own arguments first, since it may be called with others
// elsewhere, then those outside it.
Bindings BodyBindings(const Function& body, Operands arguments, const Bindings& outer) {
  Bindings own;
  for (size_t i = 0; i < std::min(arguments.size(), body.arguments().size()); ++i) {
    const Type& t = body.type(body.arguments()[i].value);
    for (int a = 0; t.is_tensor() && a < std::min<int>(t.rank(), arguments[i]->rank()); ++a)
      if (const Dim::Part part = t.shape()[static_cast<size_t>(a)].part();
          part.op == Dim::Op::kSymbol)
        own.emplace(part.symbol, arguments[i]->dim(a));
  }
  own.insert(outer.begin(), outer.end());
  return own;
}

class HostEval : public Eval {
 public:
  HostEval(Operands in, std::vector<HostValue> out, const Context& context)
      : in_(in), out_(std::move(out)), context_(context) {}
  size_t inputs() const override { return in_.size(); }
  const HostValue* in(size_t i) const override { return i < in_.size() ? in_[i] : nullptr; }
  HostValue& out(size_t i) override { return out_[i]; }
  absl::StatusOr<std::vector<HostValue>> Call(const Function& body, Operands arguments) override {
    const Interpreter inner{.read = context_.how.read};  // ids of a body mean nothing to `observe`
    FORGE_ASSIGN_OR_RETURN(
        Interpretation done,
        RunFunction(inner, body, arguments, BodyBindings(body, arguments, context_.symbols),
                    context_.depth + 1));
    return std::move(done.results);
  }
  absl::Status Bind(const Dim& symbol, int64_t number) override {
    return BindDim(symbol, number, context_.symbols);
  }
  std::vector<HostValue> TakeResults() { return std::move(out_); }

 private:
  Operands in_;
  std::vector<HostValue> out_;
  const Context context_;
};

absl::StatusOr<std::vector<HostValue>> EvaluateBy(absl::Status (AnyOp::*call)(Eval&) const,
                                                  const AnyOp& op, Operands in,
                                                  const Context& context);

// Evaluates an op that takes any elements on the ranks of strings.
absl::StatusOr<std::vector<HostValue>> EvaluateOnRanks(const AnyOp& op, Operands in,
                                                       TypeSpan results, const Context& context) {
  const StringRanks ranks(in);
  std::vector<HostValue> encoded(in.size());
  std::vector<const HostValue*> operands(in.begin(), in.end());
  for (size_t i = 0; i < in.size(); ++i) {
    if (!HasStrings(in.subspan(i, 1))) continue;
    FORGE_ASSIGN_OR_RETURN(encoded[i], ranks.Encode(*in[i]));
    operands[i] = &encoded[i];
  }
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> out,
                         EvaluateBy(&AnyOp::Evaluate, op, operands, context));
  for (size_t i = 0; i < out.size(); ++i) {
    if (results[i].dtype() != DType::kString) continue;
    FORGE_ASSIGN_OR_RETURN(out[i], ranks.Decode(out[i]));
  }
  return out;
}

// Runs one of the above on results allocated as inferred; a host step makes its results itself.
absl::StatusOr<std::vector<HostValue>> EvaluateBy(absl::Status (AnyOp::*call)(Eval&) const,
                                                  const AnyOp& op, Operands in,
                                                  const Context& context) {
  Types types;
  for (const HostValue* v : in) types.push_back(v ? v->type() : Type());
  FORGE_ASSIGN_OR_RETURN(const Types out_types, op.Infer(types));
  const bool host = op.def().info.host;
  if (!host && HasStrings(in)) return EvaluateOnRanks(op, in, out_types, context);
  std::vector<HostValue> out;
  if (host) out.resize(out_types.size());
  for (const Type& t : out_types) {
    if (host) break;
    if (!t.is_constant())
      return InvalidArgument("{}: the type {} of a result is not bound", op.name(), t.ToText());
    FORGE_ASSIGN_OR_RETURN(HostValue v, HostValue::Zeros(t.dtype(), Constants(t.shape())));
    out.push_back(std::move(v));
  }
  // Evaluators go row by row, and of empty rows there may be any number.
  if (!host && !out.empty() &&
      std::all_of(out.begin(), out.end(), [](const HostValue& v) { return v.elements() == 0; }))
    return out;
  HostEval eval(in, std::move(out), context);
  const absl::Status done = (op.*call)(eval);
  if (!done.ok())
    return Annotate(done, fmt::format("{}({})", op.ToText(), OperandsText(op.def(), types)));
  return eval.TakeResults();
}

// One run of a function: which values are there, and how often each is still to be read.
class Run {
 public:
  Run(const Interpreter& how, const Function& f, Bindings bindings, int depth)
      : how_(how),
        f_(f),
        bindings_(std::move(bindings)),
        depth_(depth),
        values_(f.value_count()),
        uses_(f.UseCounts()) {}

  absl::Status Start(Operands arguments) {
    for (size_t i = 0; i < arguments.size(); ++i)
      FORGE_RETURN_IF_ERROR(Put(f_.arguments()[i].value, *arguments[i]));
    for (const Function::VariableRead& r : f_.reads()) {
      FORGE_ASSIGN_OR_RETURN(HostValue v, how_.read(*r.variable));
      FORGE_RETURN_IF_ERROR(Put(r.value, std::move(v)));
    }
    return absl::OkStatus();
  }

  absl::Status Step(const Node& node) {
    absl::Status done = Compute(node);
    if (done.ok() || node.from == nullptr) return done;
    return Annotate(done, node.from->ToText());
  }

  Interpretation Finish() {
    Interpretation out;
    for (const Function::Result& r : f_.results()) out.results.push_back(values_[r.value]);
    for (const Function::Update& u : f_.updates())
      out.updates.emplace_back(u.variable, values_[u.value]);
    return out;
  }

 private:
  absl::Status Put(uint32_t id, HostValue v) {
    if (how_.observe) FORGE_RETURN_IF_ERROR(how_.observe(id, v));
    if (uses_[id] > 0) values_[id] = std::move(v);
    return absl::OkStatus();
  }

  // The op with numbers for what was symbolic or known at run time alone.
  absl::StatusOr<AnyOp> Bound(const Node& node) {
    if (node.runtime_attributes.empty()) return node.op.Bind(bindings_);
    const OpDef& def = node.op.def();
    std::shared_ptr<void> self = def.make(node.op.self());
    for (const RuntimeAttribute& runtime : node.runtime_attributes) {
      const std::vector<int64_t> numbers = Integers(values_[runtime.value]);
      FORGE_RETURN_IF_ERROR(
          SetFromDims(def.fields[runtime.field], self.get(), Dims(numbers.begin(), numbers.end())));
    }
    return AnyOp(def, std::move(self)).Bind(bindings_);
  }

  absl::Status Compute(const Node& node) {
    FORGE_ASSIGN_OR_RETURN(const AnyOp op, Bound(node));
    std::vector<const HostValue*> in;
    for (uint32_t v : node.in) in.push_back(v == kAbsent ? nullptr : &values_[v]);
    FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> out,
                           EvaluateBy(&AnyOp::Evaluate, op, in, {how_, bindings_, depth_}));
    for (size_t i = 0; i < out.size(); ++i)
      FORGE_RETURN_IF_ERROR(Put(node.first_out + static_cast<uint32_t>(i), std::move(out[i])));
    for (uint32_t v : node.in) Drop(v);
    for (const RuntimeAttribute& runtime : node.runtime_attributes) Drop(runtime.value);
    return absl::OkStatus();
  }

  void Drop(uint32_t v) {
    if (v != kAbsent && --uses_[v] == 0) values_[v] = HostValue();
  }

  const Interpreter& how_;
  const Function& f_;
  Bindings bindings_;
  const int depth_;
  std::vector<HostValue> values_;
  std::vector<int> uses_;
};

absl::StatusOr<Interpretation> RunFunction(const Interpreter& how, const Function& f,
                                           Operands arguments, Bindings bindings, int depth) {
  FORGE_RETURN_IF_ERROR(f.status());
  if (depth > kMaxCallDepth)
    return ResourceExhausted("bodies are nested more than {} deep", kMaxCallDepth);
  FORGE_RETURN_IF_ERROR(BindArguments(f, arguments, bindings));
  Run run(how, f, std::move(bindings), depth);
  FORGE_RETURN_IF_ERROR(run.Start(arguments));
  for (const Node& node : f.nodes()) FORGE_RETURN_IF_ERROR(run.Step(node));
  return run.Finish();
}

// Has `given` a type that binds no symbols?
bool FitsUnbound(const Type& t, const Type& given) {
  if (t.kind() == Type::Kind::kUnknown) return true;
  if (t.kind() == Type::Kind::kUnranked) return given.is_tensor() && t.dtype() == given.dtype();
  if (t.kind() != Type::Kind::kSequence || given.kind() != Type::Kind::kSequence) return false;
  const Type &item = t.element(), &have = given.element();
  return item.kind() == Type::Kind::kUnknown || have.kind() == Type::Kind::kUnknown ||
         item.dtype() == have.dtype();
}

// Copies the box of `whole` that begins at `begin` to `box`.
absl::Status CopyBox(const HostValue& whole, std::span<const int64_t> begin, HostValue& box) {
  if (begin.size() != whole.shape().size() || whole.rank() != box.rank())
    return InvalidArgument("a box of rank {} in a tensor of rank {}", begin.size(), whole.rank());
  for (size_t a = 0; a < begin.size(); ++a)
    if (begin[a] < 0 || begin[a] > whole.shape()[a] - box.shape()[a])
      return InvalidArgument("axis {}: {} elements from {} do not lie in {}", a, box.shape()[a],
                             begin[a], whole.shape()[a]);
  int64_t flat = 0;
  for (Box at(box.shape()); at; at.Next(), ++flat) {
    Index from = *at;
    for (size_t a = 0; a < from.size(); ++a) from[a] += begin[a];
    const int64_t source = whole.Flat(from);
    if (Has(kComplexTypes, box.dtype()))
      box.SetC128(flat, whole.c128(source));
    else if (Has(kIntTypes, box.dtype()))
      box.SetI64(flat, whole.i64(source));
    else
      box.Set(flat, whole.f64(source));
  }
  return absl::OkStatus();
}

// The stored tensor in dense elements.
absl::StatusOr<HostValue> Stored(const Variable::Storage& s) {
  if (!s.whole.is_constant())
    return InvalidArgument("the stored type {} is not bound", s.whole.ToText());
  const std::vector<int64_t> shape = Constants(s.whole.shape());
  if (s.whole.encoding() == nullptr) return HostValue::Of(s.whole.dtype(), shape, s.bytes);
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(s.whole.dtype(), shape));
  FORGE_RETURN_IF_ERROR(
      s.whole.encoding()->Decode(s.whole.dtype(), shape, s.bytes.span(), out.mutable_bytes()));
  return out;
}

}  // namespace

absl::StatusOr<std::vector<HostValue>> Evaluate(const AnyOp& op, Operands in) {
  Bindings none;
  return EvaluateBy(&AnyOp::Evaluate, op, in, {Interpreter{}, none});
}

absl::StatusOr<std::vector<HostValue>> Magnitudes(const AnyOp& op, Operands in) {
  Bindings none;
  return EvaluateBy(&AnyOp::Magnitude, op, in, {Interpreter{}, none});
}

absl::StatusOr<HostValue> InitialValue(const Variable& v) {
  if (!v.type.is_constant())
    return InvalidArgument("variable {}: its type {} is not bound", v.name, v.type.ToText());
  const std::vector<int64_t> shape = Constants(v.type.shape());
  if (!v.init) return HostValue::Zeros(v.type.dtype(), shape);
  absl::StatusOr<HostValue> whole = Stored(*v.init);
  if (!whole.ok()) return Annotate(whole.status(), "variable " + v.name);
  if (v.init->begin.empty() && std::ranges::equal(whole->shape(), shape)) return whole;
  FORGE_ASSIGN_OR_RETURN(HostValue box, HostValue::Zeros(v.type.dtype(), shape));
  const absl::Status copied = CopyBox(*whole, v.init->begin, box);
  if (!copied.ok()) return Annotate(copied, "variable " + v.name);
  return box;
}

absl::Status BindDim(const Dim& d, int64_t n, Bindings& bindings) {
  const Dim::Part part = d.part();
  if (part.op == Dim::Op::kSymbol) {
    const Symbol& s = *part.symbol;
    if (n < s.min || n > s.max || n % s.divisor != 0)
      return InvalidArgument("{} cannot be {}", s.name, n);
    bindings.emplace(part.symbol, n);
  }
  FORGE_ASSIGN_OR_RETURN(const int64_t expected, d.Evaluate(bindings));
  if (expected != n)
    return InvalidArgument("{} is {}, not {}", d.is_constant() ? "it" : d.ToText(), expected, n);
  return absl::OkStatus();
}

absl::Status BindArguments(const Function& f, Operands arguments, Bindings& bindings) {
  if (arguments.size() != f.arguments().size())
    return InvalidArgument("function {} takes {} arguments, not {}", f.name(), f.arguments().size(),
                           arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Function::Input& input = f.arguments()[i];
    const Type &stated = f.type(input.value), given = arguments[i]->type();
    const bool optional = stated.kind() == Type::Kind::kOptional;
    const Type& t = optional ? stated.element() : stated;
    if (FitsUnbound(t, given) || (optional && given.kind() == Type::Kind::kOptional)) continue;
    if (!t.is_tensor() || !given.is_tensor() || t.dtype() != given.dtype() ||
        t.rank() != given.rank())
      return InvalidArgument("input {} is {}, not {}", input.name, t.ToText(), given.ToText());
    for (size_t a = 0; a < t.shape().size(); ++a) {
      const absl::Status s =
          BindDim(t.shape()[a], arguments[i]->dim(static_cast<int>(a)), bindings);
      if (!s.ok()) return Annotate(s, fmt::format("input {}, axis {}", input.name, a));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Interpretation> Interpreter::Run(const Function& f, Operands arguments,
                                                Bindings bindings) const {
  return RunFunction(*this, f, arguments, std::move(bindings), 0);
}

}  // namespace forge::ir
