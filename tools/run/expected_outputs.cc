// SPDX-License-Identifier: Apache-2.0
#include "tools/run/expected_outputs.h"

#include <algorithm>
#include <cmath>

#include "formats/arrays/npy.h"
#include "tools/support/tensor_io.h"

namespace forge::tools {
namespace {

// How far x lies outside the tolerance around r, in units of the tolerance; 0: inside.
double Excess(double x, double r, const Tolerance& t) {
  if (std::isnan(x) || std::isnan(r)) return std::isnan(x) && std::isnan(r) ? 0 : INFINITY;
  if (std::isinf(x) || std::isinf(r)) return x == r ? 0 : INFINITY;
  const double apart = std::abs(x - r), allowed = t.absolute + t.relative * std::abs(r);
  if (apart <= allowed) return 0;
  return allowed == 0 ? INFINITY : apart / allowed;
}

ExpectedOutput CompareOne(const NamedTensor& output, const ir::HostValue& expected, Tolerance t) {
  ExpectedOutput out{.name = output.name, .elements = expected.elements()};
  double furthest = 0;
  const bool text = expected.dtype() == DType::kString;
  for (int64_t i = 0; text && i < expected.elements(); ++i)
    out.outside += output.value.string(i) != expected.string(i);
  for (int64_t i = 0; !text && i < expected.elements(); ++i) {
    const double x = output.value.f64(i), r = expected.f64(i);
    if (std::isfinite(x) && std::isfinite(r)) {
      out.max_abs = std::max(out.max_abs, std::abs(x - r));
      if (r != 0) out.max_rel = std::max(out.max_rel, std::abs((x - r) / r));
    }
    const double excess = Excess(x, r, t);
    out.outside += excess > 0;
    if (excess <= furthest) continue;
    furthest = excess;
    out.worst = i, out.have = x, out.want = r;
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<ExpectedOutput>> CompareWithFiles(
    const std::vector<NamedTensor>& outputs, const std::filesystem::path& folder, Tolerance t) {
  std::vector<Session::Port> ports;
  for (const NamedTensor& o : outputs) ports.push_back({o.name, o.value.type()});
  FORGE_ASSIGN_OR_RETURN(const std::vector<std::string> names, FileNames(ports));
  std::vector<ExpectedOutput> out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::filesystem::path file = folder / (names[i] + ".npy");
    FORGE_ASSIGN_OR_RETURN(const ir::HostValue expected, ReadNpy(file));
    if (!std::ranges::equal(expected.shape(), outputs[i].value.shape()))
      return Internal("output '{}' is {}, but {} contains {}", outputs[i].name,
                      outputs[i].value.type().ToText(), file.string(), expected.type().ToText());
    out.push_back(CompareOne(outputs[i], expected, t));
  }
  return out;
}

}  // namespace forge::tools
