// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/compare.h"

#include <algorithm>
#include <cmath>

#include "ir/graph/interpreter.h"

namespace forge {
namespace {

int64_t ArgMax(const ir::HostValue& v, int64_t begin, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (v.f64(begin + i) > v.f64(begin + best)) best = i;
  return best;
}

// Whether the largest element of each row of `classes` is at the same place. Elements of `r` that
// differ by at most `slack` of the largest one may change places.
bool SameClasses(const ir::HostValue& x, const ir::HostValue& r, int64_t classes, double slack) {
  for (int64_t at = 0; at < r.elements(); at += classes) {
    const int64_t expected = ArgMax(r, at, classes), found = ArgMax(x, at, classes);
    const double largest = r.f64(at + expected);
    if (found != expected && !(largest - r.f64(at + found) <= slack * std::abs(largest)))
      return false;
  }
  return true;
}

bool SameSpecials(double x, double r) {
  if (std::isnan(x) || std::isnan(r)) return std::isnan(x) && std::isnan(r);
  if (std::isinf(x) || std::isinf(r)) return x == r;
  return true;
}

void CompareElements(const ir::HostValue& x, const ir::HostValue& r, OutputDifference& d) {
  double error = 0, norm = 0;
  for (int64_t i = 0; i < r.elements(); ++i) {
    const double a = x.f64(i), b = r.f64(i);
    if (!SameSpecials(a, b)) d.same_specials = false;
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    error += (a - b) * (a - b);
    norm += b * b;
    d.max_abs = std::max(d.max_abs, std::abs(a - b));
  }
  d.nmse = error == 0 ? 0 : norm == 0 ? INFINITY : error / norm;
  d.rel_error = std::sqrt(d.nmse);
}

}  // namespace

double ModelBound(DType t) {
  switch (t) {
    case DType::kF16:
      return 1e-2;
    case DType::kBF16:
      return 3e-2;
    case DType::kF32:
    case DType::kF64:
      return 1e-4;
    default:
      return 0;  // integers and booleans are equal or wrong
  }
}

bool Comparison::within() const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const OutputDifference& d) { return d.within; });
}

const OutputDifference* Comparison::worst() const {
  auto it = std::max_element(outputs.begin(), outputs.end(), [](const auto& a, const auto& b) {
    if (a.within != b.within) return a.within;
    return a.rel_error < b.rel_error;
  });
  return it == outputs.end() ? nullptr : &*it;
}

ir::Precision PrecisionBeside(const ir::Precision& precision, const Device& device) {
  return device.info().backend == "reference" ? ir::Precision{} : precision;
}

absl::StatusOr<Comparison> Compare(const std::vector<NamedTensor>& results,
                                   const std::vector<NamedTensor>& expected, Against against,
                                   const ir::Precision& precision) {
  if (results.size() != expected.size())
    return Internal("{} outputs instead of {}", results.size(), expected.size());
  const double bounds = against == Against::kDevice ? 2 : 1;
  const double coarsest = ModelBound(precision.coarsest());
  Comparison c;
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::HostValue &x = results[i].value, &r = expected[i].value;
    if (results[i].name != expected[i].name || !(x.type() == r.type()))
      return Internal("output '{}' is {}, but '{}' of type {} was expected", results[i].name,
                      x.type().ToText(), expected[i].name, r.type().ToText());
    OutputDifference d{.output = results[i].name};
    CompareElements(x, r, d);
    d.bound = ModelBound(r.dtype());
    if (Has(kFloatTypes, r.dtype())) {
      const bool coarser = coarsest > d.bound;
      d.bound = bounds * std::max(d.bound, coarsest);
      const int64_t classes = r.rank() > 0 ? r.shape().back() : 0;
      if (classes > 1) d.same_classes = SameClasses(x, r, classes, coarser ? d.bound : 0);
    }
    d.within = d.same_specials && d.same_classes && d.rel_error <= d.bound;
    c.outputs.push_back(d);
  }
  return c;
}

absl::StatusOr<bool> StepAgrees(const StepView& step) {
  std::vector<const ir::HostValue*> operands;
  for (size_t i = 0; i < step.in.size(); ++i)
    operands.push_back(step.node->in[i] == ir::kAbsent ? nullptr : &step.in[i]);
  FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> expected,
                         ir::Evaluate(step.node->op, operands));
  std::vector<NamedTensor> have, want;
  for (size_t k = 0; k < expected.size(); ++k) {
    have.push_back({"", step.out[k]});
    want.push_back({"", std::move(expected[k])});
  }
  FORGE_ASSIGN_OR_RETURN(Comparison c, Compare(have, want));
  // Inner values have no classes: a near tie in the middle of a network is no difference.
  return std::all_of(c.outputs.begin(), c.outputs.end(), [](const OutputDifference& d) {
    return d.same_specials && d.rel_error <= ModelBound(DType::kF32);
  });
}

}  // namespace forge
