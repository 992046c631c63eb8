// SPDX-License-Identifier: Apache-2.0
// forge-devices: what there is to run on, and why what is missing is missing.
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/backends.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

nlohmann::json Json(const DeviceInfo& d) {
  nlohmann::json features = nlohmann::json::object(), selftest = nlohmann::json::object(),
                 limits = nlohmann::json::object();
  for (const Feature& f : d.features) {
    features[f.name] = f.present;
    if (!f.note.empty()) selftest[f.name] = f.note;
  }
  for (const auto& [name, value] : d.limits) limits[name] = value;
  return {{"id", d.id},           {"name", d.name},
          {"backend", d.backend}, {"driver", d.driver},
          {"api", d.api},         {"memory_bytes", d.memory_bytes},
          {"features", features}, {"selftest", selftest},
          {"limits", limits},     {"usable", static_cast<bool>(d.usable)},
          {"software", d.is_cpu}};
}

std::string Kind(const DeviceInfo& d) {
  if (!d.usable) return "unusable: " + d.usable.text();
  return d.is_cpu ? "software" : "hardware";
}

void PrintDetails(const DeviceInfo& d) {
  std::string present, absent, notes;
  for (const Feature& f : d.features) {
    (f.present ? present : absent) +=
        (f.present ? present : absent).empty() ? f.name : ", " + f.name;
    if (!f.note.empty()) notes += fmt::format("    {}: {}\n", f.name, f.note);
  }
  std::cout << "\n" << Bold(d.id + "  " + d.name) << "\n";
  if (!present.empty()) std::cout << "  features: " << present << "\n";
  if (!absent.empty()) std::cout << "  absent:   " << absent << "\n";
  if (!notes.empty()) std::cout << "  notes:\n" << notes;
  if (d.limits.empty()) return;
  Table table({"  limit", "value"});
  for (const auto& [name, value] : d.limits) table.Add({"  " + name, value});
  std::cout << table.Text();
}

// What "vulkan" means where there is no GPU.
std::string SoftwareNote(std::span<const BackendDevices> all) {
  const DeviceInfo* software = nullptr;
  for (const BackendDevices& b : all)
    for (const DeviceInfo& d : b.devices) {
      if (b.backend != "vulkan" || !d.usable) continue;
      if (!d.is_cpu) return "";
      if (software == nullptr) software = &d;
    }
  if (software == nullptr) return "";
  const bool lavapipe = software->name.starts_with("llvmpipe");
  return fmt::format("no GPU: vulkan is {} ({}), which runs the same shaders on the processor\n",
                     software->id, lavapipe ? "Mesa's lavapipe" : software->name);
}

absl::Status Run(const Tool& tool) {
  const std::vector<BackendDevices> all = ListDevices();
  if (tool.json()) {
    nlohmann::json out = nlohmann::json::array();
    for (const BackendDevices& b : all)
      for (const DeviceInfo& d : b.devices) out.push_back(Json(d));
    std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  Table table({"device", "name", "driver", "api", "memory", "kind"});
  std::string absent;
  for (const BackendDevices& b : all) {
    for (const DeviceInfo& d : b.devices)
      table.Add(
          {d.id, d.name, d.driver, d.api, d.memory_bytes ? Bytes(d.memory_bytes) : "-", Kind(d)});
    if (b.devices.empty())
      absent +=
          fmt::format("no {} device: {}\n", b.backend,
                      b.status.ok() ? "its driver lists none" : std::string(Message(b.status)));
  }
  std::cout << table.Text() << absent << SoftwareNote(all);
  if (tool.verbose())
    for (const BackendDevices& b : all)
      for (const DeviceInfo& d : b.devices) PrintDetails(d);
  return absl::OkStatus();
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  forge::tools::Tool tool("forge-devices",
                          "Lists the devices; with -v also their features and limits.",
                          {"forge-devices -v", "forge-devices --json"});
  tool.AddJson();
  return tool.Run(argc, argv, [&] { return forge::tools::Run(tool); });
}
