// SPDX-License-Identifier: Apache-2.0
// Small models, built in place.
#pragma once
#include <algorithm>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "runtime/plan/executable.h"
#include "runtime/session.h"
#include "tests/support/ir_values.h"

namespace forge::testing {

// Numbers between -1 and 1 that repeat late.
inline ir::HostValue Noise(std::vector<int64_t> shape, int64_t seed = 0) {
  ir::HostValue v = *ir::HostValue::Zeros(DType::kF32, shape);
  for (int64_t i = 0; i < v.elements(); ++i)
    v.Set(i, static_cast<double>((i + seed) * 7919 % 2003) / 1001.5 - 1);
  return v;
}

inline ir::Variable* AddVariable(ir::Module& m, std::string name, ir::Variable::Role role,
                                 const ir::HostValue& value) {
  ir::Variable v;
  v.name = std::move(name);
  v.role = role;
  v.type = value.type();
  v.init = ir::Variable::Storage{value.shared_bytes(), value.type(), {}};
  return m.AddVariable(std::move(v));
}

// y[n, 3] = x[n, 3] + [10, 20, 30].
inline std::shared_ptr<const Model> AddingModel() {
  auto m = std::make_unique<ir::Module>();
  ir::Function& f = *m->AddFunction("main");
  const ir::Value x = f.Argument("x", F32({ir::Dim(m->SymbolNamed("n")), 3}));
  ir::Variable* w = AddVariable(*m, "w", ir::Variable::Role::kParameter, Tensor({3}, {10, 20, 30}));
  const ir::Value sum = f(ir::Add{}, {x, f.Read(w)});
  f.SetName(sum, "sum");
  f.Return("y", f(ir::Relu{}, {sum}));
  m->metadata.emplace_back("labels", "[]");
  return std::make_shared<const Model>(std::move(m));
}

// Two convolutions and a pooling, of any batch, with weights that a library packs.
inline std::unique_ptr<ir::Module> ConvolvingModule() {
  auto m = std::make_unique<ir::Module>();
  ir::Function& f = *m->AddFunction("main");
  const auto kRole = ir::Variable::Role::kParameter;
  const ir::Value x = f.Argument("x", F32({ir::Dim(m->SymbolNamed("n")), 8, 12, 12}));
  const ir::Value w1 = f.Read(AddVariable(*m, "w1", kRole, Noise({32, 8, 3, 3})));
  const ir::Value w2 = f.Read(AddVariable(*m, "w2", kRole, Noise({32, 32, 3, 3}, 5)));
  const ir::Value a = f(ir::Relu{}, {f(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w1})});
  const ir::Value p = f(ir::Pool{.kernel = {2, 2}, .strides = {2, 2}}, {a});
  f.Return("y", f(ir::Relu{}, {f(ir::Conv{.padding = {1, 1, 1, 1}}, {p, w2})}));
  return m;
}
inline std::shared_ptr<const Model> ConvolvingModel() {
  return std::make_shared<const Model>(ConvolvingModule());
}

// The steps that compute: devices with memory of their own have copies, too.
inline size_t ComputingSteps(const Session& session) {
  const auto steps = session.executable()->steps();
  return static_cast<size_t>(
      std::ranges::count_if(steps, [](const StepInfo& s) { return s.op != "copy"; }));
}

}  // namespace forge::testing
