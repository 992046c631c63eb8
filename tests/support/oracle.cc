// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracle.h"

#include <cctype>
#include <map>

#include "base/platform.h"
#include "runtime/backends.h"

namespace forge {

std::vector<std::string> Devices() {
  std::vector<std::string> ids;
  for (const BackendDevices& b : ListDevices())
    for (const DeviceInfo& d : b.devices)
      if (d.usable) ids.push_back(d.id);
  return ids;
}

DeviceRef OpenOnce(const std::string& id) {
  static std::map<std::string, DeviceRef> open;
  DeviceRef& device = open[id];
  if (!device) {
    auto opened = OpenDevice(id, {});
    if (opened.ok()) device = *opened;
  }
  return device;
}

std::filesystem::path CachedModel(const std::string& name) {
  const std::filesystem::path folder = CacheFolder() / "models";
  const std::filesystem::path with_weights = folder / name / (name + ".onnx");
  return std::filesystem::exists(with_weights) ? with_weights : folder / (name + ".onnx");
}

std::filesystem::path OraclePython() { return CacheFolder() / "oracle-venv/bin/python"; }

std::filesystem::path FileOf(const std::filesystem::path& folder, std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) &&
        std::string_view("._:-").find(c) == std::string_view::npos)
      c = '_';
  return folder / (name + ".npy");
}

std::vector<int64_t> ClassesOf(const ir::HostValue& v) {
  const int64_t n = v.shape().back();
  std::vector<int64_t> best;
  for (int64_t row = 0; row < v.elements() / n; ++row) {
    best.push_back(0);
    for (int64_t c = 1; c < n; ++c)
      if (v.f64(row * n + c) > v.f64(row * n + best.back())) best.back() = c;
  }
  return best;
}

}  // namespace forge
