// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/pipelines/pipeline.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/platform.h"

namespace forge::vk {
namespace {

uint64_t HashOf(const KernelCode& c) {
  const uint64_t h = XXH64(c.spirv.data(), c.spirv.size() * sizeof(uint32_t), 0);
  return HashMix(HashMix(HashMix(HashMix(h, c.subgroup), c.operands), c.scalars), c.parameters);
}

double ValueOf(const VkPipelineExecutableStatisticKHR& s) {
  switch (s.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return s.value.b32 != 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(s.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(s.value.u64);
    default:
      return s.value.f64;
  }
}

// What the driver's compiler says of a pipeline; nothing where it says nothing.
std::vector<KernelStatistic> StatisticsOf(const Context& context, VkPipeline pipeline,
                                          const std::string& kernel) {
  std::vector<KernelStatistic> all;
  auto info = Typed<VkPipelineInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR);
  info.pipeline = pipeline;
  const VolkDeviceTable& fn = context.fn;
  std::vector<VkPipelineExecutablePropertiesKHR> parts;
  Enumerate(parts,
            Typed<VkPipelineExecutablePropertiesKHR>(
                VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR),
            fn.vkGetPipelineExecutablePropertiesKHR, context.device, &info);
  for (uint32_t e = 0; e < parts.size(); ++e) {
    all.push_back({kernel, "Subgroup size", static_cast<double>(parts[e].subgroupSize)});
    auto which = Typed<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
    which.pipeline = pipeline;
    which.executableIndex = e;
    std::vector<VkPipelineExecutableStatisticKHR> found;
    Enumerate(found,
              Typed<VkPipelineExecutableStatisticKHR>(
                  VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR),
              fn.vkGetPipelineExecutableStatisticsKHR, context.device, &which);
    for (const auto& s : found) all.push_back({kernel, s.name, ValueOf(s)});
  }
  return all;
}

}  // namespace

absl::StatusOr<PipelineStoreRef> PipelineStore::Create(const ContextRef& context, bool use_file,
                                                       bool statistics) {
  PipelineStoreRef store(new PipelineStore(context, statistics && context->abilities().statistics));
  PipelineFile file;
  if (use_file) {
    store->path_ = CacheFile(context->queries(), ".bin");
    file = ReadPipelineFile(store->path_, context->queries());
  }
  auto info = Typed<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = file.blob.size();
  info.pInitialData = file.blob.data();
  auto cache = context->Make<OwnedPipelineCache>(info);
  if (!cache.ok() && !file.blob.empty()) {
    file = {};
    info.initialDataSize = 0;
    cache = context->Make<OwnedPipelineCache>(info);
  }
  FORGE_ASSIGN_OR_RETURN(store->cache_, std::move(cache));
  store->on_disk_ = std::move(file.kernels);
  return store;
}

absl::StatusOr<const PipelineStore::Layout*> PipelineStore::LayoutFor(const KernelCode& code) {
  const std::array<uint32_t, 3> key = {code.operands, code.scalars, code.parameters};
  std::lock_guard lock(mutex_);
  if (const auto found = layouts_.find(key); found != layouts_.end()) return &found->second;
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (uint32_t i = 0; i < code.operands; ++i)
    bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, {}});
  if (code.parameters)
    bindings.push_back({codegen::kParameterBinding,
                        VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                        1,
                        VK_SHADER_STAGE_COMPUTE_BIT,
                        {}});
  auto set =
      Typed<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  set.bindingCount = static_cast<uint32_t>(bindings.size());
  set.pBindings = bindings.data();
  Layout layout;
  layout.pushed = !bindings.empty() && bindings.size() <= context_->abilities().pushed_operands;
  if (layout.pushed) set.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
  FORGE_ASSIGN_OR_RETURN(layout.set, context_->Make<OwnedSetLayout>(set));
  const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                     .offset = 0,
                                     .size = code.scalars * static_cast<uint32_t>(sizeof(int32_t))};
  auto info = Typed<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.setLayoutCount = 1;
  info.pSetLayouts = layout.set.address();
  info.pushConstantRangeCount = code.scalars == 0 || code.parameters ? 0 : 1;
  info.pPushConstantRanges = &range;
  FORGE_ASSIGN_OR_RETURN(layout.pipeline, context_->Make<OwnedPipelineLayout>(info));
  return &layouts_.emplace(key, std::move(layout)).first->second;
}

absl::StatusOr<std::shared_ptr<Pipeline>> PipelineStore::Make(const KernelCode& code,
                                                              const Layout& layout) {
  auto module_info = Typed<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module_info.codeSize = code.spirv.size() * sizeof(uint32_t);
  module_info.pCode = code.spirv.data();
  FORGE_ASSIGN_OR_RETURN(const OwnedShaderModule module,
                         context_->Make<OwnedShaderModule>(module_info));
  auto size = Typed<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
  size.requiredSubgroupSize = code.subgroup;
  auto info = Typed<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
  if (statistics_) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  if (code.subgroup != 0 && context_->abilities().subgroup_size) info.stage.pNext = &size;
  if (code.subgroup != 0 && context_->abilities().full_subgroups)
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.get();
  info.stage.pName = "main";
  info.layout = layout.pipeline.get();
  VkPipeline handle = VK_NULL_HANDLE;
  FORGE_RETURN_IF_ERROR(
      Annotate(context_->Check(context_->fn.vkCreateComputePipelines(context_->device, cache_.get(),
                                                                     1, &info, nullptr, &handle),
                               "vkCreateComputePipelines"),
               fmt::format("the driver could not compile kernel '{}'", code.name)));
  context_->SetName(VK_OBJECT_TYPE_PIPELINE, reinterpret_cast<uint64_t>(handle), code.name);
  auto pipeline = std::make_shared<Pipeline>();
  pipeline->context = context_;
  pipeline->handle = OwnedPipeline(*context_, handle);
  pipeline->layout = layout.pipeline.get();
  pipeline->set_layout = layout.set.get();
  pipeline->parameters = code.parameters;
  pipeline->pushed = layout.pushed;
  if (statistics_) pipeline->statistics = StatisticsOf(*context_, handle, code.name);
  return pipeline;
}

absl::StatusOr<PipelineRef> PipelineStore::Get(const KernelCode& code) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  const uint64_t hash = HashOf(code);
  {
    std::lock_guard lock(mutex_);
    if (const auto found = pipelines_.find(hash); found != pipelines_.end()) return found->second;
  }
  FORGE_ASSIGN_OR_RETURN(const Layout* layout, LayoutFor(code));
  FORGE_ASSIGN_OR_RETURN(const std::shared_ptr<Pipeline> made, Make(code, *layout));
  std::lock_guard lock(mutex_);
  if (const auto [at, is_first] = pipelines_.try_emplace(hash, made); !is_first) return at->second;
  made->is_new = on_disk_.insert(hash).second;
  dirty_ |= made->is_new;
  ++(made->is_new ? compiled_ : cached_);
  return PipelineRef(made);
}

// What this process has, and what others have. Theirs is merged into a cache of its own: the one
// that kernels are compiled with may be in use.
absl::StatusOr<PipelineFile> PipelineStore::Merged(PipelineFile others) const {
  const bool has_all =
      std::ranges::all_of(others.kernels, [this](uint64_t k) { return on_disk_.contains(k); });
  auto info = Typed<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = others.blob.size();
  info.pInitialData = others.blob.data();
  OwnedPipelineCache both;
  if (!has_all) {
    FORGE_ASSIGN_OR_RETURN(both, context_->Make<OwnedPipelineCache>(info));
    FORGE_RETURN_IF_ERROR(context_->Check(
        context_->fn.vkMergePipelineCaches(context_->device, both.get(), 1, cache_.address()),
        "vkMergePipelineCaches"));
    others.kernels.insert(on_disk_.begin(), on_disk_.end());
  }
  PipelineFile file{.kernels = has_all ? on_disk_ : others.kernels, .blob = {}};
  FORGE_RETURN_IF_ERROR(
      context_->Check(Enumerate(file.blob, 0, context_->fn.vkGetPipelineCacheData, context_->device,
                                has_all ? cache_.get() : both.get()),
                      "vkGetPipelineCacheData"));
  return file;
}

absl::Status PipelineStore::Save() {
  std::lock_guard lock(mutex_);
  if (!dirty_ || path_.empty()) return absl::OkStatus();
  const FolderLock alone(path_.parent_path());
  absl::StatusOr<PipelineFile> file = Merged(ReadPipelineFile(path_, context_->queries()));
  // What a driver does not take back is of no use to anybody.
  if (!file.ok()) file = Merged({});
  FORGE_RETURN_IF_ERROR(file.status());
  FORGE_RETURN_IF_ERROR(WritePipelineFile(path_, context_->queries(), *file));
  dirty_ = false;
  return absl::OkStatus();
}

}  // namespace forge::vk
