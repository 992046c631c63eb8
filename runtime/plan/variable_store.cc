// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/variable_store.h"

#include <algorithm>

#include "base/bytes.h"
#include "ir/graph/interpreter.h"
#include "runtime/plan/memory_plan.h"
#include "runtime/plan/staging.h"

namespace forge {

absl::Status VariableStore::Fill(const VariablePlace& place, std::span<const uint8_t> bytes) {
  return WriteBuffer(*device_, place.buffer, place.offset, bytes);
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
    FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(k->variable->type));
    sizes.push_back(bytes);
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

}  // namespace forge
