// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/segment.h"

#include <algorithm>

namespace forge::vk {
namespace {

// Recordings kept for callers that take turns with their buffers.
constexpr size_t kMostRecordings = 4;

}  // namespace

VulkanSegment::VulkanSegment(const SegmentSpec& spec, ContextRef context, VulkanBufferRef nothing)
    : context_(std::move(context)),
      nothing_(std::move(nothing)),
      steps_(spec.steps.begin(), spec.steps.end()),
      slots_(spec.slots.begin(), spec.slots.end()),
      step_symbols_(spec.step_symbols.begin(), spec.step_symbols.end()),
      written_(spec.slots.size()),
      timestamps_(spec.timestamps) {
  for (const Step& s : steps_)
    for (const Operand& o : s.operands)
      if (o.writes && o.slot < written_.size()) written_[o.slot] = true;
}

absl::StatusOr<std::vector<VulkanBufferRef>> VulkanSegment::CheckSlots(
    const SubmitArgs& args) const {
  if (args.slots.size() != slots_.size())
    return InvalidArgument("the segment has {} slots, {} buffers were given", slots_.size(),
                           args.slots.size());
  if (args.step_values.size() != step_symbols_.size())
    return InvalidArgument("the segment reads {} numbers, {} were given", step_symbols_.size(),
                           args.step_values.size());
  std::vector<VulkanBufferRef> slots;
  for (size_t i = 0; i < slots_.size(); ++i) {
    auto buffer = std::dynamic_pointer_cast<VulkanBuffer>(args.slots[i]);
    if (args.slots[i] && (!buffer || buffer->context() != context_.get()))
      return InvalidArgument("the buffer of slot {} is another device's", i);
    if (buffer && buffer->size() < slots_[i].bytes)
      return InvalidArgument("the buffer of slot {} has {} bytes, the segment needs {}", i,
                             buffer->size(), slots_[i].bytes);
    slots.push_back(std::move(buffer));
  }
  return slots;
}

absl::StatusOr<RecordingRef> VulkanSegment::Find(const std::vector<VulkanBufferRef>& slots,
                                                 std::span<const int64_t> values) {
  std::vector<uint64_t> key;
  for (const VulkanBufferRef& b : slots) key.push_back(b ? b->id() : 0);
  key.insert(key.end(), values.begin(), values.end());
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (known != entries_.end()) {
    std::rotate(known, known + 1, entries_.end());
    return entries_.back().recording;
  }
  ir::Bindings bindings;
  for (size_t i = 0; i < values.size(); ++i) bindings[step_symbols_[i]] = values[i];
  FORGE_ASSIGN_OR_RETURN(auto made, Recording::Make({.context = context_,
                                                     .steps = steps_,
                                                     .slots = slots,
                                                     .values = bindings,
                                                     .nothing = *nothing_,
                                                     .timestamps = timestamps_}));
  // One in flight stays alive through its job.
  if (entries_.size() == kMostRecordings) entries_.erase(entries_.begin());
  entries_.push_back({std::move(key), std::move(made)});
  return entries_.back().recording;
}

absl::StatusOr<Job> VulkanSegment::Prepare(const SubmitArgs& args) {
  FORGE_ASSIGN_OR_RETURN(std::vector<VulkanBufferRef> slots, CheckSlots(args));
  Job job;
  FORGE_ASSIGN_OR_RETURN(job.recording, Find(slots, args.step_values));
  barriers_ = job.recording->barriers();
  job.cancel = args.cancel;
  job.keep.push_back(nothing_);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i]) continue;
    if (slots[i]->memory() == Memory::kUpload) FORGE_RETURN_IF_ERROR(slots[i]->Flush());
    if (written_[i] && slots[i]->memory() != Memory::kDevice) job.readbacks.push_back(slots[i]);
    job.keep.push_back(std::move(slots[i]));
  }
  return job;
}

void VulkanSegment::Submitted(RecordingRef recording, uint64_t last) {
  last_recording_ = std::move(recording);
  last_value_ = last;
}

}  // namespace forge::vk
