// SPDX-License-Identifier: Apache-2.0
// NVRTC, NVIDIA's compiler from CUDA C++ to PTX and machine code, opened by name at run time.
// Source: NVRTC documentation, version 12.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/platform.h"
#include "base/status.h"

namespace forge::cuda {

using NvrtcResult = int;
using NvrtcProgram = struct NvrtcProgramObject*;

// Member, symbol, parameters; all but error_text return NvrtcResult.
// clang-format off
#define FORGE_NVRTC_API(X)                                                                       \
  X(version, "nvrtcVersion", (int* major, int* minor))                                           \
  X(architecture_count, "nvrtcGetNumSupportedArchs", (int* count))                               \
  X(architectures, "nvrtcGetSupportedArchs", (int* architectures))                               \
  X(create, "nvrtcCreateProgram",                                                                \
    (NvrtcProgram* program, const char* source, const char* name, int header_count,              \
     const char* const* headers, const char* const* header_names))                               \
  X(destroy, "nvrtcDestroyProgram", (NvrtcProgram* program))                                     \
  X(compile, "nvrtcCompileProgram",                                                              \
    (NvrtcProgram program, int option_count, const char* const* options))                        \
  X(log_size, "nvrtcGetProgramLogSize", (NvrtcProgram program, size_t* bytes))                   \
  X(log, "nvrtcGetProgramLog", (NvrtcProgram program, char* log))                                \
  X(ptx_size, "nvrtcGetPTXSize", (NvrtcProgram program, size_t* bytes))                          \
  X(ptx, "nvrtcGetPTX", (NvrtcProgram program, char* ptx))                                       \
  X(cubin_size, "nvrtcGetCUBINSize", (NvrtcProgram program, size_t* bytes))                      \
  X(cubin, "nvrtcGetCUBIN", (NvrtcProgram program, char* cubin))
// clang-format on

// What NVRTC made of a source.
struct NvrtcOutput {
  std::string ptx;
  std::string cubin;  // empty where only PTX was asked for
  std::string log;
};

class Nvrtc {
 public:
  // Opens the library: in the folders of FORGE_CUDA_PATH and their lib and nvidia/*/lib, else by
  // the names of its versions where the loader finds them.
  //   errors: Unavailable
  static absl::StatusOr<std::shared_ptr<const Nvrtc>> Load();
  Nvrtc(const Nvrtc&) = delete;

  std::string version() const;  // "13.5"
  // The newest architecture, 10 * major + minor, that this compiler knows up to `capability`; 0:
  // none.
  int NewestUpTo(int capability) const;
  // Compiles a source. An architecture is "sm_80" (PTX and cubin) or "compute_80" (PTX alone). May
  // be called from any thread.
  //   more: further options
  //   errors: Internal (with the compiler's log), Unavailable (its builtins library is missing)
  absl::StatusOr<NvrtcOutput> Compile(const std::string& source, const std::string& architecture,
                                      std::span<const char* const> more = {}) const;

 private:
  Nvrtc() = default;
  absl::Status Resolve();
#define X(member, symbol, parameters) NvrtcResult(*member##_) parameters = nullptr;
  FORGE_NVRTC_API(X)
#undef X
  const char* (*error_text_)(NvrtcResult result) = nullptr;
  std::shared_ptr<SharedLibrary> library_;
  int major_ = 0, minor_ = 0;
  std::vector<int> known_;  // architectures
};

}  // namespace forge::cuda
