// SPDX-License-Identifier: Apache-2.0
// Compute pipelines: made once for each kernel, found again in memory and on disk.
#pragma once
#include "absl/container/flat_hash_map.h"
#include "vk_runtime/api/context.h"
#include "vk_runtime/pipelines/cache_file.h"
#include "vk_runtime/pipelines/kernel_code.h"

namespace forge::vk {

// A kernel in the driver's hands. Immutable.
struct Pipeline {
  ContextRef context;
  OwnedPipeline handle;
  // Owned by the store, which lives as long as the context is used.
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  bool parameters = false;                  // scalars are read from the parameter buffer
  bool pushed = false;                      // operands are pushed: the layout has no sets
  std::vector<KernelStatistic> statistics;  // empty unless asked for and told
  bool is_new = false;                      // to the file of earlier runs
};
using PipelineRef = std::shared_ptr<const Pipeline>;

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
  absl::StatusOr<const Layout*> LayoutFor(const KernelCode& code);
  absl::StatusOr<std::shared_ptr<Pipeline>> Make(const KernelCode& code, const Layout& layout);

  ContextRef context_;
  bool statistics_;
  std::filesystem::path path_;  // empty: no file
  OwnedPipelineCache cache_;
  std::mutex mutex_;                                   // of what follows
  std::map<std::array<uint32_t, 3>, Layout> layouts_;  // by operands, scalars, parameters
  absl::flat_hash_map<uint64_t, PipelineRef> pipelines_;
  std::set<uint64_t> on_disk_;
  bool dirty_ = false;
  std::atomic<int64_t> compiled_{0}, cached_{0};
};
using PipelineStoreRef = std::shared_ptr<PipelineStore>;

}  // namespace forge::vk
