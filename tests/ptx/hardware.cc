// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/hardware.h"

#include "absl/strings/str_replace.h"
#include "base/platform.h"

namespace forge::ptx {
namespace {

using Address = unsigned long long;

// The functions of libcuda that are needed, by name.
class Driver {
 public:
  static absl::StatusOr<Driver*> Get() {
    static const absl::StatusOr<std::unique_ptr<Driver>> driver = Open();
    if (!driver.ok()) return driver.status();
    return driver->get();
  }
  template <class... A>
  absl::Status Call(const char* name, A... a) const {
    const auto function = reinterpret_cast<int (*)(A...)>(library_->Symbol(name));
    if (function == nullptr) return Unavailable("the driver has no {}", name);
    const int result = function(a...);
    return result == 0 ? absl::OkStatus() : Unavailable("{} returned {}", name, result);
  }
  int capability() const { return capability_; }

 private:
  static absl::StatusOr<std::unique_ptr<Driver>> Open() {
    auto d = std::make_unique<Driver>();
    FORGE_ASSIGN_OR_RETURN(d->library_, SharedLibrary::Open("libcuda.so.1"));
    void* context = nullptr;
    int device = 0, major = 0, minor = 0;
    FORGE_RETURN_IF_ERROR(d->Call("cuInit", 0u));
    FORGE_RETURN_IF_ERROR(d->Call("cuDeviceGet", &device, 0));
    FORGE_RETURN_IF_ERROR(d->Call("cuDevicePrimaryCtxRetain", &context, device));
    FORGE_RETURN_IF_ERROR(d->Call("cuCtxSetCurrent", context));
    FORGE_RETURN_IF_ERROR(d->Call("cuDeviceGetAttribute", &major, 75, device));
    FORGE_RETURN_IF_ERROR(d->Call("cuDeviceGetAttribute", &minor, 76, device));
    d->capability_ = 10 * major + minor;
    return d;
  }
  std::shared_ptr<SharedLibrary> library_;
  int capability_ = 0;
};

}  // namespace

bool RunsOnHardware() { return Environment("FORGE_PTX_ON") == "hardware"; }

absl::Status RunOnHardware(const std::string& text, const std::string& kernel,
                           const RunOptions& options, std::vector<Argument> arguments) {
  FORGE_ASSIGN_OR_RETURN(const Driver* const driver, Driver::Get());
  // One-instruction kernels are written for the newest architecture.
  const std::string target =
      fmt::format(".target sm_{}{}", driver->capability(), driver->capability() >= 90 ? "a" : "");
  const std::string own = absl::StrReplaceAll(text, {{".target sm_100\n", target + "\n"}});
  void *module = nullptr, *function = nullptr;
  FORGE_RETURN_IF_ERROR(
      driver->Call("cuModuleLoadData", &module, static_cast<const void*>(own.c_str())));
  FORGE_RETURN_IF_ERROR(driver->Call("cuModuleGetFunction", &function, module, kernel.c_str()));
  std::vector<Address> buffers(arguments.size());
  std::vector<void*> pointers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Argument& a = arguments[i];
    if (a.scalar_bytes != 0) {
      pointers.push_back(a.scalar);
      continue;
    }
    FORGE_RETURN_IF_ERROR(
        driver->Call("cuMemAlloc_v2", &buffers[i], std::max<size_t>(a.buffer.size(), 1)));
    FORGE_RETURN_IF_ERROR(driver->Call("cuMemcpyHtoD_v2", buffers[i],
                                       static_cast<const void*>(a.buffer.data()), a.buffer.size()));
    pointers.push_back(&buffers[i]);
  }
  absl::Status status =
      driver->Call("cuLaunchKernel", function, options.grid.x, options.grid.y, options.grid.z,
                   options.threads.x, options.threads.y, options.threads.z, options.dynamic_shared,
                   static_cast<void*>(nullptr), pointers.data(), static_cast<void**>(nullptr));
  if (status.ok()) status = driver->Call("cuCtxSynchronize");
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (buffers[i] == 0) continue;
    const std::span<uint8_t> to = arguments[i].buffer;
    if (status.ok())
      status =
          driver->Call("cuMemcpyDtoH_v2", static_cast<void*>(to.data()), buffers[i], to.size());
    driver->Call("cuMemFree_v2", buffers[i]).IgnoreError();
  }
  driver->Call("cuModuleUnload", module).IgnoreError();
  return status;
}

}  // namespace forge::ptx
