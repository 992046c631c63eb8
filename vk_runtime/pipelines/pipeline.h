// SPDX-License-Identifier: Apache-2.0
// Compute pipelines, compiled once for each kernel and cached in memory and on disk.
#pragma once
#include "absl/container/flat_hash_map.h"
#include "vk_runtime/api/context.h"
#include "vk_runtime/pipelines/cache_file.h"
#include "vk_runtime/pipelines/kernel_code.h"

namespace forge::vk {

// A compiled kernel. Immutable.
struct Pipeline {
  ContextRef context;
  OwnedPipeline handle;
  // Owned by the store, which lives as long as the context is used.
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  bool parameters = false;                  // scalars are read from the parameter buffer
  bool pushed = false;                      // operands are push descriptors: the layout has no sets
  std::vector<KernelStatistic> statistics;  // empty unless requested and supported
  bool is_new = false;                      // not in the file of earlier runs
};
using PipelineRef = std::shared_ptr<const Pipeline>;

// The pipelines of one device.
class PipelineStore {
 public:
  // Creates a store.
  //   use_file: keep compiled kernels in the cache folder     errors: ResourceExhausted
  static absl::StatusOr<std::shared_ptr<PipelineStore>> Create(const ContextRef& context,
                                                               bool use_file, bool statistics);
  // Returns the pipeline of a kernel; equal kernels share one. May be called from any thread.
  //   errors: Internal naming the kernel
  absl::StatusOr<PipelineRef> Get(const KernelCode& code);
  // Writes newly compiled pipelines to the file, merged with what other processes have written
  // meanwhile. A failure costs only compile time in the next run; the next Save tries again.
  //   errors: as WriteCacheFile
  absl::Status Save();

  // Numbers of pipelines compiled by the driver and loaded from the file of an earlier run.
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
  std::mutex mutex_;                                   // protects the members below
  std::map<std::array<uint32_t, 3>, Layout> layouts_;  // by operands, scalars, parameters
  absl::flat_hash_map<uint64_t, PipelineRef> pipelines_;
  absl::flat_hash_set<uint64_t> on_disk_;
  bool dirty_ = false;
  std::atomic<int64_t> compiled_{0}, cached_{0};
};
using PipelineStoreRef = std::shared_ptr<PipelineStore>;

}  // namespace forge::vk
