// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/submission/segment.h"

#include <algorithm>

#include "runtime/device/segment_checks.h"

namespace forge::vk {
namespace {

// Recordings kept for callers that take turns with their buffers.
constexpr size_t kMostRecordings = 4;

}  // namespace

VulkanSegment::VulkanSegment(const SegmentSpec& spec, HeapRef heap, VulkanBufferRef nothing)
    : heap_(std::move(heap)),
      context_(heap_->context().get()),
      nothing_(std::move(nothing)),
      steps_(spec.steps.begin(), spec.steps.end()),
      slots_(spec.slots.begin(), spec.slots.end()),
      step_symbols_(spec.step_symbols.begin(), spec.step_symbols.end()),
      written_(spec.slots.size()),
      timestamps_(spec.timestamps),
      serves_all_(ServesAllStepValues(steps_)),
      parameter_bytes_(ParameterBytes(steps_)) {
  for (const Step& s : steps_)
    for (const Operand& o : s.operands)
      if (o.writes && o.slot < written_.size()) written_[o.slot] = true;
}

ir::Bindings VulkanSegment::Bindings(std::span<const int64_t> values) const {
  ir::Bindings bindings;
  for (size_t i = 0; i < values.size(); ++i) bindings[step_symbols_[i]] = values[i];
  return bindings;
}

absl::Status VulkanSegment::Record(const std::vector<VulkanBufferRef>& slots,
                                   std::span<const int64_t> values, Entry& entry) {
  if (parameter_bytes_ != 0 && !entry.parameters) {
    FORGE_ASSIGN_OR_RETURN(entry.parameters, ParameterBuffer::Create(heap_, parameter_bytes_));
  }
  const ir::Bindings bindings = serves_all_ ? ir::Bindings() : Bindings(values);
  FORGE_ASSIGN_OR_RETURN(
      entry.recording,
      Recording::Make({.context = heap_->context(),
                       .steps = steps_,
                       .slots = slots,
                       .values = bindings,
                       .nothing = *nothing_,
                       .parameters = entry.parameters ? &entry.parameters->buffer() : nullptr,
                       .timestamps = timestamps_,
                       .overlaps = entry.overlaps}));
  ++recordings_;
  return absl::OkStatus();
}

absl::Status VulkanSegment::Find(const std::vector<VulkanBufferRef>& slots,
                                 std::span<const int64_t> values, Queue& queue) {
  std::vector<uint64_t> key;
  for (const VulkanBufferRef& b : slots) key.push_back(b ? b->id() : 0);
  if (!serves_all_) key.insert(key.end(), values.begin(), values.end());
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (known != entries_.end()) {
    std::rotate(known, known + 1, entries_.end());
    Entry& entry = entries_.back();
    // Some drivers make slower commands of those that may be submitted twice at once.
    if (entry.overlaps || queue.Reached(entry.last)) return absl::OkStatus();
    Entry again{.key = entry.key, .parameters = entry.parameters, .overlaps = true};
    FORGE_RETURN_IF_ERROR(Record(slots, values, again));
    entry = std::move(again);
    return absl::OkStatus();
  }
  Entry entry{.key = std::move(key)};
  FORGE_RETURN_IF_ERROR(Record(slots, values, entry));
  // One in flight stays alive through its job.
  if (entries_.size() == kMostRecordings) entries_.erase(entries_.begin());
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::StatusOr<RecordingRef> VulkanSegment::WriteParameters(const Entry& entry,
                                                            std::span<const int64_t> values) const {
  const ir::Bindings bindings = Bindings(values);
  std::vector<uint32_t> words(parameter_bytes_ / sizeof(uint32_t));
  for (const Parameter& p : entry.recording->parameters()) {
    const absl::StatusOr<int64_t> value = p.value.Evaluate(bindings);
    if (!value.ok()) return Annotate(value.status(), *p.of);
    if (*value < p.least || *value > p.most)
      return Annotate(
          OutOfRange("its {} is {}, not {} to {}", p.value.ToText(), *value, p.least, p.most),
          *p.of);
    if (p.word != Parameter::kNoWord) words[p.word] = static_cast<uint32_t>(*value);
  }
  if (!entry.parameters) return RecordingRef();
  return entry.parameters->Write(words);
}

absl::StatusOr<Job> VulkanSegment::Prepare(const SubmitArgs& args, Queue& queue) {
  FORGE_ASSIGN_OR_RETURN(std::vector<VulkanBufferRef> slots,
                         OwnSlots<VulkanBuffer>(args, {slots_, step_symbols_.size()}, context_));
  Job job;
  FORGE_RETURN_IF_ERROR(Find(slots, args.step_values, queue));
  const Entry& entry = entries_.back();
  job.recording = entry.recording;
  FORGE_ASSIGN_OR_RETURN(job.parameters, WriteParameters(entry, args.step_values));
  barriers_ = job.recording->barriers();
  job.cancel = args.cancel;
  job.keep.push_back(nothing_);
  if (entry.parameters) job.keep.push_back(entry.parameters);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i]) continue;
    if (slots[i]->memory() == Memory::kUpload) FORGE_RETURN_IF_ERROR(slots[i]->Flush());
    if (written_[i] && slots[i]->memory() != Memory::kDevice) job.readbacks.push_back(slots[i]);
    job.keep.push_back(std::move(slots[i]));
  }
  return job;
}

void VulkanSegment::Submitted(RecordingRef recording, uint64_t last) {
  entries_.back().last = last;
  last_recording_ = std::move(recording);
  last_value_ = last;
}

}  // namespace forge::vk
