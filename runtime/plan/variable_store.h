// SPDX-License-Identifier: Apache-2.0
// Storage of constants and states on a device.
#pragma once
#include <map>
#include <mutex>

#include "ir/graph/module.h"
#include "runtime/device/device.h"

namespace forge {

// The place of a variable on the device.
struct VariablePlace {
  BufferRef buffer;
  uint64_t offset = 0, bytes = 0;
  Bytes source = {};  // the stored bytes, kept alive where a key refers to them by address
};

using VariablePlaceRef = std::shared_ptr<const VariablePlace>;
// The places of the variables that a function or a Session uses; the references keep them alive.
using VariablePlaces = std::map<const ir::Variable*, VariablePlaceRef>;

// Variables on one device. A variable is identified by a key that is equal for equal content, so
// equal content is stored once; a variable without references is freed. May be used from any
// thread.
class VariableStore {
 public:
  explicit VariableStore(DeviceRef device) : device_(std::move(device)) {}
  // A variable and its key.
  struct Keyed {
    const ir::Variable* variable;
    std::string key;
  };
  // Allocates the variables and writes their initial bytes, or zeros. Constants stay in the memory
  // of the model where the device can read it. Variables that the store already has keep their
  // place. Returns the variables that were new, for callers that compute them.
  //   errors: ResourceExhausted, DataLoss (storage smaller than its type)
  absl::StatusOr<std::vector<const ir::Variable*>> Add(std::span<const Keyed> variables,
                                                       VariablePlaces& places);
  uint64_t bytes() const;  // total bytes of the stored variables

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
