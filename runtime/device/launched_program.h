// SPDX-License-Identifier: Apache-2.0
// A program of launches, for devices that compile kernels.
#pragma once
#include <functional>

#include "runtime/device/device.h"

namespace forge {

// Launch: one launch with its kernel; statistics() are the kernel's.
template <class Launch>
class LaunchedProgram final : public Program {
 public:
  struct Parts {
    std::string kernel;
    std::vector<Launch> launches;
    std::vector<ir::Dim> scalars;
    uint64_t scratch_bytes = 0;
    std::vector<ir::Overwrite> overwritable;
    std::optional<Update> update;
    double seconds = 0;
    std::function<std::vector<Artifact>()> artifacts;  // created on request; may be empty
  };
  explicit LaunchedProgram(Parts parts) : parts_(std::move(parts)) {}
  std::string_view kernel() const override { return parts_.kernel; }
  uint64_t scratch_bytes() const override { return parts_.scratch_bytes; }
  std::span<const ir::Dim> scalars() const override { return parts_.scalars; }
  std::span<const ir::Overwrite> overwritable() const override { return parts_.overwritable; }
  std::optional<Update> update() const override { return parts_.update; }
  int dispatches() const override { return static_cast<int>(parts_.launches.size()); }
  double seconds() const override { return parts_.seconds; }
  std::vector<KernelStatistic> statistics() const override {
    std::vector<KernelStatistic> all;
    for (const Launch& l : parts_.launches) {
      const std::span<const KernelStatistic> own = l.statistics();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  std::vector<Artifact> artifacts() const override {
    return parts_.artifacts ? parts_.artifacts() : std::vector<Artifact>();
  }
  std::span<const Launch> launches() const { return parts_.launches; }

 private:
  Parts parts_;
};

}  // namespace forge
