// SPDX-License-Identifier: Apache-2.0
// Every op on its own cases.
#include <gtest/gtest.h>

#include <set>

#include "ir/interpreter.h"
#include "ir/module.h"
#include "ir/ops/bounds.h"
#include "ir/ops/case_inputs.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/layer_norm.h"
#include "ir/ops/softmax.h"
#include "ir/signature.h"

namespace forge::ir {
namespace {

std::vector<ConcreteCase> CasesOf(const OpDef& def) {
  auto cases = ConcreteCases(def);
  EXPECT_TRUE(cases.ok()) << def.info.name << ": " << cases.status();
  return cases.ok() ? *std::move(cases) : std::vector<ConcreteCase>();
}

// Cases small enough for a plain loop that must run.
std::vector<ConcreteCase> RunnableCases(const OpDef& def) {
  std::vector<ConcreteCase> out;
  for (ConcreteCase& c : CasesOf(def))
    if (c.refuse.empty() && !c.bench) out.push_back(std::move(c));
  return out;
}

bool AllInputs(const ConcreteCase& c, DTypes types) {
  for (const CaseOperand& o : c.in)
    if (o.type && !Has(types, o.type.dtype())) return false;
  return true;
}

bool HasEdges(const ConcreteCase& c) {
  return std::any_of(c.in.begin(), c.in.end(), [](const CaseOperand& o) { return o.edges; });
}

// A function that applies the op of a case to arguments of its operands' types.
struct Built {
  Function f{"case"};
  Values in, out;
  explicit Built(const ConcreteCase& c) {
    for (size_t i = 0; i < c.in.size(); ++i)
      in.push_back(c.in[i].type ? f.Argument(fmt::format("x{}", i), c.in[i].type) : Value{});
  }
  void Return(std::span<const Value> values) {
    for (Value v : values) f.Return(fmt::format("y{}", f.results().size()), v);
  }
};

std::vector<const HostValue*> Given(const CaseInputs& inputs) {
  std::vector<const HostValue*> out = inputs.pointers();
  std::erase(out, nullptr);
  return out;
}

TEST(OpsTest, HaveNamesTextsAndFieldsOfTheirOwn) {
  std::set<std::string_view> names;
  for (const OpDef* def : AllOps()) {
    EXPECT_TRUE(names.insert(def->info.name).second) << def->info.name;
    EXPECT_EQ(FindOp(def->info.name), def);
    EXPECT_FALSE(def->info.formula.empty()) << def->info.name;
    EXPECT_FALSE(def->info.source.empty()) << def->info.name;
    EXPECT_NE(def->evaluate, nullptr) << def->info.name;
    EXPECT_EQ(def->fields.empty(), def->make == nullptr) << def->info.name;
    EXPECT_NE(def->gradient == nullptr, def->no_gradient.empty()) << def->info.name;
    for (const Field& f : def->fields) EXPECT_TRUE(f.doc.ends_with('.')) << f.name;
  }
  EXPECT_EQ(FindOp("no_such_op"), nullptr);
}

TEST(OpsTest, InferOrRefuseAsTheirCasesSay) {
  for (const OpDef* def : AllOps())
    for (const ConcreteCase& c : CasesOf(*def)) {
      const auto out = c.op.Infer(c.types());
      const bool refused =
          !out.ok() && Message(out.status()).find(c.refuse) != std::string_view::npos;
      EXPECT_TRUE(c.refuse.empty() ? out.ok() : refused) << c.ToText() << ": " << out.status();
    }
}

// Symbols in place of extents lead to the same types once they are bound.
TEST(OpsTest, InferSymbolicExtentsAsBoundOnes) {
  for (const OpDef* def : AllOps())
    for (const ConcreteCase& c : CasesOf(*def)) {
      if (!c.refuse.empty()) continue;
      Bindings bindings;
      Types symbolic;
      for (const Type& t : c.types()) {
        Dims shape;
        for (const Dim& d : t.shape()) {
          auto s = std::make_shared<Symbol>(Symbol{.name = fmt::format("s{}", bindings.size())});
          bindings[s] = d.constant();
          shape.push_back(Dim(s));
        }
        symbolic.push_back(t ? t.With(std::move(shape)) : t);
      }
      const auto out = c.op.Infer(symbolic);
      ASSERT_TRUE(out.ok()) << c.ToText() << ": " << out.status();
      for (Type& t : symbolic) t = t.Bind(bindings);
      EXPECT_EQ(*c.op.Infer(symbolic), *c.op.Infer(c.types())) << c.ToText();
    }
}

TEST(OpsTest, RefuseOperandsOfOtherKinds) {
  for (const OpDef* def : AllOps()) {
    const Signature& s = SignatureOf(*def);
    const AnyOp op(*def, def->make ? def->make(nullptr) : nullptr);
    const bool variadic = !s.inputs.empty() && s.inputs.back().variadic;
    const Type tensor = Type::Tensor(DType::kF32, {2});
    if (!variadic) {
      EXPECT_FALSE(op.Infer(Types(s.inputs.size() + 1, tensor)).ok()) << def->info.name;
    }
    if (s.inputs.empty()) continue;
    EXPECT_FALSE(op.Infer({}).ok()) << def->info.name;
    EXPECT_FALSE(op.Infer(Types(s.inputs.size(), Type::Sequence(tensor))).ok()) << def->info.name;
    EXPECT_FALSE(op.Infer(Types(s.inputs.size(), Type())).ok()) << def->info.name;
  }
}

TEST(OpsTest, EvaluateEveryCase) {
  for (const OpDef* def : AllOps())
    for (const ConcreteCase& c : RunnableCases(*def)) {
      const CaseInputs inputs = *MakeInputs(c);
      const auto out = Evaluate(c.op, inputs.pointers());
      ASSERT_TRUE(out.ok()) << c.ToText() << ": " << out.status();
      const Types types = *c.op.Infer(c.types());
      ASSERT_EQ(out->size(), types.size());
      for (size_t i = 0; i < types.size(); ++i) {
        EXPECT_EQ((*out)[i].type(), types[i]) << c.ToText();
        EXPECT_TRUE(CompareResult(c.op, inputs.pointers(), (*out)[i], (*out)[i], i).ok());
      }
    }
}

TEST(OpsTest, EvaluateManyRowsOfNothing) {
  const HostValue x = *HostValue::Zeros(DType::kF32, std::vector<int64_t>{int64_t{1} << 40, 3, 0});
  const HostValue* operands[] = {&x};
  for (const AnyOp& op : {AnyOp(Relu{}), AnyOp(Softmax{}), AnyOp(LayerNorm{})}) {
    const auto y = Evaluate(op, operands);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ((*y)[0].elements(), 0);
  }
}

TEST(OpsTest, CostNothingWhereRanksAreUnknown) {
  for (const OpDef* def : AllOps())
    for (const ConcreteCase& c : RunnableCases(*def)) {
      Types in = c.types();
      for (Type& t : in)
        if (t.is_tensor()) t = Type::Unranked(t.dtype());
      if (in.empty() || !def->cost) continue;
      EXPECT_GE(def->cost(*def, c.op.self(), in).terms.min(), 0) << c.ToText();
    }
}

TEST(OpsTest, DecompositionsAgreeWithEvaluators) {
  for (const OpDef* def : AllOps()) {
    if (def->decompose == nullptr) continue;
    for (const ConcreteCase& c : RunnableCases(*def)) {
      if (HasEdges(c)) continue;
      Built b(c);
      const Values simpler = def->decompose(c.op.self(), b.f, b.in);
      if (simpler.empty()) continue;
      b.Return(simpler);
      ASSERT_TRUE(b.f.status().ok()) << c.ToText() << ": " << b.f.status();
      const CaseInputs inputs = *MakeInputs(c);
      const auto got = Interpreter{}.Run(b.f, Given(inputs));
      ASSERT_TRUE(got.ok()) << c.ToText() << ": " << got.status();
      const auto reference = *Evaluate(c.op, inputs.pointers());
      for (size_t i = 0; i < reference.size(); ++i) {
        const absl::Status s =
            CompareResult(c.op, inputs.pointers(), reference[i], got->results[i], i);
        EXPECT_TRUE(s.ok()) << c.ToText() << ": " << s;
      }
    }
  }
}

// ---- gradients ----------------------------------------------------------------------------------

// Numbers in 0.5..1 for the cotangent of result 0.
HostValue Cotangent(const Type& t) {
  HostValue v = *HostValue::Zeros(t.dtype(), Constants(t.shape()));
  for (int64_t i = 0; i < v.elements(); ++i) v.Set(i, 0.5 + 0.5 * static_cast<double>(i % 7) / 7);
  return v;
}

// d(sum(dy * y)) / dx at element `i` of operand `k`, by central differences.
double Slope(const ConcreteCase& c, CaseInputs inputs, const HostValue& dy, size_t k, int64_t i) {
  constexpr double kStep = 1e-6;
  const double x = inputs.values[k]->f64(i);
  HostValue sides[2];
  for (int side = 0; side < 2; ++side) {
    inputs.values[k]->Set(i, side == 0 ? x - kStep : x + kStep);
    sides[side] = (*Evaluate(c.op, inputs.pointers()))[0];
  }
  double sum = 0;  // of differences, so that large results do not hide small ones
  for (int64_t o = 0; o < dy.elements(); ++o)
    sum += (sides[1].f64(o) - sides[0].f64(o)) * dy.f64(o);
  return sum / (2 * kStep);
}

void CheckGradient(const ConcreteCase& c) {
  const Types types = *c.op.Infer(c.types());
  Built b(c);
  const Value dy = b.f.Argument("dy", types[0]);
  const Values out = b.f.Add(c.op, b.in);
  const Values dx = c.op.def().gradient(c.op.self(), GradArgs{b.f, b.in, out, {&dy, 1}});
  ASSERT_TRUE(b.f.status().ok()) << c.ToText() << ": " << b.f.status();
  ASSERT_EQ(dx.size(), b.in.size()) << c.ToText();
  std::vector<size_t> operands;
  for (size_t k = 0; k < dx.size(); ++k) {
    if (!dx[k]) continue;
    EXPECT_EQ(dx[k].type(), b.in[k].type()) << c.ToText();
    operands.push_back(k);
    b.f.Return(fmt::format("dx{}", k), dx[k]);
  }
  const CaseInputs inputs = *MakeInputs(c);
  const HostValue cotangent = Cotangent(types[0]);
  std::vector<const HostValue*> arguments = Given(inputs);
  arguments.push_back(&cotangent);
  const auto got = Interpreter{}.Run(b.f, arguments);
  ASSERT_TRUE(got.ok()) << c.ToText() << ": " << got.status();
  for (size_t r = 0; r < operands.size(); ++r)
    for (int64_t i = 0; i < got->results[r].elements(); ++i) {
      const double slope = Slope(c, inputs, cotangent, operands[r], i);
      ASSERT_NEAR(got->results[r].f64(i), slope, 1e-5 * std::max(1.0, std::fabs(slope)))
          << c.ToText() << ", operand " << operands[r] << ", element " << i;
    }
}

TEST(OpsTest, GradientsAreSlopes) {
  constexpr int64_t kLargest = 200;  // elements of an operand
  for (const OpDef* def : AllOps()) {
    if (def->gradient == nullptr) continue;
    for (const ConcreteCase& c : RunnableCases(*def)) {
      bool small = !HasEdges(c) && AllInputs(c, Bit(DType::kF64) | Bit(DType::kBool));
      for (const CaseOperand& o : c.in)
        small = small && (!o.type || o.type.elements().constant() <= kLargest);
      const Types out = *c.op.Infer(c.types());
      if (!small || out[0].dtype() != DType::kF64 ||
          c.op.ToText().find("prod") != std::string::npos ||
          c.op.ToText().find("mode = ") != std::string::npos)  // pads of which there is none yet
        continue;
      CheckGradient(c);
    }
  }
}

}  // namespace
}  // namespace forge::ir
