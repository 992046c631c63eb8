// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/executable.h"

#include "base/bytes.h"
#include "runtime/plan/staging.h"

namespace forge {

namespace {

// Vector loads of any width split no element.
constexpr uintptr_t kLentAlignment = 16;

// A dense value whose bytes are not initialised.
absl::StatusOr<ir::HostValue> Unwritten(const ir::Type& type) {
  FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(type));
  std::shared_ptr<uint8_t> memory = AllocateBytes(bytes);
  if (!memory) return ResourceExhausted("no memory for a result of {} bytes", bytes);
  const std::span<const uint8_t> view(memory.get(), bytes);
  return ir::HostValue::Of(type.dtype(), ir::Constants(type.shape()),
                           Bytes(view, std::move(memory)));
}

// The bytes of a value that Unwritten made, which has no other owner.
std::span<uint8_t> Writable(const ir::HostValue& v) {
  return {const_cast<uint8_t*>(v.bytes().data()), v.bytes().size()};
}

}  // namespace

// Memory of a caller in the place of a staging buffer, for one run.
class Executable::Loan {
 public:
  Loan(Executable& e, std::span<const Place> places) : e_(e), places_(places) {}
  ~Loan() {
    for (const Place& p : places_)
      if (p.bytes > 0) e_.device_->Lend(*e_.slots_[p.slot], nullptr);
  }
  Loan(const Loan&) = delete;
  // False where it has to be copied.
  bool Take(size_t i, const uint8_t* memory) {
    const Place& p = places_[i];
    if (p.bytes == 0) return true;
    if (p.offset != 0 || reinterpret_cast<uintptr_t>(memory) % kLentAlignment != 0) return false;
    // Programs never write to arguments.
    return e_.device_->Lend(*e_.slots_[p.slot], const_cast<uint8_t*>(memory));
  }

 private:
  Executable& e_;
  std::span<const Place> places_;
};

absl::Status Executable::CopyIn(size_t argument, std::span<const uint8_t> bytes) {
  const Place& to = upload_[argument];
  FORGE_CHECK(bytes.size() <= to.bytes);
  if (bytes.empty()) return absl::OkStatus();
  return WriteBuffer(*device_, slots_[to.slot], to.offset, bytes);
}

absl::Status Executable::CopyOut(size_t result, std::span<uint8_t> bytes) {
  const Place& from = readback_[result];
  FORGE_CHECK(bytes.size() <= from.bytes);
  if (bytes.empty()) return absl::OkStatus();
  return ReadBuffer(*device_, slots_[from.slot], from.offset, bytes);
}

absl::StatusOr<std::vector<ir::HostValue>> Executable::NewResults(
    const ir::Bindings& step_values) const {
  std::vector<ir::HostValue> results;
  for (const auto& r : function_->results()) {
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value,
                           Unwritten(function_->type(r.value).Bind(step_values)));
    results.push_back(std::move(value));
  }
  return results;
}

absl::Status Executable::RunSegment(const SegmentRef& segment, std::span<const int64_t> step_values,
                                    const std::atomic<bool>* cancel) {
  FORGE_RETURN_IF_ERROR(CheckCancelled(cancel));
  return device_->Run(segment,
                      {.slots = slots_, .step_values = step_values, .wait = {}, .cancel = cancel});
}

absl::Status Executable::Run(const Memories& memories, const std::atomic<bool>* cancel) {
  FORGE_CHECK(memories.arguments.size() == upload_.size() &&
              memories.results.size() == readback_.size() &&
              memories.step_values.size() == step_symbols_.size());
  Loan arguments(*this, upload_), results(*this, readback_);
  for (size_t i = 0; i < upload_.size(); ++i)
    if (!arguments.Take(i, memories.arguments[i].data()))
      FORGE_RETURN_IF_ERROR(CopyIn(i, memories.arguments[i]));
  absl::InlinedVector<size_t, 16> copied;
  for (size_t i = 0; i < readback_.size(); ++i)
    if (!results.Take(i, memories.results[i].data())) copied.push_back(i);
  for (const SegmentRef& segment : segments_)
    FORGE_RETURN_IF_ERROR(RunSegment(segment, memories.step_values, cancel));
  for (const size_t i : copied) FORGE_RETURN_IF_ERROR(CopyOut(i, memories.results[i]));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ir::HostValue>> Executable::Run(
    std::span<const ir::HostValue* const> arguments, std::span<const int64_t> step_values,
    const std::atomic<bool>* cancel) {
  ir::Bindings bindings;
  for (size_t i = 0; i < step_values.size(); ++i) bindings[step_symbols_[i]] = step_values[i];
  FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> results, NewResults(bindings));
  std::vector<std::span<const uint8_t>> in;
  for (const ir::HostValue* a : arguments) in.push_back(a->bytes());
  std::vector<std::span<uint8_t>> out;
  for (const ir::HostValue& v : results) out.push_back(Writable(v));
  FORGE_RETURN_IF_ERROR(Run({in, out, step_values}, cancel));
  return results;
}

absl::Status Executable::RunInPlace(const std::atomic<bool>* cancel) {
  for (const SegmentRef& segment : segments_)
    FORGE_RETURN_IF_ERROR(RunSegment(segment, {}, cancel));
  return absl::OkStatus();
}

absl::StatusOr<ir::HostValue> Executable::Read(uint32_t value) {
  const ir::Type& type = function_->type(value);
  const Place& place = places_[value];
  std::vector<uint8_t> raw(place.bytes);
  if (place.bytes > 0)
    FORGE_RETURN_IF_ERROR(ReadBuffer(*device_, slots_[place.slot], place.offset, raw));
  const std::vector<int64_t> shape = ir::Constants(type.shape());
  if (!type.encoding()) return ir::HostValue::Of(type.dtype(), shape, Bytes(std::move(raw)));
  FORGE_ASSIGN_OR_RETURN(ir::HostValue dense, ir::HostValue::Zeros(type.dtype(), shape));
  FORGE_RETURN_IF_ERROR(type.encoding()->Decode(type.dtype(), shape, raw, dense.mutable_bytes()));
  return dense;
}

absl::StatusOr<std::vector<ir::HostValue>> Executable::RunStepwise(
    std::span<const ir::HostValue* const> arguments, const Observer& observer,
    const std::atomic<bool>* cancel) {
  FORGE_CHECK(segments_.size() == infos_.size() && step_symbols_.empty());
  for (size_t i = 0; i < arguments.size(); ++i)
    FORGE_RETURN_IF_ERROR(CopyIn(i, arguments[i]->bytes()));
  for (size_t i = 0; i < segments_.size(); ++i) {
    const ir::Node* node = step_nodes_[i];
    StepView view{node, {}, {}, infos_[i]};
    // Operands are read before the step, since a result may lie where an operand was.
    for (uint32_t v : node ? std::span<const uint32_t>(node->in) : std::span<const uint32_t>()) {
      if (v == ir::kAbsent) {
        view.in.emplace_back();
        continue;
      }
      FORGE_ASSIGN_OR_RETURN(ir::HostValue value, Read(v));
      view.in.push_back(std::move(value));
    }
    FORGE_RETURN_IF_ERROR(RunSegment(segments_[i], {}, cancel));
    if (node == nullptr) continue;
    for (uint16_t k = 0; k < node->outs; ++k) {
      FORGE_ASSIGN_OR_RETURN(ir::HostValue value, Read(node->first_out + k));
      view.out.push_back(std::move(value));
    }
    FORGE_RETURN_IF_ERROR(observer(view));
  }
  FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> results, NewResults({}));
  for (size_t i = 0; i < results.size(); ++i)
    FORGE_RETURN_IF_ERROR(CopyOut(i, Writable(results[i])));
  return results;
}

PlanStatistics Executable::statistics() const {
  PlanStatistics n = statistics_;
  for (const SegmentRef& segment : segments_) {
    n.barriers += segment->barriers();
    n.recordings += segment->recordings();
  }
  return n;
}

absl::StatusOr<std::vector<StepTime>> Executable::Timestamps() const {
  std::vector<StepTime> all;
  for (const SegmentRef& segment : segments_) {
    FORGE_ASSIGN_OR_RETURN(std::vector<StepTime> times, device_->Timestamps(*segment));
    all.insert(all.end(), times.begin(), times.end());
  }
  return all;
}

}  // namespace forge
