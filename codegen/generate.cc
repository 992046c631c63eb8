// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/emission.h"
#include "codegen/tuning.h"

namespace forge::codegen {
namespace {

constexpr const Schedule* kSchedules[] = {
    &kConvDepthwise,     &kConvWinograd,  &kMatmulColumns,   &kMatmulDots,       &kMatmulMatrix,
    &kMatmulShuffle,     &kMatmulShared,  &kMatmulSimple,    &kConvDirect,       &kPool,
    &kReduceRows,        &kReduceOutputs, &kSoftmaxSubgroup, &kSoftmaxRows,      &kSoftmaxSerial,
    &kLayerNormSubgroup, &kLayerNormRows, &kLayerNormSerial, &kAttentionShuffle, &kAttentionShared,
    &kTranspose,         &kElementwise,
};

bool WritesNothing(const Region& r) {
  for (const ir::Function::Result& result : r.body().results())
    if (!(r.body().type(result.value).elements() == ir::Dim(0))) return false;
  return true;
}

Program Nothing() { return {.kernel = "nothing"}; }

absl::StatusOr<Choice> FirstThatFits(const Region& r, std::span<const Schedule* const> schedules) {
  std::string refusals;
  for (const Schedule* s : schedules) {
    if (!s->takes(r)) continue;
    Choice c{s, s->defaults(r)};
    const Verdict v = s->fits(r, c.parameters.get());
    if (v) return c;
    refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", s->name, v.text());
  }
  if (refusals.empty()) refusals = fmt::format("no schedule takes {}", r.anchor()->op.name());
  return Unimplemented("{}", refusals);
}

}  // namespace

std::span<const Schedule* const> AllSchedules() { return kSchedules; }

absl::StatusOr<Choice> DefaultChoice(const Region& r) { return FirstThatFits(r, AllSchedules()); }

absl::StatusOr<Choice> SimplestChoice(const Region& r) {
  std::vector<const Schedule*> simplest_first(AllSchedules().rbegin(), AllSchedules().rend());
  return FirstThatFits(r, simplest_first);
}

Program Generate(const Region& r, const Choice& choice) {
  if (WritesNothing(r)) return Nothing();
  return choice.schedule->emit(r, choice.parameters.get());
}

absl::StatusOr<Program> Generate(const Region& r) {
  if (WritesNothing(r)) return Nothing();
  FORGE_ASSIGN_OR_RETURN(const Choice choice, DefaultChoice(r));
  return Generate(r, choice);
}

Verdict CanGenerate(const Region& r) {
  const absl::StatusOr<Choice> choice = DefaultChoice(r);
  return choice.ok() ? Verdict::Yes(std::string(choice->schedule->name))
                     : Verdict::No(std::string(Message(choice.status())));
}

}  // namespace forge::codegen
