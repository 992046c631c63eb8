// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_runtime/fake_api.h"

#include <cstring>
#include <mutex>

namespace forge::cuda {
namespace {

constexpr std::align_val_t kAlignment{256};

// Threads compile at the same time.
std::mutex& Lock() {
  static std::mutex mutex;
  return mutex;
}

void* Make(size_t bytes) {
  const std::lock_guard lock(Lock());
  return *TheFakeDriver().objects.insert(::operator new(bytes, kAlignment)).first;
}
CuResult Drop(void* object) {
  const std::lock_guard lock(Lock());
  TheFakeDriver().objects.erase(object);
  ::operator delete(object, kAlignment);
  return kCuSuccess;
}
template <class Handle>
CuResult MakeHandle(Handle* out) {
  *out = reinterpret_cast<Handle>(Make(1));
  return kCuSuccess;
}

CuResult Load(CuModule* module, const void* image, unsigned, int*, void**) {
  FakeDriver& d = TheFakeDriver();
  const bool cubin = std::memcmp(image,
                                 "\x7f"
                                 "ELF",
                                 4) == 0;
  {
    const std::lock_guard lock(Lock());
    d.images.push_back(cubin ? "cubin" : "ptx");
  }
  const CuResult r = cubin ? d.load_cubin : d.load_ptx;
  return r == kCuSuccess ? MakeHandle(module) : r;
}

// NOLINTNEXTLINE(readability-function-size): the signature is the driver's
CuResult Launch(CuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned, CuStream, void** arguments, void**) {
  FakeDriver& d = TheFakeDriver();
  if (d.launch != kCuSuccess) return d.launch;
  FakeDriver::Launched l{f, {gx, gy, gz}, {bx, by, bz}, {}};
  for (size_t n = 0; n < d.expected_arguments; ++n)
    l.arguments.push_back(*static_cast<const uint64_t*>(arguments[n]));
  d.launches.push_back(std::move(l));
  return kCuSuccess;
}

CuResult Allocate(CuAddress* address, size_t bytes) {
  if (TheFakeDriver().allocate != kCuSuccess) return TheFakeDriver().allocate;
  *address = reinterpret_cast<CuAddress>(Make(bytes));
  return kCuSuccess;
}
CuResult AllocateHost(void** memory, size_t bytes, unsigned) {
  if (TheFakeDriver().allocate_host != kCuSuccess) return TheFakeDriver().allocate_host;
  CuAddress address = 0;
  const CuResult r = Allocate(&address, bytes);
  *memory = reinterpret_cast<void*>(address);
  return r;
}

DriverApi Table() {
  DriverApi api;
  api.error_name = [](CuResult, const char** name) {
    *name = "CUDA_ERROR_OF_THE_TEST";
    return kCuSuccess;
  };
  api.retain_context = [](CuContext* c, CuDevice) {
    static char context = 0;
    *c = reinterpret_cast<CuContext>(&context);
    return kCuSuccess;
  };
  api.release_context = [](CuDevice) { return kCuSuccess; };
  api.push_context = [](CuContext) { return kCuSuccess; };
  api.pop_context = [](CuContext*) { return kCuSuccess; };
  api.load_module = Load;
  api.unload_module = [](CuModule m) { return Drop(m); };
  api.get_function = [](CuFunction* f, CuModule m, const char*) {
    *f = reinterpret_cast<CuFunction>(m);
    return kCuSuccess;
  };
  api.set_function_attribute = [](CuFunction, int, int) { return kCuSuccess; };
  api.launch = Launch;
  api.allocate = Allocate;
  api.free = [](CuAddress address) { return Drop(reinterpret_cast<void*>(address)); };
  api.allocate_host = AllocateHost;
  api.free_host = [](void* p) { return Drop(p); };
  api.memory_info = [](size_t* available, size_t* total) {
    *available = 1000;
    *total = 2000;
    return kCuSuccess;
  };
  api.copy = [](CuAddress to, CuAddress from, size_t bytes, CuStream) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return kCuSuccess;
  };
  api.create_stream = [](CuStream* s, unsigned) { return MakeHandle(s); };
  api.destroy_stream = [](CuStream s) { return Drop(s); };
  api.synchronize_stream = [](CuStream) { return kCuSuccess; };
  api.create_event = [](CuEvent* e, unsigned) {
    return TheFakeDriver().create_event == kCuSuccess ? MakeHandle(e)
                                                      : TheFakeDriver().create_event;
  };
  api.destroy_event = [](CuEvent e) { return Drop(e); };
  api.record_event = [](CuEvent, CuStream) { return kCuSuccess; };
  api.query_event = [](CuEvent) { return TheFakeDriver().query_event; };
  api.synchronize_event = [](CuEvent) { return TheFakeDriver().query_event; };
  api.elapsed_milliseconds = [](float* t, CuEvent, CuEvent) {
    *t = 2.5F;
    return kCuSuccess;
  };
  return api;
}

}  // namespace

FakeDriverTest::~FakeDriverTest() {
  while (!driver_.objects.empty()) Drop(*driver_.objects.begin());
}

FakeDriver& TheFakeDriver() {
  static FakeDriver driver;
  return driver;
}

std::shared_ptr<const DriverApi> FakeApi() {
  static const auto api = std::make_shared<const DriverApi>(Table());
  return api;
}

}  // namespace forge::cuda
