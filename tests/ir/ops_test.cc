// SPDX-License-Identifier: Apache-2.0
// Every op on its own cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/narrow_float.h"
#include "ir/cases/bounds.h"
#include "ir/cases/case_inputs.h"
#include "ir/graph/interpreter.h"
#include "ir/graph/module.h"
#include "ir/op/signature.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/control/bind_symbol.h"
#include "ir/ops/control/custom_gradient.h"
#include "ir/ops/control/deferred.h"
#include "ir/ops/control/if.h"
#include "ir/ops/control/loop.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/fake_quantize.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "ir/ops/spatial/resize.h"
#include "tests/support/case_seeds.h"

namespace forge::ir {
namespace {

std::vector<ConcreteCase> CasesOf(const OpDef& def) {
  auto cases = ConcreteCases(def);
  EXPECT_TRUE(cases.ok()) << def.info.name << ": " << cases.status();
  return cases.ok() ? *std::move(cases) : std::vector<ConcreteCase>();
}

// Ops that hold functions or nodes of a file, and host steps, which take what is no tensor: they
// are tested where those are made.
bool IsTestedElsewhere(const OpDef& def) {
  return &def == &DefOf<Fused>() || &def == &DefOf<If>() || &def == &DefOf<Loop>() ||
         &def == &DefOf<CustomGradient>() || &def == &DefOf<Deferred>() ||
         &def == &DefOf<BindSymbol>() || def.info.host;
}

// Cases small enough for a plain loop that must run.
std::vector<ConcreteCase> RunnableCases(const OpDef& def) {
  std::vector<ConcreteCase> out;
  for (ConcreteCase& c : CasesOf(def))
    if (c.refuse.empty() && !c.bench) out.push_back(std::move(c));
  EXPECT_NE(out.empty(), !IsTestedElsewhere(def)) << def.info.name << " has no cases";
  return out;
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
    if (def == &DefOf<Deferred>() || def->info.host) continue;  // they look at values
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
      if (in.empty()) continue;
      EXPECT_GE(c.op.Cost(in).terms.min(), 0) << c.ToText();
    }
}

// Runs the op's parts, if it has any at these operands.  Returns whether it has.
bool CheckDecomposition(const ConcreteCase& c, uint64_t seed) {
  Built b(c);
  const Values simpler = c.op.Decompose(b.f, b.in);
  if (simpler.empty()) return false;
  b.Return(simpler);
  EXPECT_TRUE(b.f.status().ok()) << b.f.status();
  const CaseInputs inputs = *MakeInputs(c, seed);
  const auto got = Interpreter{}.Run(b.f, Given(inputs));
  EXPECT_TRUE(got.ok()) << got.status();
  if (!got.ok()) return true;
  const auto reference = *Evaluate(c.op, inputs.pointers());
  for (size_t i = 0; i < reference.size(); ++i) {
    const absl::Status s = CompareResult(c.op, inputs.pointers(), reference[i], got->results[i], i);
    EXPECT_TRUE(s.ok()) << s;
  }
  return true;
}

TEST(OpsTest, DecompositionsAgreeWithEvaluators) {
  for (const OpDef* def : AllOps()) {
    if (def->decompose == nullptr) continue;
    const std::vector<ConcreteCase> cases = RunnableCases(*def);
    int ran = 0;
    for (const ConcreteCase& c : cases)
      for (const uint64_t seed : CaseSeeds()) {
        SCOPED_TRACE(fmt::format("{0} FORGE_CASE_SEEDS={1}..{1}", c.ToText(), seed));
        ran += CheckDecomposition(c, seed);
      }
    EXPECT_EQ(ran > 0, !cases.empty()) << def->info.name << " decomposes in no case";
    RecordProperty(std::string(def->info.name), ran);
  }
}

double KindOf(double v) { return std::isinf(v) || std::isnan(v) ? v : 0; }

// Decompositions multiply no infinity by a zero of their own.
TEST(OpsTest, DecompositionsSpreadAnInfinityAsEvaluatorsDo) {
  int checked = 0;
  for (const OpDef* def : {&DefOf<Resize>(), &DefOf<ConvTranspose>()})
    for (const ConcreteCase& c : RunnableCases(*def)) {
      CaseInputs inputs = *MakeInputs(c);
      const Type& x = c.in[0].type;
      if (!Has(kFloatTypes, x.dtype()) || x.elements() == Dim(0)) continue;
      inputs.values[0]->Set(x.elements().constant() / 2, std::numeric_limits<double>::infinity());
      Built b(c);
      b.Return(c.op.Decompose(b.f, b.in));
      const auto got = Interpreter{}.Run(b.f, Given(inputs));
      ASSERT_TRUE(got.ok()) << c.ToText() << ": " << got.status();
      const HostValue want = (*Evaluate(c.op, inputs.pointers()))[0];
      ++checked;
      for (int64_t i = 0; i < want.elements(); ++i) {
        const double w = KindOf(want.f64(i)), g = KindOf(got->results[0].f64(i));
        ASSERT_TRUE(w == g || (std::isnan(w) && std::isnan(g)))
            << c.ToText() << ": element " << i << " is " << g << " for " << w;
      }
    }
  EXPECT_GT(checked, 20);
}

// ---- gradients ----------------------------------------------------------------------------------

// Numbers in 0.5..1 for the cotangent of a result.
HostValue Cotangent(const Type& t) {
  HostValue v = *HostValue::Zeros(t.dtype(), Constants(t.shape()));
  for (int64_t i = 0; i < v.elements(); ++i) v.Set(i, 0.5 + 0.5 * static_cast<double>(i % 7) / 7);
  return v;
}

// d(sum(dy * y)) / dx of all results at element `i` of operand `k`, by central differences.
double Slope(const ConcreteCase& c, CaseInputs inputs, std::span<const HostValue> dy, size_t k,
             int64_t i) {
  constexpr double kStep = 1e-6;
  const double x = inputs.values[k]->f64(i);
  std::vector<HostValue> sides[2];
  for (int side = 0; side < 2; ++side) {
    inputs.values[k]->Set(i, side == 0 ? x - kStep : x + kStep);
    sides[side] = *Evaluate(c.op, inputs.pointers());
  }
  double sum = 0;  // of differences, so that large results do not hide small ones
  for (size_t r = 0; r < dy.size(); ++r)
    for (int64_t o = 0; o < dy[r].elements(); ++o)
      sum += (sides[1][r].f64(o) - sides[0][r].f64(o)) * dy[r].f64(o);
  return sum / (2 * kStep);
}

// Checks the gradient of all results at each element of each operand of f64; an absent gradient
// stands for zeros.  Returns how many; none where the op says that it has no gradient at this
// attribute.
std::optional<int> CheckGradient(const ConcreteCase& c) {
  const Types types = *c.op.Infer(c.types());
  Built b(c);
  const Values out = b.f.Add(c.op, b.in);
  std::vector<HostValue> cotangents;
  Values dy;
  for (const Type& t : types) {
    dy.push_back(b.f.Argument(fmt::format("dy{}", dy.size()), t));
    cotangents.push_back(Cotangent(t));
  }
  const Values dx = c.op.Gradient(GradArgs{b.f, b.in, out, dy});
  if (absl::IsUnimplemented(b.f.status())) return std::nullopt;
  EXPECT_TRUE(b.f.status().ok()) << b.f.status();
  EXPECT_EQ(dx.size(), b.in.size());
  for (size_t k = 0; k < dx.size(); ++k) {
    if (!dx[k]) continue;
    EXPECT_EQ(dx[k].type(), b.in[k].type());
    b.f.Return(fmt::format("dx{}", k), dx[k]);
  }
  const CaseInputs inputs = *MakeInputs(c);
  std::vector<const HostValue*> arguments = Given(inputs);
  for (const HostValue& v : cotangents) arguments.push_back(&v);
  const auto got = Interpreter{}.Run(b.f, arguments);
  EXPECT_TRUE(got.ok()) << got.status();
  if (testing::Test::HasFailure()) return 0;
  int checked = 0;
  for (size_t k = 0, r = 0; k < dx.size(); ++k) {
    const HostValue* gradient = dx[k] ? &got->results[r++] : nullptr;
    if (!c.in[k].type || c.in[k].type.dtype() != DType::kF64) continue;
    for (int64_t i = 0; i < inputs.values[k]->elements(); ++i, ++checked) {
      const double slope = Slope(c, inputs, cotangents, k, i);
      EXPECT_NEAR(gradient ? gradient->f64(i) : 0, slope, 1e-5 * std::max(1.0, std::fabs(slope)))
          << "operand " << k << ", element " << i;
    }
  }
  return checked;
}

// The op's cases of f64 that are small enough for a slope of each element. Infinities and limits
// have no slope, so numbers are drawn in their place.
std::vector<ConcreteCase> GradientCases(const OpDef& def) {
  constexpr int64_t kLargest = 256;  // elements of an operand
  std::vector<ConcreteCase> out;
  for (ConcreteCase& c : RunnableCases(def)) {
    bool chosen = (*c.op.Infer(c.types()))[0].dtype() == DType::kF64;
    for (CaseOperand& o : c.in) {
      o.edges = false;
      if (!o.type) continue;
      chosen =
          chosen && o.type.elements().constant() <= kLargest &&
          (o.type.dtype() == DType::kF64 || !Has(kAllFloatTypes | kComplexTypes, o.type.dtype()));
    }
    if (chosen) out.push_back(std::move(c));
  }
  return out;
}

TEST(OpsTest, GradientsAreSlopes) {
  std::set<std::string_view> incomplete;  // ops that lack a gradient at some attribute
  for (const OpDef* def : AllOps()) {
    // A straight-through gradient is no slope: goldens and DifferentiateTest have it.
    if (def->gradient == nullptr || def == &DefOf<FakeQuantize>()) continue;
    const std::vector<ConcreteCase> cases = GradientCases(*def);
    int checked = 0;
    for (const ConcreteCase& c : cases) {
      SCOPED_TRACE(c.ToText());
      const std::optional<int> elements = CheckGradient(c);
      if (!elements) incomplete.insert(def->info.name);
      checked += elements.value_or(0);
    }
    // What is made of integers or booleans alone has no slopes.
    const bool has_f64 = std::ranges::any_of(RunnableCases(*def), [](const ConcreteCase& c) {
      return (*c.op.Infer(c.types()))[0].dtype() == DType::kF64 &&
             std::ranges::none_of(c.in, [](const CaseOperand& o) {
               return o.type && Has(kComplexTypes, o.type.dtype());
             });
    });
    EXPECT_EQ(checked > 0, has_f64) << def->info.name;
    RecordProperty(std::string(def->info.name), checked);
  }
  EXPECT_EQ(incomplete, std::set<std::string_view>());
}

}  // namespace
}  // namespace forge::ir
