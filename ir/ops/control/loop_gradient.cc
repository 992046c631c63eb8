// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/copier.h"
#include "ir/ops/control/bind_symbol.h"
#include "ir/ops/control/body_gradient.h"
#include "ir/ops/control/loop.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/index.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {
namespace {

Value NumberOf(Function& f, DType dtype, double v, Dims shape = {}) {
  return f(Fill{.value = v, .dtype = dtype, .shape = std::move(shape)}, {});
}

Value ZerosLike(Value v) { return NumberOf(*v.fn, v.type().dtype(), 0, v.type().shape()); }

// Three loops: one that counts the steps where no rows say how many there are; the loop again,
// with what each step begins with as rows; and one that goes back over these rows.
class LoopGradient {
 public:
  LoopGradient(const Loop& loop, const GradArgs& g)
      : body_(*loop.body),
        g_(g),
        carried_(static_cast<size_t>(loop.carried)),
        wanted_(WantedGradients(g, 2 + carried_)) {
    for (size_t i = 0; i < carried_; ++i)
      if (IsDifferentiable(g.in[2 + i].type())) live_.push_back(i);
    for (size_t k = carried_; k < g.dout.size(); ++k)
      if (g.dout[k]) rows_.push_back(k);
  }

  Values Append(const Dim& rows) {
    for (size_t i = 0; i < carried_; ++i) {
      const Type& type = g_.in[2 + i].type();
      if (type.is_tensor() && type == g_.out[i].type() && type == ArgumentType(2 + i)) continue;
      g_.fn.Fail(
          Unimplemented("loop: value {} that is carried has no type that all steps share: it "
                        "begins as {} and ends as {}",
                        i, type.ToText(), g_.out[i].type().ToText()));
      return {};
    }
    steps_ = rows == Dim(-1) ? CountSteps() : rows;
    const Values saved = Replay();
    const Values made = GoBack(saved);
    Values out(g_.in.size());
    if (!g_.fn.status().ok()) return out;
    for (size_t j = 0; j < live_.size(); ++j) out[2 + live_[j]] = made[j];
    for (size_t j = 0; j < wanted_.size(); ++j) out[wanted_[j]] = made[live_.size() + j];
    return out;
  }

 private:
  const Type& ArgumentType(size_t i) const { return body_.type(body_.arguments()[i].value); }

  // Appends arguments of a body like those from `first` to `last` of the loop's.
  void AddArguments(Function& f, size_t first, size_t last, Values& to) const {
    for (size_t i = first; i < last; ++i)
      to.push_back(f.Argument(body_.arguments()[i].name, ArgumentType(i)));
  }

  // The condition and the carried values of a step.
  void ReturnCarried(Function& f, const Values& step) const {
    for (size_t i = 0; i <= carried_; ++i) f.Return(fmt::format("result.{}", i), step[i]);
  }

  Dim CountSteps() {
    Function& f = *g_.fn.module()->AddFunction(body_.name() + ".count");
    Values in;
    AddArguments(f, 0, 2 + carried_, in);
    const Value count = f.Argument("count", Type::Tensor(DType::kI64, {}));
    AddArguments(f, 2 + carried_, body_.arguments().size(), in);
    const Values out = Inline(body_, f, in);
    ReturnCarried(f, out);
    f.Return("count", count + 1.0);
    Values operands(g_.in.begin(), g_.in.end());
    operands.insert(operands.begin() + static_cast<ptrdiff_t>(2 + carried_),
                    NumberOf(g_.fn, DType::kI64, 0));
    const Loop counting{.body = &f, .carried = static_cast<int64_t>(carried_) + 1};
    const Values made = g_.fn.Add(counting, operands);
    if (!g_.fn.status().ok()) return 0;
    Module& m = *g_.fn.module();
    std::string name = "steps";
    while (m.FindSymbol(name)) name += "_";
    const Dim symbol(m.SymbolNamed(name));
    g_.fn(BindSymbol{symbol}, {made[carried_]});
    return symbol;
  }

  // Returns for each carried value the rows of what the steps begin with.
  Values Replay() {
    if (carried_ == 0) return {};
    Function& f = *g_.fn.module()->AddFunction(body_.name() + ".replay");
    Values in;
    AddArguments(f, 0, body_.arguments().size(), in);
    const Values out = Inline(body_, f, in);
    ReturnCarried(f, out);
    for (size_t i = 0; i < carried_; ++i) f.Return(fmt::format("begin.{}", i), in[2 + i]);
    const Loop replay{&f, static_cast<int64_t>(carried_), steps_};
    const Values made = g_.fn.Add(replay, g_.in);
    if (!g_.fn.status().ok()) return {};
    return {made.begin() + static_cast<ptrdiff_t>(carried_), made.end()};
  }

  // One step back. Its carried values are the gradients of the loop's carried values, and the sums
  // of those of its captures.
  Function* StepBack(ValueSpan saved) {
    GradientBody out(g_, body_);
    Function& f = out.f();
    const Value step = f.Argument("step", Type::Tensor(DType::kI64, {}));
    f.Argument("condition", Type::Tensor(DType::kBool, {}));
    Values gradients, sums, captures, rows, row_gradients;
    for (const size_t i : live_)
      gradients.push_back(f.Argument(fmt::format("gradient.{}", i), g_.in[2 + i].type()));
    for (const size_t i : wanted_)
      sums.push_back(f.Argument(fmt::format("sum.{}", i), g_.in[i].type()));
    const Value steps = f.Argument("steps", Type::Tensor(DType::kI64, {}));
    for (const Value& s : saved)
      rows.push_back(f.Argument(fmt::format("begin.{}", rows.size()), s.type()));
    AddArguments(f, 2 + carried_, body_.arguments().size(), captures);
    for (const size_t k : rows_)
      row_gradients.push_back(f.Argument(fmt::format("rows.{}", k), g_.dout[k].type()));
    const Value at = steps - step - 1.0;
    const auto row = [&](Value of) { return f(IndexOp{}, {of, at}); };
    Values in = {at, NumberOf(f, DType::kBool, 1)}, with;
    for (const Value& r : rows) in.push_back(row(r));
    in.insert(in.end(), captures.begin(), captures.end());
    const Values results = Inline(body_, f, in);
    for (size_t j = 0; j < live_.size(); ++j) out.Seed(results[1 + live_[j]], gradients[j]);
    for (size_t j = 0; j < rows_.size(); ++j)
      out.Seed(results[1 + rows_[j]], row(row_gradients[j]));
    for (const size_t i : live_) with.push_back(in[2 + i]);
    for (const size_t i : wanted_) with.push_back(in[i]);
    const Values made = out.Append(with);
    out.Return(NumberOf(f, DType::kBool, 1));
    for (size_t j = 0; j < made.size(); ++j)
      out.Return(j < live_.size() ? made[j] : sums[j - live_.size()] + made[j]);
    return out.Finish();
  }

  Values GoBack(ValueSpan saved) {
    Function& f = g_.fn;
    if (!f.status().ok()) return {};
    Function* const body = StepBack(saved);
    const Value steps = f(Reduce{.kind = ReduceKind::kSum, .axes = {}, .keep_dims = false},
                          {NumberOf(f, DType::kI64, 1, {steps_})});
    Values operands = {steps, {}};
    for (const size_t i : live_)
      operands.push_back(g_.dout[i] ? g_.dout[i] : ZerosLike(g_.in[2 + i]));
    for (const size_t i : wanted_) operands.push_back(ZerosLike(g_.in[i]));
    operands.push_back(steps);
    operands.insert(operands.end(), saved.begin(), saved.end());
    operands.insert(operands.end(), g_.in.begin() + static_cast<ptrdiff_t>(2 + carried_),
                    g_.in.end());
    for (const size_t k : rows_) operands.push_back(g_.dout[k]);
    return f.Add(Loop{body, static_cast<int64_t>(live_.size() + wanted_.size())}, operands);
  }

  const Function& body_;
  const GradArgs& g_;
  const size_t carried_;
  const std::vector<size_t> wanted_;  // operands: captures with gradients
  std::vector<size_t> live_;          // of the carried values, those with gradients
  std::vector<size_t> rows_;          // results: rows that a gradient reaches
  Dim steps_ = 0;
};

}  // namespace

Values Loop::gradient(const GradArgs& g) const { return LoopGradient(*this, g).Append(rows); }

}  // namespace forge::ir
