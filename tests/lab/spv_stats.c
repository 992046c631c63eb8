// SPDX-License-Identifier: Apache-2.0
// Compiles compute shaders with the Vulkan device at hand and prints what its compiler says of
// them.
//
//   spv_stats FILE.spv...            one line for each statistic: file, statistic, value, separated
//                                    by tabs
//   spv_stats --code N FILE.spv...   what the driver shows of each shader: intermediate forms, the
//                                    instructions; subgroups of N invocations, 0 as it likes
//
// The pipeline layout is read off the module (set and binding of every buffer; 128 bytes of push
// constants) and every feature of the device is enabled. Needs
// VK_KHR_pipeline_executable_properties. Exit status: 0, 1 when a module did not compile, 4 without
// a device.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { kMaxIds = 1 << 20, kMaxSets = 4, kMaxBindings = 64 };
enum { kOpEntryPoint = 15, kOpVariable = 59, kOpDecorate = 71 };
enum { kBufferBlock = 3, kBinding = 33, kDescriptorSet = 34 };
enum { kUniform = 2, kStorageBuffer = 12 };

struct module {
  uint32_t* words;
  size_t count;
  char entry[256];
};
struct layout {
  VkDescriptorSetLayoutBinding bindings[kMaxSets][kMaxBindings];
  uint32_t counts[kMaxSets];
};

static int read_module(const char* path, struct module* m) {
  FILE* f = fopen(path, "rb");
  if (!f) return 0;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  m->words = malloc(size > 0 ? size : 1);
  m->count = fread(m->words, 4, size / 4, f);
  fclose(f);
  return m->count > 5 && m->words[0] == 0x07230203;
}

static int reflect(struct module* m, struct layout* out) {
  static uint32_t set[kMaxIds], binding[kMaxIds];
  static uint8_t has_binding[kMaxIds];
  memset(set, 0, sizeof set), memset(has_binding, 0, sizeof has_binding);
  memset(out, 0, sizeof *out);
  strcpy(m->entry, "main");
  for (size_t i = 5; i < m->count;) {
    const uint32_t *w = m->words + i, length = w[0] >> 16, op = w[0] & 0xffff;
    if (!length || i + length > m->count) return 0;
    if (op == kOpEntryPoint && length > 3)
      snprintf(m->entry, sizeof m->entry, "%.*s", (int)(length - 3) * 4, (const char*)(w + 3));
    if (op == kOpDecorate && length > 3 && w[1] < kMaxIds) {
      if (w[2] == kDescriptorSet) set[w[1]] = w[3];
      if (w[2] == kBinding) binding[w[1]] = w[3], has_binding[w[1]] = 1;
    }
    if (op == kOpVariable && w[2] < kMaxIds && has_binding[w[2]] && set[w[2]] < kMaxSets) {
      uint32_t s = set[w[2]], known = 0;
      for (uint32_t k = 0; k < out->counts[s]; k++)
        known |= out->bindings[s][k].binding == binding[w[2]];
      if (!known && out->counts[s] < kMaxBindings)
        out->bindings[s][out->counts[s]++] =
            (VkDescriptorSetLayoutBinding){.binding = binding[w[2]],
                                           .descriptorCount = 1,
                                           .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER};
    }
    i += length;
  }
  return 1;
}

struct device {
  VkDevice vk;
  PFN_vkGetPipelineExecutablePropertiesKHR parts;
  PFN_vkGetPipelineExecutableStatisticsKHR statistics;
  PFN_vkGetPipelineExecutableInternalRepresentationsKHR forms;
};

static int has(const VkExtensionProperties* list, uint32_t n, const char* name) {
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(list[i].extensionName, name)) return 1;
  return 0;
}

static int open_device(struct device* d) {
  VkApplicationInfo app = {VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
  VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
  VkInstance instance;
  VkPhysicalDevice gpu;
  uint32_t n = 1;
  if (vkCreateInstance(&info, NULL, &instance) ||
      vkEnumeratePhysicalDevices(instance, &n, &gpu) < 0 || !n)
    return 0;
  static VkExtensionProperties all[1024];
  n = 1024;
  vkEnumerateDeviceExtensionProperties(gpu, NULL, &n, all);
  const char* wanted[] = {"VK_KHR_pipeline_executable_properties",
                          "VK_KHR_cooperative_matrix",
                          "VK_NV_cooperative_matrix2",
                          "VK_KHR_shader_bfloat16",
                          "VK_EXT_shader_atomic_float",
                          "VK_KHR_workgroup_memory_explicit_layout"};
  const char* names[8];
  uint32_t count = 0;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (has(all, n, wanted[i])) names[count++] = wanted[i];
  if (!count || strcmp(names[0], wanted[0])) return 0;

  VkPhysicalDeviceProperties props;
  vkGetPhysicalDeviceProperties(gpu, &props);
  fprintf(stderr, "spv_stats: %s\n", props.deviceName);
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR stats = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
      .pipelineExecutableInfo = 1};
  // {sType, pNext, flags}: cooperative matrix and bfloat16 by number, since older headers lack
  // them.
  struct {
    uint32_t type;
    void* next;
    VkBool32 flags[8];
  } matrix = {1000506000, &stats, {0}}, bf16 = {1000141000, &stats, {0}};
  VkPhysicalDeviceVulkan13Features v13 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                          &stats};
  if (has(all, n, "VK_KHR_cooperative_matrix")) v13.pNext = &matrix;
  if (has(all, n, "VK_KHR_shader_bfloat16")) bf16.next = v13.pNext, v13.pNext = &bf16;
  VkPhysicalDeviceVulkan12Features v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                          &v13};
  if (props.apiVersion < VK_API_VERSION_1_3) v12.pNext = v13.pNext;
  VkPhysicalDeviceVulkan11Features v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                          &v12};
  VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11};
  vkGetPhysicalDeviceFeatures2(gpu, &features);
  v12.bufferDeviceAddressCaptureReplay = v12.bufferDeviceAddressMultiDevice =
      features.features.robustBufferAccess = 0;
  stats.pipelineExecutableInfo = 1;
  float priority = 1;
  VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1,
                                   .pQueuePriorities = &priority};
  VkDeviceCreateInfo create = {
      VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features, 0, 1, &queue, 0, NULL, count, names, NULL};
  if (vkCreateDevice(gpu, &create, NULL, &d->vk)) return 0;
  d->parts = (PFN_vkGetPipelineExecutablePropertiesKHR)vkGetDeviceProcAddr(
      d->vk, "vkGetPipelineExecutablePropertiesKHR");
  d->statistics = (PFN_vkGetPipelineExecutableStatisticsKHR)vkGetDeviceProcAddr(
      d->vk, "vkGetPipelineExecutableStatisticsKHR");
  d->forms = (PFN_vkGetPipelineExecutableInternalRepresentationsKHR)vkGetDeviceProcAddr(
      d->vk, "vkGetPipelineExecutableInternalRepresentationsKHR");
  return 1;
}

// What to compile for: -1 statistics, else the code, of subgroups of so many (0: the driver's
// choice).
static int code = -1;

static VkPipeline compile(struct device* d, struct module* m, struct layout* l) {
  VkDescriptorSetLayout sets[kMaxSets];
  for (int s = 0; s < kMaxSets; s++) {
    VkDescriptorSetLayoutCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                            .bindingCount = l->counts[s],
                                            .pBindings = l->bindings[s]};
    if (vkCreateDescriptorSetLayout(d->vk, &info, NULL, &sets[s])) return VK_NULL_HANDLE;
  }
  VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
  VkPipelineLayoutCreateInfo layout_info = {
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, NULL, 0, kMaxSets, sets, 1, &push};
  VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                          .codeSize = m->count * 4, .pCode = m->words};
  VkPipelineLayout layout;
  VkShaderModule shader;
  VkPipeline pipeline;
  if (vkCreatePipelineLayout(d->vk, &layout_info, NULL, &layout)) return VK_NULL_HANDLE;
  if (vkCreateShaderModule(d->vk, &module_info, NULL, &shader)) return VK_NULL_HANDLE;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
      .requiredSubgroupSize = code};
  VkComputePipelineCreateInfo info = {
      VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .flags = code < 0 ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
                        : VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR,
      .layout = layout,
      .stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, code > 0 ? &subgroup : NULL,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = shader, .pName = m->entry}};
  return vkCreateComputePipelines(d->vk, VK_NULL_HANDLE, 1, &info, NULL, &pipeline) ? VK_NULL_HANDLE
                                                                                    : pipeline;
}

static void print_statistics(struct device* d, VkPipeline pipeline, const char* path) {
  VkPipelineInfoKHR info = {VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
  uint32_t parts = 0;
  d->parts(d->vk, &info, &parts, NULL);
  for (uint32_t p = 0; p < parts; p++) {
    VkPipelineExecutableInfoKHR which = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, NULL,
                                         pipeline, p};
    VkPipelineExecutableStatisticKHR s[128] = {{0}};
    uint32_t n = 128;
    for (int i = 0; i < 128; i++) s[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    d->statistics(d->vk, &which, &n, s);
    for (uint32_t i = 0; i < n; i++) {
      printf("%s\t%s\t", path, s[i].name);
      if (s[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR)
        printf("%g\n", s[i].value.f64);
      else
        printf("%llu\n", (unsigned long long)s[i].value.u64);
    }
  }
}

static void print_code(struct device* d, VkPipeline pipeline, const char* path) {
  VkPipelineInfoKHR info = {VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
  uint32_t parts = 0;
  d->parts(d->vk, &info, &parts, NULL);
  for (uint32_t p = 0; p < parts; p++) {
    VkPipelineExecutableInfoKHR which = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, NULL,
                                         pipeline, p};
    VkPipelineExecutableInternalRepresentationKHR forms[16] = {{0}};
    uint32_t n = 16;
    for (int i = 0; i < 16; i++)
      forms[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
    d->forms(d->vk, &which, &n, forms);  // sizes
    for (uint32_t i = 0; i < n; i++) forms[i].pData = calloc(1, forms[i].dataSize + 1);
    d->forms(d->vk, &which, &n, forms);
    for (uint32_t i = 0; i < n; i++) {
      if (forms[i].isText) printf("; %s: %s\n%s\n", path, forms[i].name, (char*)forms[i].pData);
      free(forms[i].pData);
    }
  }
}

int main(int argc, char** argv) {
  struct device device;
  int failed = 0, first = 1;
  if (argc > 2 && !strcmp(argv[1], "--code")) code = atoi(argv[2]), first = 3;
  if (!open_device(&device))
    return fprintf(stderr, "spv_stats: no device, or one without compiler statistics\n"), 4;
  for (int i = first; i < argc; i++) {
    struct module module = {0};
    static struct layout layout;
    VkPipeline pipeline = read_module(argv[i], &module) && reflect(&module, &layout)
                              ? compile(&device, &module, &layout)
                              : VK_NULL_HANDLE;
    if (pipeline)
      (code < 0 ? print_statistics : print_code)(&device, pipeline, argv[i]);
    else
      fprintf(stderr, "spv_stats: %s does not compile here\n", argv[i]), failed = 1;
    fflush(stdout);
    free(module.words);
  }
  return failed;
}
