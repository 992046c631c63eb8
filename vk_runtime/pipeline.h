// SPDX-License-Identifier: Apache-2.0
// Compute pipelines: made once for each kernel, found again in memory and on disk.
#pragma once
#include "absl/container/flat_hash_map.h"
#include "codegen/kernel_ir.h"
#include "vk_runtime/cache_file.h"
#include "vk_runtime/context.h"

namespace forge::vk {

// A kernel in the driver's hands. Immutable.
struct Pipeline {
  ContextRef context;
  OwnedPipeline handle;
  // Owned by the store, which lives as long as the context is used.
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  bool pushed = false;                      // operands are pushed: the layout has no sets
  std::vector<KernelStatistic> statistics;  // empty unless asked for and told
  bool is_new = false;                      // to the file of earlier runs
};
using PipelineRef = std::shared_ptr<const Pipeline>;

// A kernel as a driver takes it. Operand i is binding i of set 0, a storage buffer; scalars are
// push constants of 4 bytes.
struct KernelCode {
  std::string name;
  std::vector<uint32_t> spirv;
  uint32_t operands = 0, scalars = 0;
  uint32_t subgroup = 0;  // required size; 0: any

  static KernelCode With(const codegen::Kernel& kernel, uint32_t operands,
                         std::vector<uint32_t> spirv);
  // With what is printed.  errors: as codegen::Verify
  static absl::StatusOr<KernelCode> Of(const codegen::Kernel& kernel, uint32_t operands,
                                       const codegen::Caps& caps);
};

class PipelineStore {
 public:
  // `use_file`: keep compiled kernels in the cache folder.  errors: ResourceExhausted
  static absl::StatusOr<std::shared_ptr<PipelineStore>> Create(const ContextRef& context,
                                                               bool use_file, bool statistics);
  // Any thread; equal kernels give one pipeline.  errors: Internal naming the kernel
  absl::StatusOr<PipelineRef> Get(const KernelCode& code);
  // Writes what was compiled since the last time, beside what other processes have put into the
  // file meanwhile. A file that cannot be written costs the next run time, nothing else, so it is
  // only reported, and written the next time.
  absl::Status Save();

  // Pipelines made by the driver's compiler, and found in the file of an earlier run.
  int64_t compiled() const { return compiled_; }
  int64_t cached() const { return cached_; }

 private:
  struct Layout {
    OwnedSetLayout set;
    OwnedPipelineLayout pipeline;
    bool pushed = false;
  };
  PipelineStore(const ContextRef& context, bool statistics)
      : context_(context), statistics_(statistics) {}
  absl::StatusOr<PipelineFile> Merged(PipelineFile others) const;
  absl::StatusOr<const Layout*> LayoutFor(uint32_t operands, uint32_t scalars);
  absl::StatusOr<std::shared_ptr<Pipeline>> Make(const KernelCode& code, const Layout& layout);

  ContextRef context_;
  bool statistics_;
  std::filesystem::path path_;  // empty: no file
  OwnedPipelineCache cache_;
  std::mutex mutex_;  // of what follows
  std::map<std::pair<uint32_t, uint32_t>, Layout> layouts_;
  absl::flat_hash_map<uint64_t, PipelineRef> pipelines_;
  std::set<uint64_t> on_disk_;
  bool dirty_ = false;
  std::atomic<int64_t> compiled_{0}, cached_{0};
};
using PipelineStoreRef = std::shared_ptr<PipelineStore>;

}  // namespace forge::vk
