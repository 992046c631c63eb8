// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/api/features.h"

#include <algorithm>
#include <bit>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/environment.h"
#include "base/platform.h"
#include "vk_runtime/api/memory_types.h"

namespace forge::vk {
namespace {

using codegen::Caps;

// More storage buffers than this no kernel binds, whatever a driver claims.
constexpr uint32_t kMostOperands = 64;
constexpr uint32_t kMostScalarBytes = 256;

// Schedules divide by sizes of subgroups: one that the standard rules out is not believed.
bool IsSubgroupSize(uint32_t size) { return std::has_single_bit(size) && size <= 128; }
bool HasSubgroupOps(const Queries& q, VkSubgroupFeatureFlags ops) {
  const uint32_t size = q.subgroup.subgroupSize;
  return (q.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
         (q.subgroup.supportedOperations & ops) == ops && size > 1 && IsSubgroupSize(size);
}
// Invocations of a workgroup that is made of the smallest subgroups.
int64_t MostInSmallSubgroups(const Queries& q) {
  return int64_t{q.subgroup_size.maxComputeWorkgroupSubgroups} * q.subgroup_size.minSubgroupSize;
}
bool KnowsSubgroupSizes(const Queries& q) {
  const uint32_t least = q.subgroup_size.minSubgroupSize, most = q.subgroup_size.maxSubgroupSize;
  return IsSubgroupSize(least) && IsSubgroupSize(most) && least <= most &&
         MostInSmallSubgroups(q) >= Caps().max_workgroup_invocations;
}
bool RequiresSubgroupSizes(const Queries& q) {
  return (q.subgroup_size.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
}

// The elements of matrices that schedules multiply, and what their products are summed in.
struct MatrixElements {
  VkComponentTypeKHR vulkan_a, vulkan_b, vulkan_c;
  DType a, b, c;
};
constexpr MatrixElements kMatrixElements[] = {
    {VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR,
     DType::kF16, DType::kF16, DType::kF32},
    {VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_SINT32_KHR,
     DType::kI8, DType::kI8, DType::kI32},
    {VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_UINT8_KHR, VK_COMPONENT_TYPE_SINT32_KHR,
     DType::kI8, DType::kU8, DType::kI32},
    {VK_COMPONENT_TYPE_UINT8_KHR, VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_SINT32_KHR,
     DType::kU8, DType::kI8, DType::kI32},
    {VK_COMPONENT_TYPE_UINT8_KHR, VK_COMPONENT_TYPE_UINT8_KHR, VK_COMPONENT_TYPE_UINT32_KHR,
     DType::kU8, DType::kU8, DType::kU32},
};

// The device's matrices as schedules name them; nullopt: they use none such.
std::optional<codegen::MatrixShape> ShapeOf(const VkCooperativeMatrixPropertiesKHR& m) {
  for (uint32_t size : {m.MSize, m.NSize, m.KSize})
    if (!std::has_single_bit(size) || size < 8 || size > 64) return std::nullopt;
  for (const MatrixElements& e : kMatrixElements)
    if (m.AType == e.vulkan_a && m.BType == e.vulkan_b && m.CType == e.vulkan_c &&
        m.ResultType == e.vulkan_c)
      return codegen::MatrixShape{.a = e.a,
                                  .b = e.b,
                                  .c = e.c,
                                  .m = static_cast<uint16_t>(m.MSize),
                                  .n = static_cast<uint16_t>(m.NSize),
                                  .k = static_cast<uint16_t>(m.KSize)};
  return std::nullopt;
}

// Those held by subgroups of a known size.
void GrantMatrices(const Queries& q, Granted& g) {
  if (!g.abilities.full_subgroups) return;
  g.want.matrices.cooperativeMatrix = VK_TRUE;
  for (const auto& m : q.matrices) {
    if (m.saturatingAccumulation || m.scope != VK_SCOPE_SUBGROUP_KHR) continue;
    const std::optional<codegen::MatrixShape> shape = ShapeOf(m);
    if (shape && (BitWidth(shape->a) == 8 ? g.caps.i8 : g.caps.f16))
      g.caps.matrices.push_back(*shape);
  }
}

void Withhold(Feature& f, std::string why) {
  f.present = false;
  f.note = std::move(why);
}
void WithholdFaulty(Feature& f, const Failures& faults) {
  const auto fault = faults.find(f.name);
  if (f.present && fault != faults.end()) Withhold(f, fault->second);
}

// Lists each shape as a feature of its own, and keeps those without faults.
void ListMatrices(const Failures& faults, Granted& g) {
  for (const auto& shape : std::exchange(g.caps.matrices, {})) {
    Feature f{.name = MatrixFeature(shape), .present = true, .note = {}};
    WithholdFaulty(f, faults);
    if (f.present) g.caps.matrices.push_back(shape);
    g.list.push_back(std::move(f));
  }
}

// Hidden by its own name only: without it software devices get the kernels of GPUs, which take them
// minutes.
constexpr std::string_view kHostCores = "host_cores";

// A feature is offered where all that its row names is there, and then asked for and given.
struct Row {
  std::string_view name;
  VkBool32& (*bit)(FeatureSet& f) = nullptr;
  VkSubgroupFeatureFlags subgroup = 0;
  bool Caps::* cap = nullptr;
  bool Abilities::* ability = nullptr;
  const char* extension = nullptr;
  // Beyond these.
  bool (*offered)(const Queries& q) = nullptr;
  void (*grant)(const Queries& q, Granted& g) = nullptr;
  std::string_view needs = {};  // an earlier row, without which this one is of no use

  bool Offered(const Queries& q) const {
    FeatureSet bits = q.features;
    return (bit == nullptr || bit(bits) == VK_TRUE) &&
           (subgroup == 0 || HasSubgroupOps(q, subgroup)) &&
           (extension == nullptr || q.Has(extension)) && (offered == nullptr || offered(q));
  }
  void Grant(const Queries& q, Granted& g) const {
    if (bit != nullptr) bit(g.want) = VK_TRUE;
    if (subgroup != 0) g.caps.subgroup_size = q.subgroup.subgroupSize;
    if (cap != nullptr) g.caps.*cap = true;
    if (ability != nullptr) g.abilities.*ability = true;
    if (extension != nullptr) g.extensions.push_back(extension);
    if (grant != nullptr) grant(q, g);
  }
};
#define FORGE_VK_BIT(member) [](FeatureSet& f) -> VkBool32& { return f.member; }

// A name in FORGE_VK_DISABLE hides its row, and every row that begins with it and '_'.
constexpr Row kRows[] = {
    // Arithmetic.
    {.name = "fp16", .bit = FORGE_VK_BIT(float16_int8.shaderFloat16), .cap = &Caps::f16},
    {.name = "fp64", .bit = FORGE_VK_BIT(core.shaderFloat64), .cap = &Caps::f64},
    {.name = "int8", .bit = FORGE_VK_BIT(float16_int8.shaderInt8), .cap = &Caps::i8},
    {.name = "int16", .bit = FORGE_VK_BIT(core.shaderInt16), .cap = &Caps::i16},
    {.name = "int64", .bit = FORGE_VK_BIT(core.shaderInt64), .cap = &Caps::i64},
    // Loads and stores.
    {.name = "storage8",
     .bit = FORGE_VK_BIT(storage8.storageBuffer8BitAccess),
     .cap = &Caps::storage8},
    {.name = "storage16",
     .bit = FORGE_VK_BIT(storage16.storageBuffer16BitAccess),
     .cap = &Caps::storage16},
    // Reductions and scans in a subgroup, exchange between any lanes of it, ballot and broadcast.
    {.name = "subgroup_arithmetic",
     .subgroup = VK_SUBGROUP_FEATURE_ARITHMETIC_BIT,
     .cap = &Caps::subgroup_arithmetic},
    {.name = "subgroup_shuffle",
     .subgroup = VK_SUBGROUP_FEATURE_SHUFFLE_BIT,
     .cap = &Caps::subgroup_shuffle},
    {.name = "subgroup_ballot",
     .subgroup = VK_SUBGROUP_FEATURE_BALLOT_BIT,
     .cap = &Caps::subgroup_ballot},
    // Invocations of a subgroup meet again behind a loop that they leave at different trips:
    // promised where kernels may ask for it, tried everywhere.
    {.name = "subgroup_uniform_control_flow",
     .bit = FORGE_VK_BIT(uniform_flow.shaderSubgroupUniformControlFlow),
     .cap = &Caps::subgroup_uniform_control_flow},
    {.name = "subgroup_reconvergence",
     .subgroup = VK_SUBGROUP_FEATURE_ARITHMETIC_BIT,
     .cap = &Caps::subgroup_reconvergence,
     .needs = "subgroup_arithmetic"},
    // A kernel may rely on its subgroup size.
    {.name = "subgroup_size_control",
     .bit = FORGE_VK_BIT(subgroup_size.subgroupSizeControl),
     .ability = &Abilities::full_subgroups,
     .offered =
         [](const Queries& q) {
           return q.features.subgroup_size.computeFullSubgroups == VK_TRUE &&
                  KnowsSubgroupSizes(q) &&
                  (RequiresSubgroupSizes(q) ||
                   q.subgroup_size.minSubgroupSize == q.subgroup_size.maxSubgroupSize);
         },
     .grant =
         [](const Queries& q, Granted& g) {
           g.want.subgroup_size.computeFullSubgroups = VK_TRUE;
           g.abilities.subgroup_size = RequiresSubgroupSizes(q);
           g.caps.min_subgroup_size = q.subgroup_size.minSubgroupSize;
           g.caps.max_subgroup_size = q.subgroup_size.maxSubgroupSize;
           g.caps.max_workgroup_invocations =
               std::min(g.caps.max_workgroup_invocations, MostInSmallSubgroups(q));
         }},
    // Dot products of four 8-bit integers.
    {.name = "int_dot",
     .bit = FORGE_VK_BIT(int_dot.shaderIntegerDotProduct),
     .cap = &Caps::int_dot,
     .grant =
         [](const Queries& q, Granted& g) {
           g.caps.int_dot_signed_accelerated =
               q.int_dot.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE;
           g.caps.int_dot_unsigned_accelerated =
               q.int_dot.integerDotProduct4x8BitPackedUnsignedAccelerated == VK_TRUE;
           g.caps.int_dot_mixed_accelerated =
               q.int_dot.integerDotProduct4x8BitPackedMixedSignednessAccelerated == VK_TRUE;
         }},
    // A kernel may say which stores others see after a barrier. Where the model is on, atomics may
    // name the device as their scope only if that is on too.
    {.name = "memory_model",
     .bit = FORGE_VK_BIT(memory_model.vulkanMemoryModel),
     .cap = &Caps::memory_model,
     .offered =
         [](const Queries& q) {
           return q.features.memory_model.vulkanMemoryModelDeviceScope == VK_TRUE;
         },
     .grant = [](const Queries&,
                 Granted& g) { g.want.memory_model.vulkanMemoryModelDeviceScope = VK_TRUE; }},
    // Matrices held by a subgroup, and kernels that see their elements.
    {.name = "cooperative_matrix",
     .offered =
         [](const Queries& q) {
           return q.features.matrices.cooperativeMatrix == VK_TRUE && !q.matrices.empty();
         },
     .grant = GrantMatrices,
     .needs = "memory_model"},
    {.name = kElementsFeature,
     .offered =
         [](const Queries& q) {
           return q.features.matrices2.cooperativeMatrixPerElementOperations == VK_TRUE;
         },
     .grant =
         [](const Queries&, Granted& g) {
           g.caps.matrix_elements = !g.caps.matrices.empty();
           g.want.matrices2.cooperativeMatrixPerElementOperations = g.caps.matrix_elements;
         },
     .needs = "cooperative_matrix"},
    // Sums of f32 that invocations add to at once.
    {.name = "f32_atomic_add",
     .bit = FORGE_VK_BIT(atomic_float.shaderBufferFloat32AtomicAdd),
     .cap = &Caps::f32_atomic_add,
     .offered =
         [](const Queries& q) {
           return q.features.atomic_float.shaderSharedFloat32AtomicAdd == VK_TRUE;
         },
     .grant = [](const Queries&,
                 Granted& g) { g.want.atomic_float.shaderSharedFloat32AtomicAdd = VK_TRUE; }},
    // f32 arithmetic keeps NaN, infinity and -0.
    {.name = "signed_zero_inf_nan",
     .cap = &Caps::signed_zero_inf_nan,
     .offered =
         [](const Queries& q) {
           return q.float_controls.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE;
         },
     .grant =
         [](const Queries& q, Granted& g) {
           if (q.api < VK_API_VERSION_1_2)
             g.extensions.push_back(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
         }},
    // f32 quotients are no products with a reciprocal that is flushed to 0.
    {.name = "large_divisors", .cap = &Caps::large_divisors},
    {.name = "timeline_semaphore",
     .bit = FORGE_VK_BIT(timeline.timelineSemaphore),
     .ability = &Abilities::timeline_semaphore},
    {.name = "memory_budget",
     .ability = &Abilities::memory_budget,
     .extension = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME},
    {.name = "host_import",
     .ability = &Abilities::host_import,
     .extension = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
     .offered =
         [](const Queries& q) { return q.host_memory.minImportedHostPointerAlignment != 0; }},
    {.name = "host_coherent",
     .ability = &Abilities::host_coherent,
     .offered =
         [](const Queries& q) {
           return std::any_of(q.memory.memoryTypes, q.memory.memoryTypes + q.memory.memoryTypeCount,
                              [](const auto& t) {
                                return (t.propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) !=
                                       0;
                              });
         }},
    {.name = "push_descriptor",
     .extension = VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME,
     .grant =
         [](const Queries& q, Granted& g) {
           g.abilities.pushed_operands = q.push_descriptors.maxPushDescriptors;
         }},
    {.name = "statistics",
     .bit = FORGE_VK_BIT(executable.pipelineExecutableInfo),
     .ability = &Abilities::statistics},
    // Computes on the host's cores: kernels keep to caches, not to shared memory.
    {.name = kHostCores,
     .cap = &Caps::runs_on_cpu,
     .offered =
         [](const Queries& q) { return q.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }},
};

bool Hides(std::string_view word, std::string_view row) {
  return (word == "all" && row != kHostCores) || word == row ||
         (row.size() > word.size() && row.substr(0, word.size()) == word &&
          row[word.size()] == '_');
}

absl::Status CheckNames(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (std::any_of(std::begin(kRows), std::end(kRows),
                    [&](const Row& r) { return Hides(word, r.name); }))
      continue;
    std::string known = "all";
    for (const Row& r : kRows) fmt::format_to(std::back_inserter(known), ", {}", r.name);
    return InvalidArgument(
        "FORGE_VK_DISABLE names '{}', which is not a feature; the features are {}", word, known);
  }
  return absl::OkStatus();
}

// Grids are counted by i32s.
int64_t MostWorkgroups(uint32_t limit) { return std::min<int64_t>(limit, INT32_MAX); }

void TakeLimits(const VkPhysicalDeviceLimits& l, Caps& caps) {
  caps.max_workgroup_invocations = l.maxComputeWorkGroupInvocations;
  caps.max_workgroup_x = l.maxComputeWorkGroupSize[0];
  caps.max_workgroup_y = l.maxComputeWorkGroupSize[1];
  caps.max_workgroup_z = l.maxComputeWorkGroupSize[2];
  caps.max_grid_x = MostWorkgroups(l.maxComputeWorkGroupCount[0]);
  caps.max_grid_y = MostWorkgroups(l.maxComputeWorkGroupCount[1]);
  caps.max_grid_z = MostWorkgroups(l.maxComputeWorkGroupCount[2]);
  caps.max_shared_bytes = l.maxComputeSharedMemorySize;
  caps.max_operands =
      std::min({l.maxPerStageDescriptorStorageBuffers, l.maxDescriptorSetStorageBuffers,
                l.maxPerStageResources, kMostOperands});
  caps.max_operand_bytes = l.maxStorageBufferRange;
  caps.max_scalar_bytes = std::min(l.maxPushConstantsSize, kMostScalarBytes);
}

// A number that FORGE_VK_LIMITS may name, and the least that it may be.
struct NamedLimit {
  std::string_view name;
  int64_t least;
  void (*set)(Settings& s, int64_t n);
};
constexpr int64_t kFewestBytes = 256;  // that can be bound at an offset on every device
constexpr int64_t kMost = int64_t{1} << 50;
constexpr NamedLimit kNamedLimits[] = {
    {"max_operand_bytes", kFewestBytes, [](Settings& s, int64_t n) { s.max_operand_bytes = n; }},
    {"max_allocation_bytes", kFewestBytes,
     [](Settings& s, int64_t n) { s.max_allocation_bytes = n; }},
    {"cache_bytes", 0, [](Settings& s, int64_t n) { s.cache_bytes = n; }},
    {"flops_per_byte", 0, [](Settings& s, int64_t n) { s.flops_per_byte = n; }}};

// "guaranteed", limits of their own, or both.
absl::Status ReadLimits(Settings& s) {
  const std::string all = Environment("FORGE_VK_LIMITS").value_or("");
  for (const absl::string_view word :
       absl::StrSplit(all, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    if (word == "guaranteed") s.guaranteed = true;
    if (word == "guaranteed" || word == "0") continue;
    const std::vector<std::string> named = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto* limit = std::find_if(std::begin(kNamedLimits), std::end(kNamedLimits),
                                     [&](const NamedLimit& l) { return l.name == named[0]; });
    if (limit == std::end(kNamedLimits))
      return InvalidArgument(
          "FORGE_VK_LIMITS={} is not valid; give guaranteed, max_operand_bytes=N, "
          "max_allocation_bytes=N, cache_bytes=N, flops_per_byte=N, or 0",
          all);
    int64_t n = 0;
    if (named.size() != 2 || !absl::SimpleAtoi(named[1], &n) || n < limit->least || n > kMost)
      return InvalidArgument("FORGE_VK_LIMITS={}: {} must be a number from {} to {}", all,
                             limit->name, limit->least, kMost);
    limit->set(s, n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Settings> Settings::FromEnvironment() {
  Settings s;
  FORGE_ASSIGN_OR_RETURN(s.validate, EnvironmentSwitch("FORGE_VK_VALIDATE"));
  FORGE_ASSIGN_OR_RETURN(s.host_memory, EnvironmentSwitch("FORGE_VK_HOST_MEMORY"));
  FORGE_RETURN_IF_ERROR(ReadLimits(s));
  if (const auto piece = Environment("FORGE_VK_PIECE_MS"); piece && !piece->empty()) {
    int64_t ms = 0;
    if (!absl::SimpleAtoi(*piece, &ms) || ms < 1 || ms > 60'000)
      return InvalidArgument("FORGE_VK_PIECE_MS={} is not a number from 1 to 60000", *piece);
    s.piece_nanoseconds = ms * 1'000'000;
  }
  s.disable = absl::StrSplit(Environment("FORGE_VK_DISABLE").value_or(""), absl::ByAnyChar(", "),
                             absl::SkipEmpty());
  FORGE_RETURN_IF_ERROR(CheckNames(s.disable));
  return s;
}

std::string MatrixFeature(const codegen::MatrixShape& shape) {
  return std::string(kMatrixFeatures) + shape.ToText();
}

Granted Grant(const Queries& q, const Settings& settings, const Failures& faults) {
  Granted g;
  if (!settings.guaranteed) TakeLimits(q.properties.limits, g.caps);
  g.caps.max_operand_bytes = std::min(g.caps.max_operand_bytes, settings.max_operand_bytes);
  const uint64_t allocation = std::max(LargestAllocation(q, settings), kAlignment);
  if (static_cast<uint64_t>(g.caps.max_operand_bytes) > allocation)
    g.caps.max_operand_bytes = static_cast<int64_t>(allocation);
  for (const Row& row : kRows) {
    Feature f{.name = std::string(row.name), .present = row.Offered(q), .note = {}};
    const bool hidden = std::any_of(settings.disable.begin(), settings.disable.end(),
                                    [&](const auto& word) { return Hides(word, row.name); });
    if (f.present && hidden) Withhold(f, "hidden by FORGE_VK_DISABLE");
    WithholdFaulty(f, faults);
    const bool has_all =
        row.needs.empty() || std::any_of(g.list.begin(), g.list.end(), [&](const Feature& other) {
          return other.present && other.name == row.needs;
        });
    if (f.present && !has_all) Withhold(f, fmt::format("it needs {}", row.needs));
    if (f.present) row.Grant(q, g);
    g.list.push_back(std::move(f));
  }
  if (g.caps.runs_on_cpu) g.caps.cores = CpuCount();
  ListMatrices(faults, g);
  // Required on devices that emulate Vulkan over another API.
  if (q.Has("VK_KHR_portability_subset")) g.extensions.push_back("VK_KHR_portability_subset");
  return g;
}

void Granted::Take(const std::optional<Rates>& measured, const Settings& settings) {
  rates = measured;
  if (measured && !settings.guaranteed) {
    caps.cache_bytes = measured->cache_bytes;
    caps.flops_per_byte = measured->FlopsPerByte();
  }
  caps.cache_bytes = settings.cache_bytes.value_or(caps.cache_bytes);
  caps.flops_per_byte = settings.flops_per_byte.value_or(caps.flops_per_byte);
}

std::optional<uint32_t> ComputeFamily(const Queries& q) {
  std::optional<uint32_t> best;
  int best_score = -1;
  for (uint32_t i = 0; i < q.queues.size(); ++i) {
    const VkQueueFamilyProperties& f = q.queues[i];
    if ((f.queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || f.queueCount == 0) continue;
    // Steps can be timed; and nothing waits behind, or is watched with, what a screen shows.
    const int score =
        (f.timestampValidBits != 0 ? 2 : 0) + ((f.queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0 ? 1 : 0);
    if (score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

Verdict Usable(const Queries& q) {
  if (q.api < VK_API_VERSION_1_1)
    return Verdict::No(fmt::format("it speaks Vulkan {}.{}; Forge needs 1.1",
                                   VK_API_VERSION_MAJOR(q.api), VK_API_VERSION_MINOR(q.api)));
  if (!ComputeFamily(q)) return Verdict::No("it has no compute queue");
  for (const VkDeviceSize alignment : {q.properties.limits.minStorageBufferOffsetAlignment,
                                       q.properties.limits.nonCoherentAtomSize})
    if (!std::has_single_bit(alignment))
      return Verdict::No(fmt::format("it aligns memory to {} bytes, no power of two", alignment));
  if (q.properties.limits.minStorageBufferOffsetAlignment > kAlignment)
    return Verdict::No(fmt::format("it aligns storage buffers to {} bytes, more than {}",
                                   q.properties.limits.minStorageBufferOffsetAlignment,
                                   kAlignment));
  Caps has, floor;
  TakeLimits(q.properties.limits, has);
  for (const Field& f : Caps::kFields) {
    if (f.kind != FieldKind::kInt || f.name.substr(0, 4) != "max_" || f.name == "max_subgroup_size")
      continue;
    const int64_t least = *static_cast<const int64_t*>(f.at_const(&floor));
    const int64_t value = *static_cast<const int64_t*>(f.at_const(&has));
    if (value < least)
      return Verdict::No(fmt::format("its {} is {}, less than the {} that Vulkan guarantees",
                                     f.name, value, least));
  }
  return Verdict::Yes();
}

}  // namespace forge::vk
