// SPDX-License-Identifier: Apache-2.0
// The parts of gradients of ops with bodies.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// The operands from `first` on that a gradient is wanted of.
std::vector<size_t> WantedGradients(const GradArgs& g, size_t first);
// One value for each operand: `made` for those in `wanted`, absent for the others.
Values Gradients(const GradArgs& g, const std::vector<size_t>& wanted, ValueSpan made);

// True for values that have gradients.
bool IsDifferentiable(const Type& type);

// A body that computes gradients of another one. Errors go to the function that is differentiated.
class GradientBody {
 public:
  GradientBody(const GradArgs& g, const Function& of)
      : g_(g), f_(*g.fn.module()->AddFunction(of.name() + ".gradient")) {}
  Function& f() { return f_; }
  // `gradient` is that of `of`; both are values of f().
  void Seed(Value of, Value gradient) {
    of_.push_back(of);
    seeds_.push_back(gradient);
  }
  // Appends the gradients of all that was seeded.
  Values Append(ValueSpan with) { return g_.bodies->Append(f_, of_, seeds_, with); }
  void Return(Value v) { f_.Return(fmt::format("result.{}", f_.results().size()), v); }
  Function* Finish() {
    if (!f_.status().ok()) g_.fn.Fail(f_.status());
    return &f_;
  }

 private:
  const GradArgs& g_;
  Function& f_;
  Values of_, seeds_;
};

}  // namespace forge::ir
