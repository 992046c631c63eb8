// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/bytes.h"
#include "ir/interpreter.h"
#include "runtime/keys.h"

namespace forge {
namespace {

// Bytes one staging buffer holds at most.
constexpr uint64_t kStagingBytes = uint64_t{16} << 20;

// Calls `copy` with the place of each piece of `bytes` and its size: none is larger than a staging
// buffer may be.
absl::Status InPieces(Device& device, Memory kind, uint64_t bytes,
                      absl::FunctionRef<absl::Status(const BufferRef& staging, uint8_t* mapped,
                                                     uint64_t at, uint64_t n)>
                          copy) {
  if (bytes == 0) return absl::OkStatus();
  const uint64_t piece = std::min({kStagingBytes, device.largest_buffer(), bytes});
  FORGE_ASSIGN_OR_RETURN(const BufferRef staging, device.Allocate(kind, piece));
  FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, device.Map(*staging));
  for (uint64_t at = 0; at < bytes; at += piece)
    FORGE_RETURN_IF_ERROR(copy(staging, mapped.data(), at, std::min(piece, bytes - at)));
  return absl::OkStatus();
}

absl::Status CopyAndWait(Device& device, const Device::CopyRange& range) {
  FORGE_ASSIGN_OR_RETURN(const Point done, device.Copy(range, {}));
  return device.Wait(done, -1);
}

// Writes to a buffer of any kind, from byte `at` on.
absl::Status Write(Device& device, const BufferRef& to, uint64_t at,
                   std::span<const uint8_t> bytes) {
  if (device.host_memory() || to->memory() != Memory::kDevice) {
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, device.Map(*to));
    std::copy(bytes.begin(), bytes.end(), mapped.begin() + at);
    return absl::OkStatus();
  }
  return InPieces(device, Memory::kUpload, bytes.size(),
                  [&](const BufferRef& staging, uint8_t* mapped, uint64_t done, uint64_t n) {
                    std::memcpy(mapped, bytes.data() + done, n);
                    return CopyAndWait(device, {staging, 0, to, at + done, n});
                  });
}

// Reads what any kind of buffer has from byte `at` on.
absl::Status Read(Device& device, const BufferRef& from, uint64_t at, std::span<uint8_t> bytes) {
  if (from->memory() == Memory::kReadback) {
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, device.Map(*from));
    std::copy_n(mapped.begin() + at, bytes.size(), bytes.begin());
    return absl::OkStatus();
  }
  return InPieces(device, Memory::kReadback, bytes.size(),
                  [&](const BufferRef& staging, const uint8_t* mapped, uint64_t done, uint64_t n) {
                    FORGE_RETURN_IF_ERROR(CopyAndWait(device, {from, at + done, staging, 0, n}));
                    std::memcpy(bytes.data() + done, mapped, n);
                    return absl::OkStatus();
                  });
}

}  // namespace

// ---- variables
// --------------------------------------------------------------------------------------

absl::Status VariableStore::Fill(const VariablePlace& place, std::span<const uint8_t> bytes) {
  return Write(*device_, place.buffer, place.offset, bytes);
}

VariablePlaceRef VariableStore::Import(const ir::Variable& v) {
  // Below a page the bookkeeping costs more than the copy.
  constexpr uint64_t kLeast = 4096;
  if (!v.init || v.role != ir::Variable::Role::kConstant) return nullptr;
  const absl::StatusOr<ir::HostValue> value = ir::InitialValue(v);
  if (!value.ok() || value->bytes().size() < kLeast) return nullptr;
  absl::StatusOr<BufferRef> buffer = device_->Import(value->shared_bytes());
  if (!buffer.ok()) return nullptr;
  return std::make_shared<const VariablePlace>(
      VariablePlace{*std::move(buffer), 0, value->bytes().size(), v.init->bytes});
}

VariablePlaceRef VariableStore::Find(const std::string& key) const {
  const auto at = places_.find(key);
  return at == places_.end() ? nullptr : at->second.lock();
}

uint64_t VariableStore::bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t total = 0;
  for (const auto& [key, place] : places_)
    if (const VariablePlaceRef held = place.lock()) total += AlignUp(held->bytes, kAlignment);
  return total;
}

absl::StatusOr<std::vector<const ir::Variable*>> VariableStore::Add(
    std::span<const Keyed> variables, VariablePlaces& places) {
  std::lock_guard lock(mutex_);
  std::erase_if(places_, [](const auto& entry) { return entry.second.expired(); });
  std::vector<const Keyed*> todo;
  std::vector<const ir::Variable*> fresh;
  for (const Keyed& k : variables) {
    if (places.contains(k.variable)) continue;
    VariablePlaceRef place = Find(k.key);
    if (!place) {
      fresh.push_back(k.variable);
      place = Import(*k.variable);
    }
    if (!place) {
      todo.push_back(&k);
      continue;
    }
    places_[k.key] = place;
    places[k.variable] = std::move(place);
  }
  FORGE_RETURN_IF_ERROR(Place(todo, places));
  return fresh;
}

// Small ones share buffers; none is larger than the device allows.
absl::Status VariableStore::Place(std::span<const Keyed* const> variables, VariablePlaces& places) {
  std::vector<uint64_t> sizes;
  for (const Keyed* k : variables) {
    FORGE_ASSIGN_OR_RETURN(ir::Dim dim, k->variable->type.bytes());
    FORGE_ASSIGN_OR_RETURN(int64_t bytes, dim.Evaluate({}));
    sizes.push_back(static_cast<uint64_t>(bytes));
  }
  for (size_t first = 0; first < variables.size();) {
    uint64_t total = 0;
    size_t end = first;
    for (; end < variables.size(); ++end) {
      if (end > first && total + AlignUp(sizes[end], kAlignment) > device_->largest_buffer()) break;
      total += AlignUp(sizes[end], kAlignment);
    }
    FORGE_ASSIGN_OR_RETURN(BufferRef buffer,
                           device_->Allocate(Memory::kDevice, std::max(total, kAlignment)));
    for (uint64_t at = 0; first < end; at += AlignUp(sizes[first++], kAlignment)) {
      const ir::Variable* v = variables[first]->variable;
      FORGE_RETURN_IF_ERROR(PlaceAt(
          *variables[first],
          VariablePlace{buffer, at, sizes[first], v->init ? v->init->bytes : Bytes()}, places));
    }
  }
  return absl::OkStatus();
}

absl::Status VariableStore::PlaceAt(const Keyed& k, VariablePlace at, VariablePlaces& places) {
  auto place = Find(k.key);  // the same may be asked for twice at once
  if (!place) {
    place = std::make_shared<const VariablePlace>(std::move(at));
    FORGE_ASSIGN_OR_RETURN(ir::HostValue initial, ir::InitialValue(*k.variable));
    FORGE_RETURN_IF_ERROR(Fill(*place, initial.bytes()));
    places_[k.key] = place;
  }
  places[k.variable] = std::move(place);
  return absl::OkStatus();
}

// ---- programs
// ---------------------------------------------------------------------------------------

namespace {

// As a search sees requests: how a node is computed is chosen before its operands are prepared.
struct DenseRequests {
  explicit DenseRequests(std::span<const CompileRequest> prepared)
      : requests(prepared.begin(), prepared.end()) {
    for (CompileRequest& r : requests)
      for (ir::TypeSpan* span : {&r.in, &r.out}) {
        ir::Types& own = types.emplace_back(span->begin(), span->end());
        for (ir::Type& t : own)
          if (t) t = t.With(ir::EncodingRef());
        *span = own;
      }
  }
  DenseRequests(const DenseRequests&) = delete;

  std::vector<CompileRequest> requests;
  std::deque<ir::Types> types;
};

}  // namespace

absl::StatusOr<std::vector<ProgramRef>> ProgramCache::Get(std::span<const Request> requests,
                                                          Counts& counts, const Options& options) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  std::vector<CompileRequest> wanted;
  std::vector<std::string> wanted_keys;
  for (const Request& r : requests) {
    keys.push_back(KeyOf(r.node->op, r.in, r.out) + (options.once ? " once" : ""));
    const bool asked =
        std::find(wanted_keys.begin(), wanted_keys.end(), keys.back()) != wanted_keys.end();
    if (asked || programs_.contains(keys.back())) {
      ++counts.reused;
      continue;
    }
    ++counts.made;
    wanted.push_back({&r.node->op, r.in, r.out, r.name, options.choice, options.once});
    wanted_keys.push_back(keys.back());
  }
  const auto tell = [&](std::string_view what, size_t done, size_t total) {
    if (options.progress) options.progress(what, done, total);
  };
  if (options.autotune.seconds > 0) {
    const DenseRequests dense(wanted);
    const auto found = Autotune(
        device_, dense.requests, options.autotune,
        [&](size_t done, size_t total) { tell("searching for faster kernels", done, total); });
    FORGE_RETURN_IF_ERROR(found.status());
  }
  auto compiled = device_->Compile(
      wanted, [&](size_t done) { tell("compiling kernels", done, wanted.size()); });
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!compiled[i].ok()) return Annotate(compiled[i].status(), wanted[i].name);
    programs_[wanted_keys[i]] = *std::move(compiled[i]);
  }
  std::vector<ProgramRef> out;
  for (const std::string& key : keys) out.push_back(programs_[key]);
  return out;
}

// ---- running
// ----------------------------------------------------------------------------------------

absl::Status Executable::CopyIn(std::span<const ir::HostValue* const> arguments) {
  FORGE_CHECK(arguments.size() == upload_.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    FORGE_CHECK(arguments[i]->bytes().size() == upload_[i].bytes);
    if (upload_[i].bytes == 0) continue;
    FORGE_RETURN_IF_ERROR(
        Write(*device_, slots_[upload_[i].slot], upload_[i].offset, arguments[i]->bytes()));
  }
  return absl::OkStatus();
}

absl::Status Executable::CopyOut(std::vector<ir::HostValue>& results) {
  results.clear();
  for (size_t i = 0; i < function_->results().size(); ++i) {
    const ir::Type& type = function_->type(function_->results()[i].value);
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value,
                           ir::HostValue::Zeros(type.dtype(), ir::Constants(type.shape())));
    FORGE_CHECK(value.bytes().size() == readback_[i].bytes);
    if (readback_[i].bytes > 0)
      FORGE_RETURN_IF_ERROR(forge::Read(*device_, slots_[readback_[i].slot], readback_[i].offset,
                                        value.mutable_bytes()));
    results.push_back(std::move(value));
  }
  return absl::OkStatus();
}

absl::Status Executable::SubmitAndWait(const SegmentRef& segment, const std::atomic<bool>* cancel) {
  FORGE_ASSIGN_OR_RETURN(
      Point done,
      device_->Submit(segment, {.slots = slots_, .step_values = {}, .wait = {}, .cancel = cancel}));
  return device_->Wait(done, -1);
}

absl::Status Executable::Run(std::span<const ir::HostValue* const> arguments,
                             std::vector<ir::HostValue>& results, const std::atomic<bool>* cancel) {
  FORGE_RETURN_IF_ERROR(CopyIn(arguments));
  for (const SegmentRef& segment : segments_) FORGE_RETURN_IF_ERROR(SubmitAndWait(segment, cancel));
  return CopyOut(results);
}

absl::Status Executable::RunForVariables() {
  for (const SegmentRef& segment : segments_)
    FORGE_RETURN_IF_ERROR(SubmitAndWait(segment, nullptr));
  return absl::OkStatus();
}

absl::StatusOr<ir::HostValue> Executable::Read(uint32_t value) {
  const ir::Type& type = function_->type(value);
  const Place& place = places_[value];
  std::vector<uint8_t> raw(place.bytes);
  if (place.bytes > 0)
    FORGE_RETURN_IF_ERROR(forge::Read(*device_, slots_[place.slot], place.offset, raw));
  const std::vector<int64_t> shape = ir::Constants(type.shape());
  if (!type.encoding()) return ir::HostValue::Of(type.dtype(), shape, Bytes(std::move(raw)));
  FORGE_ASSIGN_OR_RETURN(ir::HostValue dense, ir::HostValue::Zeros(type.dtype(), shape));
  FORGE_RETURN_IF_ERROR(type.encoding()->Decode(type.dtype(), shape, raw, dense.mutable_bytes()));
  return dense;
}

absl::Status Executable::RunStepwise(std::span<const ir::HostValue* const> arguments,
                                     std::vector<ir::HostValue>& results,
                                     const Observer& observer) {
  FORGE_CHECK(segments_.size() == infos_.size());
  FORGE_RETURN_IF_ERROR(CopyIn(arguments));
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
    FORGE_RETURN_IF_ERROR(SubmitAndWait(segments_[i], nullptr));
    if (node == nullptr) continue;
    for (uint16_t k = 0; k < node->outs; ++k) {
      FORGE_ASSIGN_OR_RETURN(ir::HostValue value, Read(node->first_out + k));
      view.out.push_back(std::move(value));
    }
    FORGE_RETURN_IF_ERROR(observer(view));
  }
  return CopyOut(results);
}

PlanStatistics Executable::statistics() const {
  PlanStatistics n = statistics_;
  for (const SegmentRef& segment : segments_) n.barriers += segment->barriers();
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
