// SPDX-License-Identifier: Apache-2.0
// What the tests of passes share: a target that answers as a test tells it to, and the oracle: the
// interpreter on the same random operands before and after a pass.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/graph/interpreter.h"
#include "ir/passes/passes.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {

// Supports and fuses everything, lays out nothing, and each node takes a second, until told
// otherwise.
struct FakeTarget final : Target {
  std::function<Verdict(const Candidate&)> supports = [](const Candidate&) {
    return Verdict::Yes("any");
  };
  std::function<Verdict(const Function&)> fuses = [](const Function&) {
    return Verdict::Yes("any");
  };
  std::function<Verdict(const Function&)> fuses_anchors = [](const Function&) {
    return Verdict::No("never");
  };
  std::function<std::vector<EncodingChoice>(const Candidate&)> encodings = [](const Candidate&) {
    return std::vector<EncodingChoice>();
  };
  Recomputation recomputation = {};
  bool multiplies_bytes = false;
  std::function<double(const Candidate&)> seconds = [](const Candidate&) { return 1.0; };

  std::string_view name() const override { return "fake"; }
  Verdict Supports(const Candidate& node) const override { return supports(node); }
  Verdict Fuses(const Function& body) const override { return fuses(body); }
  Verdict FusesAnchors(const Function& body) const override { return fuses_anchors(body); }
  Recomputation Recomputes() const override { return recomputation; }
  bool MultipliesBytes() const override { return multiplies_bytes; }
  std::vector<EncodingChoice> Encodings(const Candidate& node) const override {
    return encodings(node);
  }
  double Seconds(const Candidate& node) const override { return seconds(node); }
};

// The names of a function's ops, in order.
inline std::vector<std::string> Ops(const Function& f) {
  std::vector<std::string> names;
  for (const Node& n : f.nodes()) names.emplace_back(n.op.name());
  return names;
}

// The only node of an op.
template <class T>
const Node* Only(const Function& f) {
  const Node* found = nullptr;
  for (const Node& n : f.nodes()) {
    if (!n.op.Is<T>()) continue;
    EXPECT_EQ(found, nullptr) << "a second " << n.op.name() << " in\n" << ToText(f);
    found = &n;
  }
  EXPECT_NE(found, nullptr) << "none in\n" << ToText(f);
  return found;
}

class PassTest : public ::testing::Test {
 protected:
  using VariableValues = std::map<const Variable*, HostValue>;

  // Numbers in [-2, 2); integers are whole ones of it, booleans either.
  HostValue Random(const Type& type) {
    HostValue v = *HostValue::Zeros(type.dtype(), Constants(type.shape()));
    for (int64_t i = 0; i < v.elements(); ++i) {
      const double number = static_cast<double>(random_() % 4096) / 1024 - 2;
      v.Set(i, type.dtype() == DType::kBool ? number < 0 : number);
    }
    return v;
  }

  Variable* Add(std::string name, const HostValue& v,
                Variable::Role role = Variable::Role::kConstant) {
    return m_.AddVariable({.name = std::move(name),
                           .role = role,
                           .type = v.type(),
                           .init = Variable::Storage{v.shared_bytes(), v.type(), {}}});
  }
  // A constant of random numbers, read by `f`.
  Value Constant(Function& f, std::string name, Dims shape) {
    return f.Read(Add(std::move(name), Random(F32(std::move(shape)))));
  }
  Value Number(Function& f, double number, Dims shape = {}, DType dtype = DType::kF32) {
    HostValue v = *HostValue::Zeros(dtype, Constants(shape));
    for (int64_t i = 0; i < v.elements(); ++i) v.Set(i, number);
    return f.Read(Add("number", v));
  }
  Value Integers(Function& f, std::vector<int64_t> numbers) {
    HostValue v = *HostValue::Zeros(DType::kI64, std::vector{static_cast<int64_t>(numbers.size())});
    for (size_t i = 0; i < numbers.size(); ++i) v.SetI64(static_cast<int64_t>(i), numbers[i]);
    return f.Read(Add("integers", v));
  }

  // What `pass` makes of `in`, kept in the module, which must verify.
  const Function& After(const Function& in,
                        const std::function<absl::Status(const Function&, Function&)>& pass) {
    EXPECT_THAT(in.status(), Succeeds());
    auto made = std::make_unique<Function>(fmt::format("after.{}", m_.functions().size()), &m_);
    EXPECT_THAT(pass(in, *made), Succeeds()) << ToText(in);
    return *Keep(std::move(made));
  }
  // Its name must be free.
  Function* Keep(std::unique_ptr<Function> f) {
    const std::string name = m_.AddFunction("kept")->name();
    Function* kept = m_.Replace(name, std::move(f));
    EXPECT_THAT(Verify(m_), Succeeds()) << ToText(*kept);
    return kept;
  }

  absl::StatusOr<Interpretation> Run(const Function& f, const std::vector<HostValue>& arguments,
                                     const VariableValues& computed = {}) {
    std::vector<const HostValue*> pointers;
    for (const HostValue& v : arguments) pointers.push_back(&v);
    Interpreter interpreter;
    interpreter.read = [&](const Variable& v) -> absl::StatusOr<HostValue> {
      if (auto it = computed.find(&v); it != computed.end()) return it->second;
      return InitialValue(v);
    };
    return interpreter.Run(f, pointers);
  }

  std::vector<HostValue> RandomArguments(const Function& f, const Bindings& values = {}) {
    std::vector<HostValue> arguments;
    for (const auto& a : f.arguments()) arguments.push_back(Random(f.type(a.value).Bind(values)));
    return arguments;
  }

  struct Oracle {
    Bindings values = {};          // of the symbols in arguments' types
    double tolerance = 0;          // of each number, relative to the larger of it and 1
    VariableValues computed = {};  // what `after` finds in variables
  };
  // Runs both functions on the same random arguments.
  void ExpectSame(const Function& before, const Function& after, const Oracle& oracle) {
    const std::vector<HostValue> arguments = RandomArguments(before, oracle.values);
    FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation want, Run(before, arguments));
    FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation got, Run(after, arguments, oracle.computed));
    ASSERT_EQ(want.results.size(), got.results.size());
    for (size_t i = 0; i < want.results.size(); ++i) {
      EXPECT_EQ(before.results()[i].name, after.results()[i].name);
      ExpectClose(want.results[i], got.results[i], oracle.tolerance);
    }
    ASSERT_EQ(want.updates.size(), got.updates.size());
    for (size_t i = 0; i < want.updates.size(); ++i) {
      EXPECT_EQ(want.updates[i].first, got.updates[i].first);
      ExpectClose(want.updates[i].second, got.updates[i].second, oracle.tolerance);
    }
  }
  void ExpectSame(const Function& before, const Function& after) { ExpectSame(before, after, {}); }

  // The functions that ops have as bodies.
  static std::vector<const Function*> Bodies(const Function& f) {
    std::vector<const Function*> bodies;
    for (const Node& n : f.nodes())
      for (const Field& field : n.op.def().fields)
        if (field.kind == FieldKind::kFunction)
          bodies.push_back(*static_cast<Function* const*>(field.at_const(n.op.self())));
    return bodies;
  }

  Module m_;
  Function& f_ = *m_.AddFunction("main");

 private:
  static void ExpectClose(const HostValue& want, const HostValue& got, double tolerance) {
    ASSERT_EQ(want.type(), got.type());
    for (int64_t i = 0; i < want.elements(); ++i) {
      const double w = want.f64(i), g = got.f64(i);
      if (std::isnan(w) && std::isnan(g)) continue;
      ASSERT_LE(std::abs(w - g), tolerance * std::max(1.0, std::abs(w)))
          << "element " << i << ": " << w << " before, " << g << " after";
    }
  }

  std::mt19937 random_{1};
};

}  // namespace forge::ir
