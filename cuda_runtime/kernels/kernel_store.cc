// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/kernels/kernel_store.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"

namespace forge::cuda {
namespace {

constexpr std::string_view kFormat = "forge cuda kernel 2";
constexpr std::string_view kSpilled = "spilled bytes", kShared = "shared bytes";

// By default the compiler spills a little where another block then fits a multiprocessor.
constexpr const char* kMoreRegisters[] = {"--ptxas-options=--register-usage-level=10"};

// The number before `word` in a line, as in "Used 32 registers, 48 bytes smem".
std::optional<double> NumberBefore(std::string_view line, std::string_view word) {
  const size_t at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  double value = 0;
  if (!absl::SimpleAtod(std::string(line.substr(begin, at - begin)), &value)) return std::nullopt;
  return value;
}

// Architectures from Hopper on have instructions that only code for one of them may use.
std::string Architecture(int capability) {
  return fmt::format("sm_{}{}", capability, capability >= 90 && capability < 120 ? "a" : "");
}

std::string ArchitectureFor(const Nvrtc& nvrtc, int capability) {
  const int newest = nvrtc.NewestUpTo(capability);
  if (newest == 0) return {};
  return newest == capability ? Architecture(capability) : fmt::format("compute_{}", newest);
}

std::filesystem::path FolderOf(const std::string& architecture) {
  const std::filesystem::path folder = CacheFolder();
  return folder.empty() ? folder : folder / "cuda" / architecture;
}

double SpilledBytes(std::string_view log) {
  for (const KernelStatistic& s : StatisticsIn(log, ""))
    if (s.name == kSpilled) return s.value;
  return 0;
}

// The printed text also depends on what is known of grid and scalars.
uint64_t KeyOf(const codegen::Kernel& kernel) {
  uint64_t key = codegen::Hash(kernel);
  for (const ir::Dim& d : kernel.grid) key = HashMix(key, static_cast<uint64_t>(d.max()));
  for (const ir::Dim& d : kernel.scalars) {
    key = HashMix(key, static_cast<uint64_t>(d.min()));
    key = HashMix(key, static_cast<uint64_t>(d.max()));
  }
  return key;
}

bool Refuses(CuResult r) {
  return r == kCuInvalidImage || r == kCuNoBinaryForGpu || r == kCuNotSupported ||
         r == kCuInvalidSource || r == kCuInvalidPtx;
}

}  // namespace

bool HasCompiledKernels(int capability) {
  std::error_code error;
  const std::filesystem::path folder = FolderOf(Architecture(capability));
  return !folder.empty() && std::filesystem::exists(folder, error);
}

std::vector<KernelStatistic> StatisticsIn(std::string_view log, const std::string& kernel) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {" registers", "registers"},
      {" bytes spill stores", kSpilled},
      {" bytes smem", kShared},
      {" bytes stack frame", "stack bytes"}};
  const std::vector<std::string> lines = absl::StrSplit(std::string(log), '\n');
  std::vector<KernelStatistic> all;
  for (const auto& [word, name] : kWords) {
    double value = 0;
    for (const std::string& line : lines)
      value = std::max(value, NumberBefore(line, word).value_or(0));
    all.push_back({kernel, std::string(name), value});
  }
  return all;
}

KernelStore::KernelStore(ContextRef context, absl::StatusOr<std::shared_ptr<const Nvrtc>> nvrtc,
                         bool use_files)
    : context_(std::move(context)), nvrtc_(std::move(nvrtc)), use_files_(use_files) {
  const int capability = context_->facts().capability;
  architecture_ = nvrtc_.ok() ? ArchitectureFor(**nvrtc_, capability) : Architecture(capability);
}

std::string KernelStore::Title() const {
  return fmt::format("{}, NVRTC {}, {}, {}", kFormat, (*nvrtc_)->version(), architecture_,
                     takes_cubin_ ? "cubin" : "ptx");
}

// Without NVRTC, kernels of any of its versions serve.
bool KernelStore::Takes(std::string_view title) const {
  if (nvrtc_.ok()) return title == Title();
  return title.starts_with(fmt::format("{}, NVRTC ", kFormat)) &&
         title.ends_with(fmt::format(", {}, cubin", architecture_));
}

std::filesystem::path KernelStore::FileOf(uint64_t key) const {
  const std::filesystem::path folder = FolderOf(architecture_);
  if (!use_files_ || folder.empty()) return {};
  return folder / fmt::format("{:016x}.kernel", key);
}

absl::StatusOr<KernelImage> KernelStore::Compile(const codegen::CudaCode& code) {
  FORGE_ASSIGN_OR_RETURN(NvrtcOutput out, (*nvrtc_)->Compile(code.text, architecture_));
  ++compiled_;
  if (SpilledBytes(out.log) > 0) {
    FORGE_ASSIGN_OR_RETURN(NvrtcOutput again,
                           (*nvrtc_)->Compile(code.text, architecture_, kMoreRegisters));
    if (SpilledBytes(again.log) < SpilledBytes(out.log)) out = std::move(again);
  }
  const bool cubin = takes_cubin_ && !out.cubin.empty();
  return KernelImage{.entry = code.entry,
                     .image = cubin ? std::move(out.cubin) : std::move(out.ptx),
                     .log = std::move(out.log)};
}

absl::StatusOr<KernelImage> KernelStore::Image(const codegen::Kernel& kernel,
                                               std::string_view description) {
  if (architecture_.empty())
    return Unavailable("NVRTC {} compiles for no architecture as old as {}", (*nvrtc_)->version(),
                       context_->facts().capability);
  // Kernels of other nodes may be the same but for the description.
  const std::string bare = codegen::PrintCuda(kernel, caps(), "").text;
  const std::filesystem::path path = FileOf(XXH3_64bits(bare.data(), bare.size()));
  if (auto image = ReadKernelImage(path, [this](std::string_view t) { return Takes(t); })) {
    ++cached_;
    return *std::move(image);
  }
  if (!nvrtc_.ok()) return Annotate(nvrtc_.status(), "the kernel has not been compiled before");
  FORGE_ASSIGN_OR_RETURN(KernelImage image,
                         Compile(codegen::PrintCuda(kernel, caps(), description)));
  // A file that cannot be written costs later runs time and this one nothing.
  WriteKernelImage(path, Title(), image).IgnoreError();
  return image;
}

absl::StatusOr<OwnedModule> KernelStore::Load(const KernelImage& image) {
  CuModule module = nullptr;
  const Context::Current current(*context_);
  const CuResult r = context_->api().load_module(&module, image.image.c_str(), 0, nullptr, nullptr);
  if (r == kCuSuccess) return OwnedModule(context_, module);
  if (Refuses(r) && IsCubin(image)) return Unimplemented("the driver takes no machine code");
  if (r == kCuUnsupportedPtxVersion && nvrtc_.ok())
    return Unavailable("the NVIDIA driver is older than NVRTC {} and does not know its PTX",
                       (*nvrtc_)->version());
  return context_->Check(r, "cuModuleLoadDataEx");
}

absl::StatusOr<LoadedKernelRef> KernelStore::Make(const codegen::Kernel& kernel,
                                                  std::string_view description) {
  FORGE_RETURN_IF_ERROR(codegen::Verify(kernel, caps()));
  auto loaded = std::make_shared<LoadedKernel>();
  loaded->kernel = std::make_shared<const codegen::Kernel>(kernel);
  loaded->operands = codegen::OperandsOf(kernel);
  loaded->shared_bytes = static_cast<uint32_t>(codegen::DynamicSharedBytes(kernel));
  FORGE_ASSIGN_OR_RETURN(KernelImage image, Image(kernel, description));
  loaded->statistics = StatisticsIn(image.log, kernel.name);
  for (KernelStatistic& s : loaded->statistics)
    if (s.name == kShared) s.value += loaded->shared_bytes;
  if (!context_->facts().has_driver) return loaded;
  absl::StatusOr<OwnedModule> module = Load(image);
  if (absl::IsUnimplemented(module.status())) {
    takes_cubin_ = false;
    FORGE_ASSIGN_OR_RETURN(image, Image(kernel, description));
    module = Load(image);
  }
  if (!module.ok()) return module.status();
  loaded->module = *std::move(module);
  const Context::Current current(*context_);
  FORGE_RETURN_IF_ERROR(context_->Check(
      context_->api().get_function(&loaded->function, loaded->module.get(), image.entry.c_str()),
      "cuModuleGetFunction"));
  if (loaded->shared_bytes > 0)
    FORGE_RETURN_IF_ERROR(context_->Check(
        context_->api().set_function_attribute(loaded->function, kMaxDynamicShared,
                                               static_cast<int>(loaded->shared_bytes)),
        "cuFuncSetAttribute"));
  return loaded;
}

absl::StatusOr<LoadedKernelRef> KernelStore::Get(const codegen::Kernel& kernel,
                                                 std::string_view description) {
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& entry = slots_[KeyOf(kernel)];
    if (!entry) entry = std::make_shared<Slot>();
    slot = entry;
  }
  std::call_once(slot->once, [&] {
    absl::StatusOr<LoadedKernelRef> made = Make(kernel, description);
    slot->status = Annotate(made.status(), kernel.name);
    if (made.ok()) slot->loaded = *std::move(made);
  });
  if (!slot->status.ok()) return slot->status;
  return slot->loaded;
}

}  // namespace forge::cuda
