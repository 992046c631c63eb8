// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>

#include "base/platform.h"
#include "runtime/device/faulty_device.h"
#include "runtime/device/reference_device.h"

namespace forge {
namespace {

constexpr std::array<std::string_view, 4> kBackends = {"cuda", "vulkan", "cpu", "reference"};

std::vector<std::filesystem::path> PluginFolders() {
  std::vector<std::filesystem::path> folders;
  if (auto path = Environment("FORGE_PLUGIN_PATH")) {
    for (size_t at = 0; at <= path->size();) {
      const size_t end = std::min(path->find(':', at), path->size());
      if (end > at) folders.emplace_back(path->substr(at, end - at));
      at = end + 1;
    }
  }
  folders.push_back(LibraryFolder());
  return folders;
}

absl::StatusOr<Driver*> OpenPlugin(std::string_view backend) {
  const std::string file = fmt::format("libforge_{}.so", backend);
  std::string tried;
  for (const auto& folder : PluginFolders()) {
    const std::filesystem::path path = folder / file;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      tried += (tried.empty() ? "" : ", ") + folder.string();
      continue;
    }
    // OpenMP reads it when it is loaded. A thread that waits spins from one step to the next, since
    // waking it may take 80 us on a virtual machine, but not for long: the processor may be that of
    // a thread which it waits for.
    std::optional<DefaultEnvironment> short_spins;
    if (!Environment("OMP_WAIT_POLICY")) short_spins.emplace("GOMP_SPINCOUNT", "2000");
    auto library = SharedLibrary::Open(path.string());
    if (!library.ok()) {
      return Unavailable("cannot load the {} backend from {}: {}", backend, path.string(),
                         Message(library.status()));
    }
    // A plug-in stays open for the life of the process and past it: its devices may outlive any
    // scope here, and threads of its libraries may still run at exit.
    static auto* const open = new std::vector<std::shared_ptr<SharedLibrary>>;
    open->push_back(*library);
    using Entry = const Plugin* (*)();
    auto entry = reinterpret_cast<Entry>((*library)->Symbol(kPluginSymbol));
    if (entry == nullptr) return Unavailable("{} is not a Forge plug-in", path.string());
    const Plugin* plugin = entry();
    if (plugin->abi != kPluginAbi) {
      return Unavailable("{} has plug-in version {}, but Forge needs version {}", path.string(),
                         plugin->abi, kPluginAbi);
    }
    return plugin->driver();
  }
  return Unavailable("the {} backend is not installed: no {} in {}", backend, file, tried);
}

std::string Lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string Names(const std::vector<DeviceInfo>& devices) {
  std::string out;
  for (const DeviceInfo& d : devices)
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", d.id, d.name);
  return out.empty() ? "none" : out;
}

// Hardware before software, more memory before less; stable.
size_t Best(const std::vector<DeviceInfo>& devices, std::span<const size_t> among) {
  auto better = [&](size_t a, size_t b) {
    if (devices[a].is_cpu != devices[b].is_cpu) return devices[b].is_cpu;
    return devices[a].memory_bytes > devices[b].memory_bytes;
  };
  return *std::min_element(among.begin(), among.end(), better);
}

absl::StatusOr<size_t> Choose(std::string_view backend, std::string_view which,
                              const std::vector<DeviceInfo>& devices) {
  std::vector<size_t> usable;
  size_t number = 0;
  const auto parsed = std::from_chars(which.data(), which.data() + which.size(), number);
  const bool is_number =
      !which.empty() && parsed.ec == std::errc() && parsed.ptr == which.data() + which.size();
  std::string why;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (is_number ? i != number : Lower(devices[i].name).find(Lower(which)) == std::string::npos)
      continue;
    if (devices[i].usable)
      usable.push_back(i);
    else
      why += fmt::format("; {} cannot be used: {}", devices[i].id, devices[i].usable.text());
  }
  if (!usable.empty()) return Best(devices, usable);
  if (which.empty()) return Unavailable("no {} device{}", backend, why);
  return Unavailable("no {} device '{}'{}; the devices are {}", backend, which, why,
                     Names(devices));
}

absl::StatusOr<DeviceRef> OpenAuto(const DeviceOptions& options) {
  for (bool software : {false, true}) {
    for (std::string_view backend : {"cuda", "vulkan"}) {
      auto driver = FindDriver(backend);
      if (!driver.ok()) continue;
      const std::vector<DeviceInfo> devices = (*driver)->List();
      auto at = Choose(backend, "", devices);
      if (!at.ok() || devices[*at].is_cpu != software) continue;
      if (auto device = (*driver)->Open(*at, options); device.ok())
        return WithFaultFromEnvironment(*std::move(device));
    }
    if (software) break;
    if (auto device = OpenDevice("cpu", options); device.ok()) return device;
  }
  return OpenDevice("reference", options);
}

}  // namespace

std::filesystem::path LibraryFolder() {
  return FolderOf(reinterpret_cast<const void*>(&BackendNames));
}

std::span<const std::string_view> BackendNames() { return kBackends; }

absl::StatusOr<Driver*> FindDriver(std::string_view backend) {
  static std::mutex mutex;
  struct Loaded {
    absl::StatusOr<Driver*> driver;
    uint32_t forks;  // of the process that loaded it
  };
  static std::map<std::string, Loaded, std::less<>> drivers;
  if (backend == "reference") return ReferenceDriver();
  if (std::find(kBackends.begin(), kBackends.end(), backend) == kBackends.end()) {
    return InvalidArgument("unknown backend '{}'; the backends are cpu, vulkan, cuda and reference",
                           backend);
  }
  std::lock_guard lock(mutex);
  auto it = drivers.find(backend);
  if (it == drivers.end())
    it = drivers.emplace(std::string(backend), Loaded{OpenPlugin(backend), ForkCount()}).first;
  const auto& [driver, forks] = it->second;
  if (driver.ok() && forks != ForkCount() && !(*driver)->survives_fork())
    return Unavailable(
        "the {} backend was loaded before this process was forked, and the threads of its driver "
        "do not exist in the child; fork before the backend is used, or start a new program",
        backend);
  return driver;
}

std::vector<BackendDevices> ListDevices() {
  std::vector<BackendDevices> all;
  for (std::string_view backend : kBackends) {
    BackendDevices entry{
        .backend = std::string(backend), .status = absl::OkStatus(), .devices = {}};
    auto driver = FindDriver(backend);
    if (driver.ok())
      entry.devices = (*driver)->List();
    else
      entry.status = driver.status();
    all.push_back(std::move(entry));
  }
  return all;
}

absl::StatusOr<DeviceRef> OpenDevice(std::string_view spec, const DeviceOptions& options) {
  if (spec == "auto") return OpenAuto(options);
  const size_t colon = spec.find(':');
  const std::string_view backend = spec.substr(0, colon);
  const std::string_view which =
      colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
  FORGE_ASSIGN_OR_RETURN(Driver * driver, FindDriver(backend));
  FORGE_ASSIGN_OR_RETURN(size_t index, Choose(backend, which, driver->List()));
  FORGE_ASSIGN_OR_RETURN(DeviceRef device, driver->Open(index, options));
  return WithFaultFromEnvironment(std::move(device));
}

}  // namespace forge
