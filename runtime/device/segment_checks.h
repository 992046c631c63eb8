// SPDX-License-Identifier: Apache-2.0
// Checks of what is given to a device that records segments.
#pragma once
#include <memory>
#include <vector>

#include "runtime/device/device.h"

namespace forge {

// Checks that every program is an OwnProgram and every operand refers to a slot.
//   errors: InvalidArgument, OutOfRange, with the step's label
template <class OwnProgram>
absl::Status CheckSteps(const SegmentSpec& spec) {
  for (const Step& s : spec.steps) {
    if (s.program && dynamic_cast<const OwnProgram*>(s.program.get()) == nullptr)
      return Annotate(InvalidArgument("its program belongs to another device"), s.label);
    for (const Operand& o : s.operands)
      if (o.slot != Operand::kNoSlot && o.slot >= spec.slots.size())
        return Annotate(
            OutOfRange("it refers to slot {}, but there are {} slots", o.slot, spec.slots.size()),
            s.label);
  }
  return absl::OkStatus();
}

// What a segment asks of a submission.
struct SegmentNeeds {
  std::span<const SlotSpec> slots;
  size_t step_values = 0;
};

// The buffers of a submission, each an OwnBuffer of the device; null where a slot has none.
//   context: what buffers of the device have as context()
//   errors: InvalidArgument (another number of slots or step values, another device, too small)
template <class OwnBuffer>
absl::StatusOr<std::vector<std::shared_ptr<OwnBuffer>>> OwnSlots(const SubmitArgs& args,
                                                                 const SegmentNeeds& needs,
                                                                 const void* context) {
  if (args.slots.size() != needs.slots.size())
    return InvalidArgument("the segment has {} slots, but {} buffers are given", needs.slots.size(),
                           args.slots.size());
  if (args.step_values.size() != needs.step_values)
    return InvalidArgument("the segment reads {} step values, but {} are given", needs.step_values,
                           args.step_values.size());
  std::vector<std::shared_ptr<OwnBuffer>> slots;
  for (size_t i = 0; i < needs.slots.size(); ++i) {
    auto buffer = std::dynamic_pointer_cast<OwnBuffer>(args.slots[i]);
    if (args.slots[i] && (!buffer || buffer->context() != context))
      return InvalidArgument("the buffer of slot {} belongs to another device", i);
    if (buffer && buffer->size() < needs.slots[i].bytes)
      return InvalidArgument("the buffer of slot {} has {} bytes, but the segment needs {}", i,
                             buffer->size(), needs.slots[i].bytes);
    slots.push_back(std::move(buffer));
  }
  return slots;
}

}  // namespace forge
