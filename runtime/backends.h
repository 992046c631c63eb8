// SPDX-License-Identifier: Apache-2.0
// Backends by name. The reference is built in; the others are plug-ins, loaded at their first use.
#pragma once
#include <filesystem>

#include "runtime/device/device.h"

namespace forge {

// The names of all backends that Forge has, installed or not: "reference", "cpu", "vulkan", "cuda".
std::span<const std::string_view> BackendNames();

// Returns the driver of a backend. Loads libforge_NAME.so from FORGE_PLUGIN_PATH, else from the
// folder of libforge.
//   errors: Unavailable (the folders searched, or the loader's message)
absl::StatusOr<Driver*> FindDriver(std::string_view backend);

// The folder that contains libforge, its plug-ins and forge-self-test.
std::filesystem::path LibraryFolder();

// One backend's devices, or why it has none.
struct BackendDevices {
  std::string backend;
  absl::Status status;  // the reason where `devices` is empty
  std::vector<DeviceInfo> devices;
};
// Lists the devices of every backend, in the order of BackendNames().
std::vector<BackendDevices> ListDevices();

// Opens a device by its specification: "auto", "BACKEND", "BACKEND:N" or "BACKEND:NAME-PART"
// (case-insensitive). Without a number, hardware is preferred to software devices; "auto" prefers a
// GPU, then the CPU.
//   errors: Unavailable (lists the devices present), InvalidArgument (unknown backend)
absl::StatusOr<DeviceRef> OpenDevice(std::string_view spec, const DeviceOptions& options);

}  // namespace forge
