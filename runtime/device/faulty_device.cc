// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/faulty_device.h"

#include <algorithm>

#include "base/platform.h"
#include "runtime/device/forwarding_device.h"

namespace forge {
namespace {

constexpr uint64_t kGarbageBytes = 4096;
// 0x4545...: a normal number in every float format, far from what networks compute.
constexpr uint8_t kGarbage = 0x45;

struct FaultySegment final : Segment {
  SegmentRef inner;
  std::vector<bool> is_fault;  // by step of `inner`
  int barriers() const override { return inner->barriers(); }
};

class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice(DeviceRef device, std::string label, BufferRef garbage)
      : ForwardingDevice(std::move(device)),
        label_(std::move(label)),
        garbage_(std::move(garbage)) {}
  absl::StatusOr<SegmentRef> Record(const SegmentSpec& spec) override;
  absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) override;
  absl::Status Run(const SegmentRef& segment, const SubmitArgs& args) override {
    return Device::Run(segment, args);
  }
  absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) override;

 private:
  std::string label_;
  BufferRef garbage_;
};

// The step that spoils the first result of `step`; null when it has none of a size known.
std::optional<Step> Spoil(const Step& step, uint32_t garbage_slot) {
  const auto result = std::find_if(step.operands.begin(), step.operands.end(),
                                   [](const Operand& o) { return o.writes; });
  if (result == step.operands.end() || !result->bytes.is_constant() ||
      result->bytes.constant() == 0)
    return std::nullopt;
  const int64_t bytes = std::min<int64_t>(result->bytes.constant(), kGarbageBytes);
  Step spoil;
  spoil.operands = {{garbage_slot, 0, bytes, false}, {result->slot, result->offset, bytes, true}};
  spoil.label = "fault in " + step.label;
  return spoil;
}

// The same segment with one slot more, for the garbage.
absl::StatusOr<SegmentRef> FaultyDevice::Record(const SegmentSpec& spec) {
  auto segment = std::make_shared<FaultySegment>();
  std::vector<SlotSpec> slots(spec.slots.begin(), spec.slots.end());
  slots.push_back({garbage_->size(), false});
  std::vector<Step> steps;
  for (const Step& step : spec.steps) {
    steps.push_back(step);
    segment->is_fault.push_back(false);
    if (!step.program || step.label != label_) continue;
    if (auto spoil = Spoil(step, static_cast<uint32_t>(spec.slots.size()))) {
      steps.push_back(*std::move(spoil));
      segment->is_fault.push_back(true);
    }
  }
  FORGE_ASSIGN_OR_RETURN(segment->inner,
                         device().Record({steps, slots, spec.step_symbols, spec.timestamps}));
  return SegmentRef(std::move(segment));
}

absl::StatusOr<Point> FaultyDevice::Submit(const SegmentRef& segment, const SubmitArgs& args) {
  std::vector<BufferRef> slots(args.slots.begin(), args.slots.end());
  slots.push_back(garbage_);
  SubmitArgs inner = args;
  inner.slots = slots;
  return device().Submit(static_cast<const FaultySegment&>(*segment).inner, inner);
}

absl::StatusOr<std::vector<StepTime>> FaultyDevice::Timestamps(const Segment& s) {
  const auto& segment = static_cast<const FaultySegment&>(s);
  FORGE_ASSIGN_OR_RETURN(const std::vector<StepTime> all, device().Timestamps(*segment.inner));
  std::vector<StepTime> times;
  for (size_t i = 0; i < all.size(); ++i)
    if (!segment.is_fault[i]) times.push_back(all[i]);
  return times;
}

}  // namespace

absl::StatusOr<DeviceRef> WithFault(DeviceRef device, std::string label) {
  FORGE_ASSIGN_OR_RETURN(BufferRef garbage, device->Allocate(Memory::kUpload, kGarbageBytes));
  FORGE_ASSIGN_OR_RETURN(std::span<uint8_t> mapped, device->Map(*garbage));
  std::fill(mapped.begin(), mapped.end(), kGarbage);
  return DeviceRef(
      std::make_shared<FaultyDevice>(std::move(device), std::move(label), std::move(garbage)));
}

absl::StatusOr<DeviceRef> WithFaultFromEnvironment(DeviceRef device) {
  const auto value = Environment("FORGE_FAULT");
  if (!value || value->empty()) return device;
  const size_t slash = value->find('/');
  if (slash == std::string::npos)
    return InvalidArgument("FORGE_FAULT is '{}', which is not of the form BACKEND/LABEL", *value);
  if (value->substr(0, slash) != device->info().backend) return device;
  return WithFault(std::move(device), value->substr(slash + 1));
}

}  // namespace forge
