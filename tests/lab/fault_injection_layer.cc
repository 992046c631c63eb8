// SPDX-License-Identifier: Apache-2.0
// A Vulkan layer that makes one feature of the driver below it go wrong, as FORGE_LIE says, or its
// device go lost, as FORGE_LOSE says:
//
//   FORGE_LIE=int_dot         modules that use the feature are changed so that they compute wrongly
//   FORGE_LIE=int_dot:crash   making such a module ends the process
//   FORGE_LIE=int_dot:hang    making such a module never returns
//   FORGE_LIE=slow            making any module takes 400 ms
//   FORGE_LOSE=vkQueueSubmit:3   the third call of that function loses its device: it and all later
//                             calls that could wait for that device say so
//   FORGE_LIE=memory          there is none
//
// Loaded by VK_INSTANCE_LAYERS=VK_LAYER_FORGE_fault_injection with VK_LAYER_PATH on its manifest's
// folder.
#include <unistd.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <spirv/unified1/spirv.hpp11>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// What a module has that uses a feature, and the instruction that another takes the place of, or
// that is left out: stores, unless it says otherwise. Its name begins with the feature's.
struct Lie {
  const char* name = nullptr;
  spv::Capability sign = spv::Capability::Shader;
  spv::Op truth = spv::Op::OpStore, lie = spv::Op::OpNop;
};
// SPV_KHR_cooperative_matrix and SPV_NV_cooperative_matrix2: newer than the headers.
constexpr auto kCooperativeMatrix = spv::Capability{6022}, kMatrixElements = spv::Capability{5432};
constexpr auto kTypeMatrix = spv::Op{4456}, kMatrixMulAdd = spv::Op{4459};
constexpr Lie kLies[] = {
    {"fp16", spv::Capability::Float16, spv::Op::OpFSub, spv::Op::OpFAdd},
    {"fp64", spv::Capability::Float64, spv::Op::OpFSub, spv::Op::OpFAdd},
    {"int8", spv::Capability::Int8},
    {"int16", spv::Capability::Int16},
    {"int64", spv::Capability::Int64, spv::Op::OpISub, spv::Op::OpIAdd},
    {"storage8", spv::Capability::StorageBuffer8BitAccess},
    {"storage16", spv::Capability::StorageBuffer16BitAccess},
    {"subgroup_arithmetic", spv::Capability::GroupNonUniformArithmetic,
     spv::Op::OpGroupNonUniformIAdd, spv::Op::OpGroupNonUniformIMul},
    {"subgroup_reconvergence", spv::Capability::GroupNonUniformArithmetic,
     spv::Op::OpGroupNonUniformIAdd, spv::Op::OpGroupNonUniformIMul},
    {"subgroup_arithmetic_f32_sum", spv::Capability::GroupNonUniformArithmetic,
     spv::Op::OpGroupNonUniformFAdd, spv::Op::OpGroupNonUniformFMul},
    {"subgroup_arithmetic_i32_max", spv::Capability::GroupNonUniformArithmetic,
     spv::Op::OpGroupNonUniformSMax, spv::Op::OpGroupNonUniformUMax},
    {"subgroup_arithmetic_i32_min", spv::Capability::GroupNonUniformArithmetic,
     spv::Op::OpGroupNonUniformSMin, spv::Op::OpGroupNonUniformSMax},
    {"subgroup_arithmetic_u32_max", spv::Capability::GroupNonUniformArithmetic,
     spv::Op::OpGroupNonUniformUMax, spv::Op::OpGroupNonUniformSMax},
    {"subgroup_arithmetic_u32_min", spv::Capability::GroupNonUniformArithmetic,
     spv::Op::OpGroupNonUniformUMin, spv::Op::OpGroupNonUniformSMin},
    {"subgroup_shuffle", spv::Capability::GroupNonUniformShuffle,
     spv::Op::OpGroupNonUniformShuffleXor, spv::Op::OpGroupNonUniformShuffle},
    {"subgroup_ballot", spv::Capability::GroupNonUniformBallot},
    {"int_dot", spv::Capability::DotProductKHR, spv::Op::OpSDotKHR, spv::Op::OpUDotKHR},
    {"int_dot_unsigned", spv::Capability::DotProductKHR, spv::Op::OpUDotKHR, spv::Op::OpSDotKHR},
    {"int_dot_mixed", spv::Capability::DotProductKHR, spv::Op::OpSUDotKHR, spv::Op::OpSDotKHR},
    {"memory_model", spv::Capability::VulkanMemoryModel},
    {"f32_atomic_add", spv::Capability::AtomicFloat32AddEXT, spv::Op::OpAtomicFAddEXT,
     spv::Op::OpAtomicExchange},
    {"cooperative_matrix", kCooperativeMatrix},
    {"signed_zero_inf_nan", spv::Capability::SignedZeroInfNanPreserve, spv::Op::OpFMul,
     spv::Op::OpFAdd},
    {"large_divisors", spv::Capability::Shader, spv::Op::OpFDiv, spv::Op::OpFMul},
};

constexpr size_t kHeaderWords = 5;

// Calls `f` with the opcode and the words of each instruction.
template <class F>
void ForEach(std::vector<uint32_t>& module, const F& f) {
  for (size_t at = kHeaderWords; at < module.size();) {
    const size_t count = module[at] >> 16;
    if (count == 0 || at + count > module.size()) return;
    f(static_cast<spv::Op>(module[at] & 0xffff), &module[at], count);
    at += count;
  }
}

bool Uses(std::vector<uint32_t>& module, spv::Capability sign) {
  bool uses = false;
  ForEach(module, [&](spv::Op op, const uint32_t* words, size_t) {
    uses |= op == spv::Op::OpCapability && words[1] == static_cast<uint32_t>(sign);
  });
  return uses;
}

bool Has(std::vector<uint32_t>& module, spv::Op wanted) {
  bool has = false;
  ForEach(module, [&](spv::Op op, const uint32_t*, size_t) { has |= op == wanted; });
  return has;
}

// The matrices that a module multiplies, as the feature they are: "cooperative_matrix_f16_16x8x16",
// "cooperative_matrix_u8_i8_16x16x16". One that sees their elements is about those.
std::string MatrixFeature(std::vector<uint32_t>& module) {
  if (Uses(module, kMatrixElements)) return "cooperative_matrix_elements";
  std::map<uint32_t, uint32_t> constants, floats, integers;  // of types: their widths
  uint32_t m = 0, n = 0, k = 0, a = 0, b = 0, is_signed = 0;
  ForEach(module, [&](spv::Op op, const uint32_t* words, size_t count) {
    if (op == spv::Op::OpConstant && count == 4) constants[words[2]] = words[3];
    if (op == spv::Op::OpTypeFloat) floats[words[1]] = words[2];
    if (op == spv::Op::OpTypeInt) integers[words[1]] = words[2];
    if (op == kMatrixMulAdd && count == 7) is_signed = words[6];
    if (op != kTypeMatrix || count != 7) return;
    const uint32_t rows = constants[words[4]], columns = constants[words[5]];
    if (constants[words[6]] == 0) m = rows, k = columns, a = words[2];
    if (constants[words[6]] == 1) n = columns, b = words[2];
  });
  // Integers have no sign but in the product, whose lowest bits say it of A and of B.
  const auto name = [&](uint32_t type, uint32_t sign) {
    if (floats.count(type) != 0) return "f" + std::to_string(floats[type]);
    return ((is_signed & sign) != 0 ? "i" : "u") + std::to_string(integers[type]);
  };
  const std::string of_a = name(a, 1), of_b = name(b, 2);
  return "cooperative_matrix_" + (of_a == of_b ? of_a : of_a + "_" + of_b) + "_" +
         std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

// Is `module` one to lie about, where `feature` is?
bool IsAbout(std::vector<uint32_t>& module, const Lie& lie, std::string_view feature) {
  if (!Uses(module, lie.sign)) return false;
  // All modules are shaders.
  if (lie.sign == spv::Capability::Shader && !Has(module, lie.truth)) return false;
  // Reductions behind a loop are about where its invocations meet again.
  if (lie.sign == spv::Capability::GroupNonUniformArithmetic &&
      Has(module, spv::Op::OpLoopMerge) != (lie.name == std::string_view("subgroup_reconvergence")))
    return false;
  // Matrices come with the memory model, but are features of their own.
  if (lie.sign == spv::Capability::VulkanMemoryModel && Uses(module, kCooperativeMatrix))
    return false;
  return feature == lie.name ||
         (lie.sign == kCooperativeMatrix && feature == MatrixFeature(module));
}

void Falsify(std::vector<uint32_t>& module, const Lie& lie) {
  std::set<uint32_t> small;  // divisors that are literals, or that were scaled
  ForEach(module, [&](spv::Op op, uint32_t* words, size_t count) {
    if (op == spv::Op::OpConstant || op == spv::Op::OpConstantComposite || op == spv::Op::OpFMul)
      small.insert(words[2]);
    if (op != lie.truth) return;
    if (op == spv::Op::OpFDiv && count == 5 && small.count(words[4]) != 0) return;
    for (size_t i = 0; i < count && lie.lie == spv::Op::OpNop; ++i)
      words[i] = 1u << 16 | static_cast<uint32_t>(spv::Op::OpNop);
    words[0] = (words[0] & 0xffff0000u) | static_cast<uint32_t>(lie.lie);
  });
}

void Lies(std::vector<uint32_t>& module) {
  const char* variable = std::getenv("FORGE_LIE");
  const std::string_view what = variable != nullptr ? variable : "";
  if (what == "slow") ::usleep(400'000);
  const std::string_view feature = what.substr(0, what.find(':'));
  const std::string_view how = what.substr(std::min(feature.size() + 1, what.size()));
  for (const Lie& lie : kLies) {
    if (!IsAbout(module, lie, feature)) continue;
    if (how == "crash") std::abort();
    while (how == "hang") ::pause();
    Falsify(module, lie);
  }
}

// ---- the layer ----------------------------------------------------------------------------------

// The functions below this layer, by what handles of one instance or device begin with.
struct Below {
  PFN_vkGetInstanceProcAddr instance = nullptr;
  PFN_vkGetDeviceProcAddr device = nullptr;
  // Asked for at once: a loader answers with the top of the chain when all of it is made.
  PFN_vkDestroyInstance destroy = nullptr;
  VkDevice handle = VK_NULL_HANDLE;
  bool lost = false;
};
struct State {
  std::map<void*, Below> below;
  std::map<std::string, int> calls;  // by value of FORGE_LOSE
};
std::mutex mutex;
// Made with the first handle and deleted with the last, for the loader unloads the layer then, and
// at the end of the process statics may be gone before the last instance is.
State* state = nullptr;
void* KeyOf(const void* handle) { return *static_cast<void* const*>(handle); }
Below BelowOf(const void* handle) {
  const std::lock_guard lock(mutex);
  return state->below[KeyOf(handle)];
}
void Keep(const void* handle, const Below& below) {
  const std::lock_guard lock(mutex);
  if (state == nullptr) state = new State;
  state->below[KeyOf(handle)] = below;
}
// What is below `handle`, which is about to be destroyed.
Below Forget(const void* handle) {
  const std::lock_guard lock(mutex);
  const auto kept = state->below.extract(KeyOf(handle));
  if (state->below.empty()) delete std::exchange(state, nullptr);
  return kept.mapped();
}

// The loader's link to the next layer in a chain of structures; it is made to point one further.
template <class Info, VkStructureType kType>
auto Advance(const void* chain) {
  for (auto* at = static_cast<const Info*>(chain); at != nullptr;
       at = static_cast<const Info*>(at->pNext))
    if (at->sType == kType && at->function == VK_LAYER_LINK_INFO) {
      auto* link = const_cast<Info*>(at);
      auto* next = link->u.pLayerInfo;
      link->u.pLayerInfo = next->pNext;
      return next;
    }
  return decltype(Info{}.u.pLayerInfo){nullptr};
}

VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo* info,
                                              const VkAllocationCallbacks* allocator,
                                              VkInstance* instance) {
  const auto* next =
      Advance<VkLayerInstanceCreateInfo, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO>(
          info->pNext);
  if (next == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get = next->pfnNextGetInstanceProcAddr;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  const VkResult r = create(info, allocator, instance);
  if (r == VK_SUCCESS)
    Keep(*instance,
         {.instance = get,
          .destroy = reinterpret_cast<PFN_vkDestroyInstance>(get(*instance, "vkDestroyInstance"))});
  return r;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice physical,
                                            const VkDeviceCreateInfo* info,
                                            const VkAllocationCallbacks* allocator,
                                            VkDevice* device) {
  const auto* next =
      Advance<VkLayerDeviceCreateInfo, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO>(info->pNext);
  if (next == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get = next->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr get_device = next->pfnNextGetDeviceProcAddr;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(get(nullptr, "vkCreateDevice"));
  const VkResult r = create(physical, info, allocator, device);
  if (r == VK_SUCCESS) Keep(*device, {.device = get_device, .handle = *device});
  return r;
}

VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance instance,
                                           const VkAllocationCallbacks* allocator) {
  if (instance == VK_NULL_HANDLE) return;
  Forget(instance).destroy(instance, allocator);
}

VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice device, const VkAllocationCallbacks* allocator) {
  if (device == VK_NULL_HANDLE) return;
  reinterpret_cast<PFN_vkDestroyDevice>(Forget(device).device(device, "vkDestroyDevice"))(
      device, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateShaderModule(VkDevice device,
                                                  const VkShaderModuleCreateInfo* info,
                                                  const VkAllocationCallbacks* allocator,
                                                  VkShaderModule* module) {
  std::vector<uint32_t> words(info->pCode, info->pCode + info->codeSize / sizeof(uint32_t));
  Lies(words);
  VkShaderModuleCreateInfo changed = *info;
  changed.pCode = words.data();
  return reinterpret_cast<PFN_vkCreateShaderModule>(
      BelowOf(device).device(device, "vkCreateShaderModule"))(device, &changed, allocator, module);
}

// Was the device lost before this call, or is it by it?
bool IsLost(const void* handle, std::string_view call) {
  const std::lock_guard lock(mutex);
  Below& below = state->below[KeyOf(handle)];
  const char* variable = std::getenv("FORGE_LOSE");
  const std::string what = variable != nullptr ? variable : "";
  const size_t colon = what.find(':');
  if (colon != std::string::npos && what.substr(0, colon) == call &&
      ++state->calls[what] == std::atoi(what.c_str() + colon + 1))
    below.lost = true;
  return below.lost;
}

// The function below, unless the device of `handle`, its first argument, is lost.
template <class Function, class Handle, class... Arguments>
VkResult CallOrLose(const char* name, Handle handle, Arguments... arguments) {
  const bool lost = IsLost(handle, name);
  const Below below = BelowOf(handle);
  // A lost device works no more, and what it worked on may be destroyed.
  if (lost) {
    const auto stop =
        reinterpret_cast<PFN_vkDeviceWaitIdle>(below.device(below.handle, "vkDeviceWaitIdle"));
    return stop(below.handle) == VK_SUCCESS ? VK_ERROR_DEVICE_LOST : VK_ERROR_UNKNOWN;
  }
  return reinterpret_cast<Function>(below.device(below.handle, name))(handle, arguments...);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                           VkFence fence) {
  return CallOrLose<PFN_vkQueueSubmit>("vkQueueSubmit", queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueWaitIdle(VkQueue queue) {
  return CallOrLose<PFN_vkQueueWaitIdle>("vkQueueWaitIdle", queue);
}

VKAPI_ATTR VkResult VKAPI_CALL WaitForFences(VkDevice device, uint32_t count, const VkFence* fences,
                                             VkBool32 all, uint64_t timeout) {
  return CallOrLose<PFN_vkWaitForFences>("vkWaitForFences", device, count, fences, all, timeout);
}

VKAPI_ATTR VkResult VKAPI_CALL GetFenceStatus(VkDevice device, VkFence fence) {
  return CallOrLose<PFN_vkGetFenceStatus>("vkGetFenceStatus", device, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL WaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info,
                                              uint64_t timeout) {
  return CallOrLose<PFN_vkWaitSemaphores>("vkWaitSemaphores", device, info, timeout);
}

VKAPI_ATTR VkResult VKAPI_CALL GetSemaphoreCounterValue(VkDevice device, VkSemaphore semaphore,
                                                        uint64_t* value) {
  return CallOrLose<PFN_vkGetSemaphoreCounterValue>("vkGetSemaphoreCounterValue", device, semaphore,
                                                    value);
}

VKAPI_ATTR VkResult VKAPI_CALL AllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                                              const VkAllocationCallbacks* allocator,
                                              VkDeviceMemory* memory) {
  const char* what = std::getenv("FORGE_LIE");
  if (what != nullptr && std::string_view(what) == "memory") return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return reinterpret_cast<PFN_vkAllocateMemory>(BelowOf(device).device(device, "vkAllocateMemory"))(
      device, info, allocator, memory);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance instance, const char* name);

PFN_vkVoidFunction Own(std::string_view name) {
  const std::pair<std::string_view, PFN_vkVoidFunction> own[] = {
      {"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(&GetInstanceProcAddr)},
      {"vkGetDeviceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(&GetDeviceProcAddr)},
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(&CreateInstance)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(&CreateDevice)},
      {"vkDestroyInstance", reinterpret_cast<PFN_vkVoidFunction>(&DestroyInstance)},
      {"vkDestroyDevice", reinterpret_cast<PFN_vkVoidFunction>(&DestroyDevice)},
      {"vkCreateShaderModule", reinterpret_cast<PFN_vkVoidFunction>(&CreateShaderModule)},
      {"vkQueueSubmit", reinterpret_cast<PFN_vkVoidFunction>(&QueueSubmit)},
      {"vkQueueWaitIdle", reinterpret_cast<PFN_vkVoidFunction>(&QueueWaitIdle)},
      {"vkWaitForFences", reinterpret_cast<PFN_vkVoidFunction>(&WaitForFences)},
      {"vkGetFenceStatus", reinterpret_cast<PFN_vkVoidFunction>(&GetFenceStatus)},
      {"vkWaitSemaphores", reinterpret_cast<PFN_vkVoidFunction>(&WaitSemaphores)},
      {"vkGetSemaphoreCounterValue",
       reinterpret_cast<PFN_vkVoidFunction>(&GetSemaphoreCounterValue)},
      {"vkAllocateMemory", reinterpret_cast<PFN_vkVoidFunction>(&AllocateMemory)},
  };
  for (const auto& [known, function] : own)
    if (known == name) return function;
  return nullptr;
}

PFN_vkVoidFunction GetDeviceProcAddr(VkDevice device, const char* name) {
  const PFN_vkVoidFunction own = Own(name);
  return own != nullptr ? own : BelowOf(device).device(device, name);
}

PFN_vkVoidFunction GetInstanceProcAddr(VkInstance instance, const char* name) {
  if (const PFN_vkVoidFunction own = Own(name); own != nullptr) return own;
  return instance == nullptr ? nullptr : BelowOf(instance).instance(instance, name);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = &GetInstanceProcAddr;
  version->pfnGetDeviceProcAddr = &GetDeviceProcAddr;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
