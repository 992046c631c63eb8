// SPDX-License-Identifier: Apache-2.0
// Makes programs: from requests to kernels to pipelines, on all cores.
#pragma once
#include "vk_runtime/program.h"

namespace forge::vk {

class Compiler {
 public:
  Compiler(const ContextRef& context, PipelineStoreRef pipelines, int threads)
      : context_(context), pipelines_(std::move(pipelines)), threads_(threads) {}
  // One result for each request, in order; see Device::Compile.
  std::vector<absl::StatusOr<ProgramRef>> Run(std::span<const CompileRequest> requests,
                                              absl::FunctionRef<void(size_t)> progress);

 private:
  ContextRef context_;
  PipelineStoreRef pipelines_;
  int threads_;
};

}  // namespace forge::vk
