// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/split.h"

#include <algorithm>

namespace forge::codegen {

int64_t SplitRule::PartsOf(int64_t pieces, int64_t length) const {
  int64_t parts = 1;
  if (pieces >= few || length < shortest) return parts;
  while (parts < most && pieces * parts < enough && length >= 2 * parts * least) parts *= 2;
  return parts;
}

std::string SplitText(int64_t parts) { return parts > 1 ? fmt::format("_split_{}", parts) : ""; }

SplitOperands::SplitOperands(const Region& r) : before(r.BindingsBehind(r.anchor()->in)) {
  std::vector<uint32_t> results;
  for (const ir::Function::Result& result : r.body().results()) results.push_back(result.value);
  after = r.BindingsBehind(results);
  const int count = r.operand_count();
  for (int i = count - static_cast<int>(results.size()); i < count; ++i) after += r.PartsOf(i);
}

Verdict ScratchFits(const Region& r, int64_t bytes, const SplitOperands& bound) {
  const int64_t scratch = 1 + r.scratch_begin() - r.operand_count();
  if (std::max(bound.before, bound.after) + scratch > r.caps().max_operands)
    return Verdict::No("no room for scratch");
  if (bytes > std::min(kMostScratchBytes, r.caps().max_operand_bytes))
    return Verdict::No("parts need too much scratch");
  return Verdict::Yes();
}

AxisPart::AxisPart(const ir::Dim& extent, const ir::Dim& part, int64_t parts) {
  const ir::Dim each = CeilDiv(extent, parts);
  begin = part * each;
  end = parts == 1 ? extent : Min(begin + each, extent);
}

Program SplitProgram(Launch parts, int64_t scratch_bytes, std::string_view combines,
                     absl::FunctionRef<Launch(std::string name)> combine) {
  Program out = OneLaunch(std::move(parts));
  out.scratch_bytes = {scratch_bytes};
  out.launches.push_back(combine(fmt::format("{}{}", out.kernel, combines)));
  return out;
}

}  // namespace forge::codegen
