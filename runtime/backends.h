// SPDX-License-Identifier: Apache-2.0
// Backends by name: the reference is built in, the others are plug-ins opened when they are first
// asked for.
#pragma once
#include <filesystem>

#include "runtime/device/device.h"

namespace forge {

// "reference", "cpu", "vulkan", "cuda": all that Forge knows, whether present or not.
std::span<const std::string_view> BackendNames();

// The driver of a backend; opens libforge_NAME.so from FORGE_PLUGIN_PATH or from beside libforge.
//   errors: Unavailable, saying which file was looked for where, or what the loader said
absl::StatusOr<Driver*> FindDriver(std::string_view backend);

// Where libforge lies, and what belongs to it.
std::filesystem::path LibraryFolder();

struct BackendDevices {
  std::string backend;
  absl::Status status;  // why there are none
  std::vector<DeviceInfo> devices;
};
// Every backend with its devices, in the order of BackendNames().
std::vector<BackendDevices> ListDevices();

// Opens a device: "auto", "BACKEND", "BACKEND:N" or "BACKEND:NAME-PART" (letters of any case).
// Without a number real hardware comes before software devices; auto prefers a GPU, then the CPU.
//   errors: Unavailable, naming what there is instead; InvalidArgument for an unknown backend
absl::StatusOr<DeviceRef> OpenDevice(std::string_view spec, const DeviceOptions& options);

}  // namespace forge
