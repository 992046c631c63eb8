// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/nvrtc.h"

#include <algorithm>

#include "cuda_runtime/api/libraries.h"

namespace forge::cuda {
namespace {

constexpr NvrtcResult kBuiltinsFailed = 7;  // NVRTC_ERROR_BUILTIN_OPERATION_FAILURE
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

}  // namespace

absl::StatusOr<std::shared_ptr<const Nvrtc>> Nvrtc::Load() {
  std::shared_ptr<Nvrtc> n(new Nvrtc);
  FORGE_ASSIGN_OR_RETURN(n->library_, OpenCudaLibrary("NVRTC, NVIDIA's run-time compiler,", kNames,
                                                      "nvidia-cuda-nvrtc"));
  FORGE_RETURN_IF_ERROR(n->Resolve());
  int count = 0;
  if (n->version_(&n->major_, &n->minor_) != 0 || n->architecture_count_(&count) != 0 || count <= 0)
    return Unavailable("NVRTC does not tell its version and architectures");
  n->known_.resize(static_cast<size_t>(count));
  if (n->architectures_(n->known_.data()) != 0)
    return Unavailable("NVRTC does not tell its architectures");
  return n;
}

absl::Status Nvrtc::Resolve() {
#define X(member, symbol, parameters) \
  FORGE_RETURN_IF_ERROR(ResolveSymbol(*library_, "NVRTC", symbol, member##_));
  FORGE_NVRTC_API(X)
#undef X
  return ResolveSymbol(*library_, "NVRTC", "nvrtcGetErrorString", error_text_);
}

std::string Nvrtc::version() const { return fmt::format("{}.{}", major_, minor_); }

int Nvrtc::NewestUpTo(int capability) const {
  int newest = 0;
  for (const int a : known_)
    if (a <= capability) newest = std::max(newest, a);
  return newest;
}

absl::StatusOr<NvrtcOutput> Nvrtc::Compile(const std::string& source,
                                           const std::string& architecture,
                                           std::span<const char* const> more) const {
  NvrtcProgram made = nullptr;
  if (const NvrtcResult r = create_(&made, source.c_str(), "forge.cu", 0, nullptr, nullptr); r != 0)
    return Internal("NVRTC failed: nvrtcCreateProgram: {}", error_text_(r));
  const auto destroy = [this](NvrtcProgram p) { destroy_(&p); };
  const std::unique_ptr<NvrtcProgramObject, decltype(destroy)> program(made, destroy);
  const std::string target = "--gpu-architecture=" + architecture;
  // Kernels say themselves what is fused.
  std::vector<const char*> options = {target.c_str(), "--fmad=false", "--std=c++17",
                                      "--ptxas-options=--verbose"};
  options.insert(options.end(), more.begin(), more.end());
  const NvrtcResult r = compile_(made, static_cast<int>(options.size()), options.data());
  const auto text = [&](auto size, auto get) {
    size_t bytes = 0;
    std::string out;
    if (size(made, &bytes) != 0) return out;
    out.resize(bytes);
    if (get(made, out.data()) != 0) out.clear();
    return out;
  };
  NvrtcOutput out;
  out.log = text(log_size_, log_);
  while (!out.log.empty() && out.log.back() == '\0') out.log.pop_back();
  if (r == kBuiltinsFailed)
    return Unavailable(
        "NVRTC {} cannot open its library libnvrtc-builtins, which must lie beside it", version());
  if (r != 0) return Internal("NVRTC {}: {}: {}", version(), error_text_(r), out.log);
  out.ptx = text(ptx_size_, ptx_);
  if (architecture.starts_with("sm_")) out.cubin = text(cubin_size_, cubin_);
  if (out.ptx.empty()) return Internal("NVRTC {} made no PTX", version());
  return out;
}

}  // namespace forge::cuda
