// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/driver.h"

#include "cuda_runtime/api/settings.h"

namespace forge::cuda {
namespace {

// Names an architecture that a device without a driver compiles for.
constexpr const char* kCompileFor = "FORGE_CUDA_COMPILE_FOR";

// A library or an ability that a device works without.
Feature Optional(std::string name, const absl::Status& there) {
  return {.name = std::move(name), .present = there.ok(), .note = std::string(Message(there))};
}

Verdict UsableWith(const DeviceFacts& f, const absl::Status& nvrtc) {
  const Verdict usable = Usable(f);
  if (!usable || nvrtc.ok() || HasCompiledKernels(f.capability)) return usable;
  return Verdict::No(std::string(Message(nvrtc)));
}

DeviceInfo Describe(const DeviceFacts& f, size_t index, const absl::Status& nvrtc,
                    const absl::Status& cublaslt) {
  DeviceInfo info;
  info.id = fmt::format("cuda:{}", index);
  info.name = f.name;
  info.backend = "cuda";
  info.driver = f.has_driver ? fmt::format("NVIDIA, CUDA {}.{}", f.driver_version / 1000,
                                           f.driver_version % 1000 / 10)
                             : std::string(kCompileFor);
  info.is_cpu = !f.has_driver;  // "auto" prefers what can run
  info.api = fmt::format("compute capability {}.{}", f.capability / 10, f.capability % 10);
  info.memory_bytes = f.memory_bytes;
  const codegen::Caps caps = CapsOf(f);
  for (const Field& field : codegen::Caps::kFields)
    if (field.kind == FieldKind::kInt)
      info.limits.emplace_back(field.name,
                               std::to_string(*static_cast<const int64_t*>(field.at_const(&caps))));
  info.limits.emplace_back("multiprocessors", std::to_string(f.multiprocessors));
  info.limits.emplace_back("max_shared_bytes_optin", std::to_string(f.max_shared_bytes_optin));
  for (const codegen::MatrixShape& m : caps.matrices)
    info.features.push_back({.name = "matrix_" + m.ToText(), .present = true, .note = {}});
  for (const codegen::MatrixShape& m : caps.workgroup_matrices)
    info.features.push_back(
        {.name = "workgroup_matrix_" + m.ToText(), .present = true, .note = {}});
  info.features.push_back({.name = "async_copies", .present = caps.async_copies, .note = {}});
  info.features.push_back(Optional("cublaslt", cublaslt));
  info.features.push_back(Optional("nvrtc", nvrtc));
  info.usable = UsableWith(f, nvrtc);
  return info;
}

}  // namespace

absl::StatusOr<std::vector<DeviceFacts>> CudaDriver::AskDriver() {
  if (!api_) {
    absl::StatusOr<DriverApi> loaded = DriverApi::Load(library_);
    if (loaded.ok())
      api_ = std::make_shared<const DriverApi>(*std::move(loaded));
    else
      api_ = loaded.status();
  }
  if (!api_->ok()) return api_->status();
  const DriverApi& api = ***api_;
  int count = 0;
  FORGE_RETURN_IF_ERROR(api.Check(api.device_count(&count), "cuDeviceGetCount"));
  if (count <= 0) return Unavailable("the NVIDIA driver found no CUDA device");
  std::vector<DeviceFacts> all;
  for (int i = 0; i < count; ++i) {
    FORGE_ASSIGN_OR_RETURN(DeviceFacts facts, QueryFacts(api, i));
    all.push_back(std::move(facts));
  }
  return all;
}

absl::StatusOr<std::vector<DeviceFacts>> CudaDriver::Ask() {
  absl::StatusOr<std::vector<DeviceFacts>> all = AskDriver();
  if (const auto architecture = Environment(kCompileFor)) {
    FORGE_ASSIGN_OR_RETURN(DeviceFacts facts, FactsOfArchitecture(*architecture));
    if (!all.ok()) all.emplace();
    all->push_back(std::move(facts));
  }
  if (all.ok() && !nvrtc_) nvrtc_ = Nvrtc::Load();
  return all;
}

absl::StatusOr<CublasLtRef> CudaDriver::AskCublasLt(const DeviceFacts& facts) {
  FORGE_ASSIGN_OR_RETURN(const Settings settings, Settings::FromEnvironment());
  if (!settings.cublaslt) return Unavailable("hidden by FORGE_CUDA_DISABLE");
  if (!facts.has_driver) return Unavailable("the device only compiles");
  if (!cublaslt_) cublaslt_ = CublasLt::Load();
  return *cublaslt_;
}

absl::StatusOr<ProductLibraryRef> CudaDriver::MakeLibrary(const ContextRef& context) {
  FORGE_ASSIGN_OR_RETURN(const CublasLtRef api, AskCublasLt(context->facts()));
  return ProductLibrary::Create(context, api);
}

std::vector<DeviceInfo> CudaDriver::List() {
  const std::lock_guard lock(mutex_);
  const absl::StatusOr<std::vector<DeviceFacts>> all = Ask();
  std::vector<DeviceInfo> infos;
  if (all.ok()) {
    for (const DeviceFacts& f : *all)
      infos.push_back(Describe(f, infos.size(), nvrtc_->status(), AskCublasLt(f).status()));
    return infos;
  }
  DeviceInfo none;
  none.id = none.backend = "cuda";
  none.name = "no CUDA device";
  none.usable = Verdict::No(std::string(Message(all.status())));
  return {none};
}

absl::StatusOr<DeviceRef> CudaDriver::Open(size_t index, const DeviceOptions& options) {
  const std::lock_guard lock(mutex_);
  FORGE_ASSIGN_OR_RETURN(const std::vector<DeviceFacts> all, Ask());
  if (index >= all.size())
    return Unavailable("there is no CUDA device {}; {} found", index, all.size());
  const DeviceFacts& facts = all[index];
  FORGE_ASSIGN_OR_RETURN(const Settings settings, Settings::FromEnvironment());
  if (const Verdict v = UsableWith(facts, nvrtc_->status()); !v)
    return Unavailable("{} cannot be used: {}", facts.name, v.text());
  FORGE_ASSIGN_OR_RETURN(
      const ContextRef context,
      Context::Create(facts.has_driver ? **api_ : std::shared_ptr<const DriverApi>(), facts));
  absl::StatusOr<ProductLibraryRef> library = MakeLibrary(context);
  NvtxRef nvtx;
  if (settings.nvtx) {
    FORGE_ASSIGN_OR_RETURN(nvtx, Nvtx::Load());
  }
  DeviceParts parts{.context = context,
                    .info = Describe(facts, index, nvrtc_->status(), library.status()),
                    .nvrtc = *nvrtc_,
                    .library = library.ok() ? *std::move(library) : nullptr,
                    .graphs = settings.graphs,
                    .nvtx = std::move(nvtx)};
  FORGE_ASSIGN_OR_RETURN(std::shared_ptr<CudaDevice> device,
                         CudaDevice::Open(std::move(parts), options));
  return DeviceRef(std::move(device));
}

}  // namespace forge::cuda
