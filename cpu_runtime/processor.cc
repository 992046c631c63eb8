// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/processor.h"

#include <fstream>
#include <oneapi/dnnl/dnnl.hpp>

#include "absl/strings/ascii.h"
#include "base/platform.h"

namespace forge::cpu {
namespace {

// The value of `key` in a file of "key : value" lines; empty when it has none.
std::string ValueIn(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return {};
}

std::string Name() {
  for (std::string_view key : {"model name", "Model", "cpu model", "Hardware"})
    if (std::string name = ValueIn("/proc/cpuinfo", key); !name.empty()) return name;
  return "CPU";
}

uint64_t MemoryBytes() {
  constexpr uint64_t kKibibyte = 1024;
  return std::strtoull(ValueIn("/proc/meminfo", "MemTotal").c_str(), nullptr, 10) * kKibibyte;
}

// Instruction sets by the name that the library gives them.
std::string_view LibraryIsa() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse4.1";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2-vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512-vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512-bf16";
    case dnnl::cpu_isa::avx512_core_fp16:
      return "avx512-fp16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512-amx";
    default:
      return "other";
  }
}

}  // namespace

DeviceInfo ProcessorInfo() {
  DeviceInfo info;
  info.id = "cpu:0";
  info.name = Name();
  info.backend = "cpu";
  const dnnl_version_t* v = dnnl_version();
  info.driver = fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
  info.api = "host";
  info.memory_bytes = MemoryBytes();
  info.is_cpu = true;
  const std::string_view isa = LibraryIsa();
  info.features.push_back({std::string(isa), true, "instruction set of oneDNN's kernels"});
  info.limits.emplace_back("threads", std::to_string(CpuCount()));
  return info;
}

}  // namespace forge::cpu
