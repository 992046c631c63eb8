// SPDX-License-Identifier: Apache-2.0
// Constants and states on a device.
#pragma once
#include <map>
#include <mutex>

#include "ir/graph/module.h"
#include "runtime/device/device.h"

namespace forge {

// Where a variable lies on the device.
struct VariablePlace {
  BufferRef buffer;
  uint64_t offset = 0, bytes = 0;
  Bytes source = {};  // what a key that names stored bytes by their address keeps in its place
};

using VariablePlaceRef = std::shared_ptr<const VariablePlace>;
// The places of the variables that a function or a Session has, which they keep alive.
using VariablePlaces = std::map<const ir::Variable*, VariablePlaceRef>;

// Variables on one device. A variable is known by a key, the same for all that hold the same bytes,
// so that Sessions that compute or store the same thing share it; what has no owner left is freed.
// Any thread.
class VariableStore {
 public:
  explicit VariableStore(DeviceRef device) : device_(std::move(device)) {}
  struct Keyed {
    const ir::Variable* variable;
    std::string key;
  };
  // Gives variables room and their initial bytes or zeros. Constants stay in the model's own
  // memory where the device can read it. Known ones keep the place they have.  Returns those that
  // were not known, which the caller computes if anybody does.
  //   errors: ResourceExhausted, DataLoss (storage smaller than its type)
  absl::StatusOr<std::vector<const ir::Variable*>> Add(std::span<const Keyed> variables,
                                                       VariablePlaces& places);
  uint64_t bytes() const;  // of all that are held

 private:
  VariablePlaceRef Find(const std::string& key) const;  // under mutex_
  VariablePlaceRef Import(const ir::Variable& v);
  absl::Status Fill(const VariablePlace& place, std::span<const uint8_t> bytes);
  absl::Status PlaceAt(const Keyed& k, VariablePlace at, VariablePlaces& places);
  absl::Status Place(std::span<const Keyed* const> variables, VariablePlaces& places);
  DeviceRef device_;
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const VariablePlace>> places_;
};

}  // namespace forge
