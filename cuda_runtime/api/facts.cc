// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/facts.h"

#include <algorithm>
#include <bit>

#include "absl/strings/numbers.h"

namespace forge::cuda {
namespace {

constexpr int kOldest = 75;      // NVRTC compiles for no older one
constexpr int kHalfTiles = 80;   // mma.sync of f16 with k = 16, and of bytes with k = 32; cp.async
constexpr int kGroupTiles = 90;  // wgmma, which later architectures do not have
constexpr int kWarp = 32;        // printed kernels have warps of this size
constexpr double kSomeHertz = 1.2e9, kSomeBytesPerSecond = 300e9;
constexpr int64_t kMostOperands = 64;
constexpr int64_t kMostScalarBytes = 1024;  // with the operands, less than the 4 KB of a launch
constexpr int64_t kNoLimit = int64_t{1} << 40;

// Cards that stand for an architecture where kernels are compiled without one: what schedules ask
// about is theirs. Source: NVIDIA's data sheets.
struct Card {
  int capability, multiprocessors;
  int64_t l2_bytes;
  double clock_hertz, memory_bytes_per_second;
  int shared_kilobytes;  // of a block that asks for them
};
constexpr Card kCards[] = {
    {75, 68, 5632 << 10, 1.545e9, 616e9, 64},            // GeForce RTX 2080 Ti
    {80, 108, int64_t{40} << 20, 1.41e9, 1555e9, 163},   // A100
    {86, 82, int64_t{6} << 20, 1.695e9, 936e9, 99},      // GeForce RTX 3090
    {89, 128, int64_t{72} << 20, 2.52e9, 1008e9, 99},    // GeForce RTX 4090
    {90, 132, int64_t{50} << 20, 1.98e9, 3352e9, 227},   // H100
    {100, 148, int64_t{126} << 20, 1.965e9, 8e12, 227},  // B200
    {120, 170, int64_t{96} << 20, 2.407e9, 1792e9, 99},  // GeForce RTX 5090
};

int LanesOfMultiprocessor(int capability) { return capability <= 80 ? 64 : 128; }

}  // namespace

absl::StatusOr<DeviceFacts> QueryFacts(const DriverApi& api, int ordinal) {
  DeviceFacts f;
  FORGE_RETURN_IF_ERROR(api.Check(api.device(&f.device, ordinal), "cuDeviceGet"));
  char name[256] = {};
  FORGE_RETURN_IF_ERROR(
      api.Check(api.device_name(name, sizeof(name) - 1, f.device), "cuDeviceGetName"));
  f.name = name;
  size_t bytes = 0;
  FORGE_RETURN_IF_ERROR(api.Check(api.device_memory(&bytes, f.device), "cuDeviceTotalMem"));
  f.memory_bytes = bytes;
  FORGE_RETURN_IF_ERROR(api.Check(api.driver_version(&f.driver_version), "cuDriverGetVersion"));
  const auto attribute = [&](int which, int otherwise = 0) {
    int value = 0;
    const bool told = api.device_attribute(&value, which, f.device) == kCuSuccess && value > 0;
    return told ? value : otherwise;
  };
  int major = 0, minor = 0;
  for (const auto& [value, which] :
       {std::pair(&major, kComputeCapabilityMajor), std::pair(&minor, kComputeCapabilityMinor)})
    FORGE_RETURN_IF_ERROR(
        api.Check(api.device_attribute(value, which, f.device), "cuDeviceGetAttribute"));
  f.capability = 10 * major + minor;
  f.multiprocessors = attribute(kMultiprocessorCount, 1);
  f.max_threads = attribute(kMaxThreadsPerBlock, f.max_threads);
  f.max_block_x = attribute(kMaxBlockX, f.max_block_x);
  f.max_block_y = attribute(kMaxBlockY, f.max_block_y);
  f.max_block_z = attribute(kMaxBlockZ, f.max_block_z);
  f.max_grid_x = attribute(kMaxGridX, f.max_grid_x);
  f.max_grid_y = attribute(kMaxGridY, f.max_grid_y);
  f.max_grid_z = attribute(kMaxGridZ, f.max_grid_z);
  f.max_shared_bytes = attribute(kMaxSharedPerBlock, f.max_shared_bytes);
  f.max_shared_bytes_optin = attribute(kMaxSharedPerBlockOptin, f.max_shared_bytes);
  f.warp_size = attribute(kWarpSize, kWarp);
  f.l2_bytes = attribute(kL2Bytes);
  f.clock_hertz = 1e3 * attribute(kClockKilohertz);
  // Memory transfers twice in each cycle.
  f.memory_bytes_per_second =
      2e3 * attribute(kMemoryClockKilohertz) * attribute(kMemoryBusBits) / 8;
  return f;
}

absl::StatusOr<DeviceFacts> FactsOfArchitecture(std::string_view architecture) {
  DeviceFacts f;
  constexpr std::string_view kPrefix = "sm_";
  if (!architecture.starts_with(kPrefix) ||
      !absl::SimpleAtoi(std::string(architecture.substr(kPrefix.size())), &f.capability))
    return InvalidArgument("'{}' is no architecture such as sm_80", architecture);
  f.name = fmt::format("compiler for {}", architecture);
  f.has_driver = false;
  const Card* card = &kCards[0];
  for (const Card& c : kCards)
    if (c.capability <= f.capability) card = &c;
  f.multiprocessors = card->multiprocessors;
  f.l2_bytes = card->l2_bytes;
  f.clock_hertz = card->clock_hertz;
  f.memory_bytes_per_second = card->memory_bytes_per_second;
  f.max_shared_bytes_optin = card->shared_kilobytes << 10;
  return f;
}

Verdict Usable(const DeviceFacts& f) {
  if (f.capability < kOldest)
    return Verdict::No(fmt::format("its compute capability is {}.{}; Forge needs {}.{}",
                                   f.capability / 10, f.capability % 10, kOldest / 10,
                                   kOldest % 10));
  if (f.warp_size != kWarp) return Verdict::No(fmt::format("its warps have {} lanes", f.warp_size));
  return Verdict::Yes();
}

codegen::Rates RatesOf(const DeviceFacts& f) {
  const double hertz = f.clock_hertz > 0 ? f.clock_hertz : kSomeHertz;
  const double bytes =
      f.memory_bytes_per_second > 0 ? f.memory_bytes_per_second : kSomeBytesPerSecond;
  return {.flops = 2.0 * f.multiprocessors * LanesOfMultiprocessor(f.capability) * hertz,
          .bytes = bytes / 2,
          .cache_bytes = f.l2_bytes > 0 ? static_cast<int64_t>(
                                              std::bit_floor(static_cast<uint64_t>(f.l2_bytes)))
                                        : 0};
}

codegen::Caps CapsOf(const DeviceFacts& f) {
  codegen::Caps c;
  c.max_workgroup_invocations = f.max_threads;
  c.max_workgroup_x = f.max_block_x;
  c.max_workgroup_y = f.max_block_y;
  c.max_workgroup_z = f.max_block_z;
  c.max_grid_x = f.max_grid_x;
  c.max_grid_y = f.max_grid_y;
  c.max_grid_z = f.max_grid_z;
  c.max_shared_bytes = f.max_shared_bytes;
  c.max_large_shared_bytes = f.max_shared_bytes_optin;
  c.max_operands = kMostOperands;
  c.max_operand_bytes = kNoLimit;
  c.max_scalar_bytes = kMostScalarBytes;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = kWarp;
  const codegen::Rates rates = RatesOf(f);
  c.cache_bytes = rates.cache_bytes;
  c.flops_per_byte = rates.FlopsPerByte();
  // Exchanges among lanes name all lanes of the warp, which meet there.
  c.subgroup_arithmetic = c.subgroup_shuffle = c.subgroup_ballot = c.subgroup_reconvergence = true;
  c.f16 = c.f64 = c.i8 = c.i16 = c.i64 = c.storage8 = c.storage16 = true;
  c.int_dot = c.int_dot_signed_accelerated = c.int_dot_unsigned_accelerated =
      c.int_dot_mixed_accelerated = true;
  c.rounds_to_f16 = c.signed_zero_inf_nan = c.large_divisors = c.memory_model = c.f32_atomic_add =
      true;
  const uint16_t depth = f.capability >= kHalfTiles ? 16 : 8;
  c.matrices.push_back(
      {.a = DType::kF16, .b = DType::kF16, .c = DType::kF32, .m = 16, .n = 8, .k = depth});
  if (f.capability >= kHalfTiles) {
    c.matrices.push_back(
        {.a = DType::kBF16, .b = DType::kBF16, .c = DType::kF32, .m = 16, .n = 8, .k = 16});
    for (const DType a : {DType::kI8, DType::kU8})
      for (const DType b : {DType::kI8, DType::kU8}) {
        const bool sign = a == DType::kI8 || b == DType::kI8;
        c.matrices.push_back(
            {.a = a, .b = b, .c = sign ? DType::kI32 : DType::kU32, .m = 16, .n = 8, .k = 32});
      }
  }
  c.matrix_elements = c.matrix_values = true;
  c.elements_together = 2, c.workgroup_elements_together = 4;
  c.async_copies = f.capability >= kHalfTiles;
  if (f.capability == kGroupTiles)
    for (const DType t : {DType::kF16, DType::kBF16})
      c.workgroup_matrices.push_back({.a = t, .b = t, .c = DType::kF32, .m = 64, .n = 16, .k = 16});
  return c;
}

}  // namespace forge::cuda
