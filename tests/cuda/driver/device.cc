// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/driver/device.h"

#include <cstdio>
#include <cstdlib>

namespace forge::emulated {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

uint64_t Number(const char* name, uint64_t otherwise) {
  const std::string text = Variable(name);
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (*end == '\0') return value;
  std::fprintf(stderr, "emulated CUDA: %s is no number: %s\n", name, text.c_str());
  return otherwise;
}

// "cuMemAlloc_v2:3=2,*:10"
std::vector<Settings::Failure> ReadFailures(const std::string& text) {
  std::vector<Settings::Failure> failures;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    at = end + 1;
    const size_t colon = one.find(':'), equals = one.find('=');
    if (colon == std::string::npos) {
      std::fprintf(stderr, "emulated CUDA: FORGE_EMULATED_CUDA_FAIL has no call number: %s\n",
                   one.c_str());
      continue;
    }
    Settings::Failure f;
    f.name = one.substr(0, colon);
    f.call = std::atoll(one.c_str() + colon + 1);
    const bool memory = f.name.find("Alloc") != std::string::npos;
    f.code = equals != std::string::npos ? std::atoi(one.c_str() + equals + 1)
             : memory                    ? CUDA_ERROR_OUT_OF_MEMORY
                                         : CUDA_ERROR_UNKNOWN;
    failures.push_back(std::move(f));
  }
  return failures;
}

}  // namespace

Settings ReadSettings() {
  Settings s;
  const std::string capability = Variable("FORGE_EMULATED_CUDA_CAPABILITY"),
                    order = Variable("FORGE_EMULATED_CUDA_ORDER");
  if (!capability.empty() && std::sscanf(capability.c_str(), "%d.%d", &s.major, &s.minor) != 2)
    std::fprintf(stderr, "emulated CUDA: FORGE_EMULATED_CUDA_CAPABILITY is like 8.0, not %s\n",
                 capability.c_str());
  s.memory = Number("FORGE_EMULATED_CUDA_MEMORY", s.memory);
  s.seed = Number("FORGE_EMULATED_CUDA_SEED", s.seed);
  s.devices = static_cast<int>(std::min<uint64_t>(Number("FORGE_EMULATED_CUDA_DEVICES", 1), 8));
  s.races = Number("FORGE_EMULATED_CUDA_RACES", 1) != 0;
  if (order == "reversed") s.order = ptx::Order::kReversed;
  if (order == "random") s.order = ptx::Order::kRandom;
  s.statistics = Variable("FORGE_EMULATED_CUDA_STATISTICS");
  s.failures = ReadFailures(Variable("FORGE_EMULATED_CUDA_FAIL"));
  return s;
}

Device& Device::Get() {
  static auto* const device = new Device;
  return *device;
}

int Device::SharedOptin() const {
  const int capability = settings_.major * 10 + settings_.minor;
  if (capability < 80) return 64 << 10;
  if (capability == 86 || capability == 89 || capability >= 120) return 99 << 10;
  return capability < 90 ? 163 << 10 : 227 << 10;
}

int Device::Attribute(int attribute) const {
  static const std::map<int, int> known = {
      {1, 1024},     {2, 1024},     {3, 1024},     {4, 64},        {5, 2147483647},  {6, 65535},
      {7, 65535},    {8, 48 << 10}, {9, 64 << 10}, {10, 32},       {11, 2147483647}, {12, 65536},
      {13, 1410000}, {14, 512},     {15, 1},       {16, 4},        {17, 0},          {18, 0},
      {19, 1},       {20, 0},       {31, 1},       {32, 0},        {33, 0},          {34, 0},
      {35, 0},       {36, 1215000}, {37, 5120},    {38, 40 << 20}, {39, 2048},       {40, 1},
      {41, 1},       {78, 1},       {79, 1},       {80, 1},        {82, 65536},      {83, 0},
      {88, 0},       {89, 0},       {90, 0},       {91, 1},        {95, 0},          {99, 1},
      {106, 32},     {111, 1024},   {115, 1}};
  if (attribute == 75) return settings_.major;
  if (attribute == 76) return settings_.minor;
  if (attribute == 97) return SharedOptin();
  if (attribute == 81) return SharedOptin() + 1024;
  const auto found = known.find(attribute);
  return found == known.end() ? 0 : found->second;
}

CUresult Device::Enter(const char* name) {
  std::lock_guard lock(mutex_);
  const int64_t call = ++calls_[name], any = ++all_calls_;
  for (const Settings::Failure& f : settings_.failures)
    if ((f.name == name && f.call == call) || (f.name == "*" && f.call == any)) {
      std::fprintf(stderr, "emulated CUDA: %s fails, as FORGE_EMULATED_CUDA_FAIL asks\n", name);
      return f.code;
    }
  return CUDA_SUCCESS;
}

void Device::SetLost(CUresult code, const std::string& finding) {
  std::fprintf(stderr, "emulated CUDA: %s\n", finding.c_str());
  std::lock_guard lock(mutex_);
  if (lost_ == CUDA_SUCCESS) lost_ = code;
}

CUresult Device::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

void Device::ResetLost() {
  std::lock_guard lock(mutex_);
  lost_ = CUDA_SUCCESS;
}

bool Device::IsPinned(const void* p, size_t bytes) {
  std::lock_guard lock(pinned_mutex);
  auto* const at = const_cast<uint8_t*>(static_cast<const uint8_t*>(p));
  auto after = pinned.upper_bound(at);
  if (after == pinned.begin()) return false;
  --after;
  return at + bytes <= after->first + after->second.bytes;
}

ContextStack& CurrentContexts() {
  thread_local ContextStack contexts;
  return contexts;
}

}  // namespace forge::emulated
