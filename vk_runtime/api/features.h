// SPDX-License-Identifier: Apache-2.0
// The table of optional features: name, request, and what each enables.
#pragma once
#include <map>

#include "codegen/kernel/caps.h"
#include "runtime/device/device.h"
#include "vk_runtime/api/queries.h"

namespace forge::vk {

// Settings of this backend from environment variables; see docs/environment.md.
struct Settings {
  bool validate = false;                     // FORGE_VK_VALIDATE=1
  bool host_memory = false;                  // FORGE_VK_HOST_MEMORY=1: see Heap::Allocate
  bool guaranteed = false;                   // FORGE_VK_LIMITS=guaranteed
  int64_t max_operand_bytes = INT64_MAX;     // FORGE_VK_LIMITS=max_operand_bytes=N
  int64_t max_allocation_bytes = INT64_MAX;  // FORGE_VK_LIMITS=max_allocation_bytes=N
  // FORGE_VK_LIMITS=cache_bytes=N,flops_per_byte=N replace measured values; 0: unknown
  std::optional<int64_t> cache_bytes, flops_per_byte;
  std::vector<std::string> disable;         // FORGE_VK_DISABLE, split
  int64_t piece_nanoseconds = 200'000'000;  // FORGE_VK_PIECE_MS: estimated work of one submission

  // Reads the environment.
  //   errors: InvalidArgument naming the variable, its value and the allowed values
  static absl::StatusOr<Settings> FromEnvironment();
};

// Optional features that the runtime uses, rather than kernels.
struct Abilities {
  bool timeline_semaphore = false;  // completion of a queue is tracked by one counter
  bool memory_budget = false;       // the driver reports the available memory
  bool statistics = false;          // the driver reports registers and spills
  bool host_import = false;         // host memory can be bound as a buffer
  bool full_subgroups = false;      // kernels may require full subgroups
  bool subgroup_size = false;       // kernels may require a subgroup size
  bool host_coherent = false;       // mapped memory is coherent where a coherent type exists
  // The largest number of operands that push descriptors can bind, without a descriptor set; 0: not
  // available.
  uint32_t pushed_operands = 0;
};

// The features with which a device is opened.
struct Granted {
  codegen::Caps caps;
  Abilities abilities;
  FeatureSet want;
  std::vector<const char*> extensions;
  std::vector<Feature> list;   // every row of the table
  std::optional<Rates> rates;  // measured on the device (rates.h)

  // Stores measured rates, if there are any, here and in `caps`.
  void Take(const std::optional<Rates>& measured, const Settings& settings);
};

// Features that failed, with the reason.
using Failures = std::map<std::string, std::string, std::less<>>;

// Selects the features that the driver offers, without hidden ones and those in `faults`.
Granted Grant(const Queries& q, const Settings& settings, const Failures& faults);

inline constexpr std::string_view kMatrixFeatures = "cooperative_matrix_",
                                  kElementsFeature = "cooperative_matrix_elements";
// The name under which a matrix shape is listed and tested: "cooperative_matrix_f16_16x8x16".
std::string MatrixFeature(const codegen::MatrixShape& shape);

// Yes when every limit is at least what Vulkan 1.1 guarantees and there is a compute queue; No with
// the missing limit.
Verdict Usable(const Queries& q);
// The queue family to compute on; present where Usable(q).
std::optional<uint32_t> ComputeFamily(const Queries& q);

}  // namespace forge::vk
