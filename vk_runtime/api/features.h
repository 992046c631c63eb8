// SPDX-License-Identifier: Apache-2.0
// The one table of optional features: what each is called, how it is asked for, what it gives.
#pragma once
#include <map>

#include "codegen/kernel/caps.h"
#include "runtime/device/device.h"
#include "vk_runtime/api/queries.h"

namespace forge::vk {

// What the environment asks of this backend.
struct Settings {
  bool validate = false;                     // FORGE_VK_VALIDATE=1
  bool host_memory = false;                  // FORGE_VK_HOST_MEMORY=1: see Heap::Allocate
  bool guaranteed = false;                   // FORGE_VK_LIMITS=guaranteed
  int64_t max_operand_bytes = INT64_MAX;     // FORGE_VK_LIMITS=max_operand_bytes=N
  int64_t max_allocation_bytes = INT64_MAX;  // FORGE_VK_LIMITS=max_allocation_bytes=N
  // FORGE_VK_LIMITS=cache_bytes=N,flops_per_byte=N, for what is measured; 0: not known
  std::optional<int64_t> cache_bytes, flops_per_byte;
  std::vector<std::string> disable;         // FORGE_VK_DISABLE, split
  int64_t piece_nanoseconds = 200'000'000;  // FORGE_VK_PIECE_MS: estimated work of one submission

  // errors: InvalidArgument naming the variable, its value and what it may be
  static absl::StatusOr<Settings> FromEnvironment();
};

// What the runtime itself, rather than a kernel, may use.
struct Abilities {
  bool timeline_semaphore = false;  // one counter tells what a queue has done
  bool memory_budget = false;       // the driver tells how much memory is left
  bool statistics = false;          // the driver tells registers and spills
  bool host_import = false;         // host memory can be bound as a buffer
  bool full_subgroups = false;      // kernels may require that no subgroup is partly filled
  bool subgroup_size = false;       // kernels may require a subgroup size
  bool host_coherent = false;       // mapped memory is chosen coherent where there is such
  // Operands that a kernel may bind by commands alone, without a descriptor set; 0: none.
  uint32_t pushed_operands = 0;
};

// The features a device is opened with.
struct Granted {
  codegen::Caps caps;
  Abilities abilities;
  FeatureSet want;
  std::vector<const char*> extensions;
  std::vector<Feature> list;   // every row of the table
  std::optional<Rates> rates;  // measured on the device (rates.h)

  // Takes what was measured, if anything was, for itself and for kernels.
  void Take(const std::optional<Rates>& measured, const Settings& settings);
};

// Names of features, and what is wrong with them.
using Failures = std::map<std::string, std::string, std::less<>>;

// Features the driver offers, less the hidden ones and those with faults.
Granted Grant(const Queries& q, const Settings& settings, const Failures& faults);

inline constexpr std::string_view kMatrixFeatures = "cooperative_matrix_",
                                  kElementsFeature = "cooperative_matrix_elements";
// The feature that a shape of matrices is listed and tried as: "cooperative_matrix_f16_16x8x16".
std::string MatrixFeature(const codegen::MatrixShape& shape);

// Is every limit at least what Vulkan 1.1 guarantees, and is there a compute queue? No(what lacks).
Verdict Usable(const Queries& q);
// The queue family to compute on; there is one where Usable(q).
std::optional<uint32_t> ComputeFamily(const Queries& q);

}  // namespace forge::vk
