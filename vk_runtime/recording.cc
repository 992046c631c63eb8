// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/recording.h"

#include "vk_runtime/recorder.h"

namespace forge::vk {

absl::StatusOr<std::unique_ptr<Recording>> Recording::Make(const RecordInput& input) {
  std::unique_ptr<Recording> r(new Recording);
  r->context_ = input.context;
  r->steps_ = static_cast<uint32_t>(input.steps.size());
  FORGE_RETURN_IF_ERROR(Recorder(input, *r).Run());
  return r;
}

absl::StatusOr<std::shared_ptr<const Recording>> Recording::OfCopy(const ContextRef& context,
                                                                   const CopyBytes& copy) {
  const auto inside = [&](const VulkanBuffer& b, uint64_t at) {
    return at <= b.size() && copy.bytes <= b.size() - at;
  };
  if (!inside(copy.from, copy.at) || !inside(copy.to, copy.to_at))
    return OutOfRange("a copy of {} bytes from {} of {} to {} of {} leaves its buffers", copy.bytes,
                      copy.at, copy.from.size(), copy.to_at, copy.to.size());
  const uint64_t distance = copy.at > copy.to_at ? copy.at - copy.to_at : copy.to_at - copy.at;
  if (&copy.from == &copy.to && distance < copy.bytes)
    return InvalidArgument("a copy of {} bytes overlaps itself", copy.bytes);
  std::shared_ptr<Recording> r(new Recording);
  r->context_ = context;
  const ir::Bindings none;
  const RecordInput input{.context = context,
                          .steps = {},
                          .slots = {},
                          .values = none,
                          .nothing = copy.from,
                          .timestamps = false};
  FORGE_RETURN_IF_ERROR(Recorder(input, *r).RunCopy(copy));
  return r;
}

absl::StatusOr<std::vector<StepTime>> Recording::Times() const {
  const uint32_t bits = context_->queries().queues[context_->family()].timestampValidBits;
  if (bits == 0) return Unimplemented("the compute queue of this device has no timestamps");
  std::vector<StepTime> times(steps_);
  if (!queries_) return InvalidArgument("the segment was recorded without timestamps");
  std::vector<uint64_t> ticks(2 * size_t{steps_});
  FORGE_RETURN_IF_ERROR(context_->Check(
      context_->fn.vkGetQueryPoolResults(context_->device, queries_.get(), 0, 2 * steps_,
                                         ticks.size() * sizeof(uint64_t), ticks.data(),
                                         sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
      "vkGetQueryPoolResults"));
  const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  const double period = context_->limits().timestampPeriod;  // nanoseconds of a tick
  const auto nanoseconds = [&](uint64_t t) {
    return static_cast<uint64_t>(static_cast<double>(t & mask) * period);
  };
  for (uint32_t i = 0; i < steps_; ++i)
    times[i] = {nanoseconds(ticks[2 * i]), nanoseconds(ticks[2 * i + 1])};
  return times;
}

}  // namespace forge::vk
