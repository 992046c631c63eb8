// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/list.h"

namespace forge::codegen {
namespace {

constexpr const Schedule* kSchedules[] = {
    &kConvDepthwise, &kMatmulShuffle,   &kMatmulShared,     &kMatmulSimple,    &kConvDirect,
    &kPool,          &kReduceRows,      &kReduceOutputs,    &kSoftmaxRows,     &kSoftmaxSerial,
    &kLayerNormRows, &kLayerNormSerial, &kAttentionShuffle, &kAttentionShared, &kElementwise,
};

struct Choice {
  const Schedule* schedule = nullptr;  // null: none fits
  std::shared_ptr<void> parameters;
  std::string refusals;
};

Choice Choose(const Region& r) {
  Choice c;
  for (const Schedule* s : AllSchedules()) {
    if (!s->takes(r)) continue;
    c.parameters = s->defaults(r);
    const Verdict v = s->fits(r, c.parameters.get());
    if (v) {
      c.schedule = s;
      return c;
    }
    c.refusals += fmt::format("{}{}: {}", c.refusals.empty() ? "" : "; ", s->name, v.text());
  }
  if (c.refusals.empty()) c.refusals = fmt::format("no schedule takes {}", r.anchor()->op.name());
  return c;
}

bool WritesNothing(const Region& r) {
  for (const ir::Function::Result& result : r.body().results())
    if (!(r.body().type(result.value).elements() == ir::Dim(0))) return false;
  return true;
}

}  // namespace

std::span<const Schedule* const> AllSchedules() { return kSchedules; }

absl::StatusOr<Program> Generate(const Region& r) {
  if (WritesNothing(r)) return Program{.kernel = "nothing", .launches = {}, .scratch_bytes = {}};
  const Choice c = Choose(r);
  if (c.schedule == nullptr) return Unimplemented("{}", c.refusals);
  return c.schedule->emit(r, c.parameters.get());
}

Verdict CanGenerate(const Region& r) {
  const Choice c = Choose(r);
  return c.schedule != nullptr ? Verdict::Yes(std::string(c.schedule->name))
                               : Verdict::No(c.refusals);
}

}  // namespace forge::codegen
