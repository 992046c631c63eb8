// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/submission/segment.h"

#include <algorithm>

#include "runtime/device/segment_checks.h"

namespace forge::cuda {
namespace {

// Lists kept for callers that take turns with their buffers.
constexpr size_t kMostLists = 4;
// A graph of fewer is launched no faster.
constexpr size_t kFewLaunches = 2;

}  // namespace

CudaSegment::CudaSegment(const SegmentSpec& spec, ContextRef context, bool graphs)
    : context_(std::move(context)),
      steps_(spec.steps.begin(), spec.steps.end()),
      slots_(spec.slots.begin(), spec.slots.end()),
      step_symbols_(spec.step_symbols.begin(), spec.step_symbols.end()),
      timestamps_(spec.timestamps),
      graphs_(graphs) {}

absl::StatusOr<CudaSegment::Entry*> CudaSegment::Find(const std::vector<CudaBufferRef>& slots,
                                                      std::span<const int64_t> values) {
  std::vector<uint64_t> key;
  for (const CudaBufferRef& b : slots) key.push_back(b ? b->id() : 0);
  key.insert(key.end(), values.begin(), values.end());
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (known != entries_.end()) {
    std::rotate(known, known + 1, entries_.end());
    return &entries_.back();
  }
  ir::Bindings bindings;
  for (size_t i = 0; i < values.size(); ++i) bindings[step_symbols_[i]] = values[i];
  FORGE_ASSIGN_OR_RETURN(
      LaunchListRef list,
      LaunchList::Make({.context = context_, .steps = steps_, .slots = slots, .values = bindings}));
  ++recordings_;
  // One in flight stays alive through its job.
  if (entries_.size() == kMostLists) entries_.erase(entries_.begin());
  entries_.push_back({std::move(key), std::move(list), nullptr});
  return &entries_.back();
}

absl::StatusOr<std::shared_ptr<const OwnedGraphExec>> CudaSegment::GraphOf(Entry& entry,
                                                                           const SubmitArgs& args,
                                                                           Queue& queue) const {
  const bool again = std::exchange(entry.submitted, true);
  // Steps that are timed or may be cancelled are handed over one by one.
  if (!graphs_ || !again || timestamps_ || args.cancel != nullptr ||
      entry.list->launches() < kFewLaunches)
    return nullptr;
  if (entry.graph == nullptr) {
    FORGE_ASSIGN_OR_RETURN(OwnedGraphExec graph, queue.Capture(*entry.list));
    entry.graph = std::make_shared<const OwnedGraphExec>(std::move(graph));
  }
  return entry.graph;
}

absl::StatusOr<Job> CudaSegment::Prepare(const SubmitArgs& args, Queue& queue) {
  FORGE_ASSIGN_OR_RETURN(
      std::vector<CudaBufferRef> slots,
      OwnSlots<CudaBuffer>(args, {slots_, step_symbols_.size()}, context_.get()));
  Job job;
  FORGE_ASSIGN_OR_RETURN(Entry* const entry, Find(slots, args.step_values));
  job.list = entry->list;
  FORGE_ASSIGN_OR_RETURN(job.graph, GraphOf(*entry, args, queue));
  job.cancel = args.cancel;
  for (CudaBufferRef& b : slots)
    if (b) job.keep.push_back(std::move(b));
  if (!timestamps_) return job;
  const Context::Current current(*context_);
  job.times = std::make_shared<StepEvents>(steps_.size());
  for (auto& step : *job.times)
    for (OwnedEvent& event : step) {
      FORGE_ASSIGN_OR_RETURN(event, queue.MakeEvent(0));
    }
  times_ = job.times;
  return job;
}

absl::StatusOr<std::vector<StepTime>> CudaSegment::Times() const {
  if (!timestamps_ || times_ == nullptr)
    return InvalidArgument("the segment was recorded without timestamps");
  const Context::Current current(*context_);
  std::vector<StepTime> all;
  const auto since_first = [&](const OwnedEvent& event) -> absl::StatusOr<uint64_t> {
    float milliseconds = 0;
    FORGE_RETURN_IF_ERROR(context_->Check(
        context_->api().elapsed_milliseconds(&milliseconds, times_->front()[0].get(), event.get()),
        "cuEventElapsedTime"));
    return static_cast<uint64_t>(std::max(0.0, double{milliseconds} * 1e6));
  };
  for (const auto& [begin, end] : *times_) {
    StepTime t{};
    FORGE_ASSIGN_OR_RETURN(t.begin, since_first(begin));
    FORGE_ASSIGN_OR_RETURN(t.end, since_first(end));
    all.push_back(t);
  }
  return all;
}

}  // namespace forge::cuda
