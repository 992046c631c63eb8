// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcublasLt.so.13 over the emulated driver: checks descriptors and addresses as
// strictly as the library, and computes products in f64, in the order of the stream. It writes to
// all of the workspace, so that whoever shares it with something else sees that.
// Source: cuBLAS documentation, version 13, "Using the cuBLASLt API".
#include <dlfcn.h>

#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/dtype.h"
#include "tests/cuda/driver/handles.h"
#include "tests/cuda/driver/types.h"

#define LT_API extern "C" __attribute__((visibility("default"))) Status

namespace {

using Status = int;
enum : Status {
  kOk = 0,
  kNotInitialised = 1,
  kInvalidValue = 7,
  kInternal = 14,
  kNotSupported = 15
};
enum : int { kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14 };
enum : int { kComputeF32 = 68, kComputeF64 = 70, kComputeTf32 = 77 };
enum : int { kDefault = 1, kRelu = 2, kBias = 4 };

constexpr uint64_t kSignature = 0x666f726765ull;
constexpr int64_t kDeep = 64;  // products from here on need a workspace
constexpr size_t kWorkspaceBytes = 4096, kWorkspaceAlignment = 256, kAlignment = 16;

struct Product {
  int compute = 0, scale = 0, transpose_a = 0, transpose_b = 0, epilogue = kDefault;
  CUdeviceptr bias = 0;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, stride = 0;
  int32_t batch = 1;
};
struct Preference {
  uint64_t workspace = 0;
};
struct Algorithm {
  uint64_t signature, m, n, k, workspace, rest[3];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

size_t BytesOf(int type) { return type == kF64 ? 8 : type == kF32 ? 4 : 2; }
bool IsType(int type) { return type == kF32 || type == kF64 || type == kF16 || type == kBf16; }

double Get(const uint8_t* p, int type, int64_t i) {
  const auto as = [&]<class T>(T v) {
    std::memcpy(&v, p + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return v;
  };
  if (type == kF64) return as(double{});
  if (type == kF32) return as(float{});
  return type == kF16 ? forge::F16ToF32(as(uint16_t{})) : forge::BF16ToF32(as(uint16_t{}));
}

void Put(uint8_t* p, int type, int64_t i, double v) {
  const auto as = [&](auto x) {
    std::memcpy(p + i * static_cast<int64_t>(sizeof(x)), &x, sizeof(x));
  };
  if (type == kF64) return as(v);
  if (type == kF32) return as(static_cast<float>(v));
  as(type == kF16 ? forge::F32ToF16(static_cast<float>(v))
                  : forge::F32ToBF16(static_cast<float>(v)));
}

// To the 10 bits of mantissa that tf32 has, halves away from zero.
double RoundedToTf32(double v) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  const bool finite = (bits >> 23 & 0xff) != 0xff;
  return std::bit_cast<float>(finite ? (bits + 0x1000) & ~0x1fffu : bits);
}

// One product in the order of its stream.
struct Job {
  Product product;
  Layout a, b, d;
  int64_t k = 0;
  const uint8_t *at_a = nullptr, *at_b = nullptr, *bias = nullptr;
  uint8_t *at_d = nullptr, *workspace = nullptr;
  size_t workspace_bytes = 0;

  void Run() const {
    if (workspace != nullptr) std::memset(workspace, 0xff, workspace_bytes);
    for (int32_t n = 0; n < d.batch; ++n)
      for (uint64_t row = 0; row < d.rows; ++row)
        for (uint64_t column = 0; column < d.columns; ++column) Element(n, row, column);
  }

 private:
  static int64_t At(const Layout& l, int32_t n, int64_t row, int64_t column) {
    return n * l.stride + column * l.leading + row;
  }
  double Factor(const uint8_t* p, int type, int64_t i) const {
    const double v = Get(p, type, i);
    return product.compute == kComputeTf32 ? RoundedToTf32(v) : v;
  }
  void Element(int32_t n, uint64_t row, uint64_t column) const {
    const auto i = static_cast<int64_t>(row), j = static_cast<int64_t>(column);
    double sum = 0;
    for (int64_t l = 0; l < k; ++l)
      sum += Factor(at_a, a.type, product.transpose_a ? At(a, n, l, i) : At(a, n, i, l)) *
             Factor(at_b, b.type, product.transpose_b ? At(b, n, j, l) : At(b, n, l, j));
    if (bias != nullptr) sum += Get(bias, d.type, i);
    if ((product.epilogue & kRelu) != 0) sum = sum > 0 ? sum : 0;
    Put(at_d, d.type, At(d, n, i, j), sum);
  }
};

struct Handle {
  std::mutex mutex;
  std::vector<std::unique_ptr<Job>> jobs;  // graphs may run them again
};

forge::emulated::Handles<Product>& Products() {
  static forge::emulated::Handles<Product> all;
  return all;
}
forge::emulated::Handles<Layout>& Layouts() {
  static forge::emulated::Handles<Layout> all;
  return all;
}
forge::emulated::Handles<Preference>& Preferences() {
  static forge::emulated::Handles<Preference> all;
  return all;
}

template <class T>
Status Destroy(forge::emulated::Handles<T>& all, T* object) {
  return all.Remove(object) != nullptr ? kOk : kInvalidValue;
}

// Sets a member of the size that the attribute has.
template <class T>
Status Set(T& member, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(&member, value, sizeof(T));
  return kOk;
}

// The extents and types agree; tells the depth.
Status Check(const Product& p, const Layout& a, const Layout& b, const Layout& d, int64_t& k) {
  const auto rows = [](const Layout& l, int transposed) { return transposed ? l.columns : l.rows; };
  k = static_cast<int64_t>(rows(a, 1 - p.transpose_a));
  if (rows(a, p.transpose_a) != d.rows || rows(b, 1 - p.transpose_b) != d.columns ||
      rows(b, p.transpose_b) != static_cast<uint64_t>(k) || a.batch != d.batch ||
      b.batch != d.batch)
    return kInvalidValue;
  for (const Layout* l : {&a, &b, &d})
    if (l->leading < static_cast<int64_t>(l->rows) || l->rows == 0 || l->columns == 0)
      return kInvalidValue;
  const bool wide = p.compute == kComputeF64;
  if (a.type != d.type || b.type != d.type || wide != (d.type == kF64)) return kNotSupported;
  if (p.compute == kComputeTf32 && d.type != kF32) return kNotSupported;
  const int known = kDefault | kRelu | kBias;
  return (p.epilogue & ~known) == 0 && p.epilogue != 0 ? kOk : kNotSupported;
}

void* DriverSymbol(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : dlsym(driver, name);
}

// The host memory of as many elements as a layout spans.
uint8_t* Locate(CUdeviceptr address, uint64_t elements, int type, size_t alignment) {
  const auto locate = reinterpret_cast<CUresult (*)(CUdeviceptr, size_t, void**)>(
      DriverSymbol("cuEmulatedHostAddress"));
  void* host = nullptr;
  if (address % alignment != 0 || locate(address, elements * BytesOf(type), &host) != CUDA_SUCCESS)
    return nullptr;
  return static_cast<uint8_t*>(host);
}
uint64_t SpanOf(const Layout& l) {
  return static_cast<uint64_t>(l.stride) * static_cast<uint64_t>(l.batch - 1) +
         static_cast<uint64_t>(l.leading) * (l.columns - 1) + l.rows;
}

}  // namespace

LT_API cublasLtCreate(Handle** handle) {
  if (handle == nullptr) return kInvalidValue;
  if (DriverSymbol("cuEmulatedHostAddress") == nullptr) return kNotInitialised;
  *handle = new Handle;
  return kOk;
}

LT_API cublasLtDestroy(Handle* handle) {
  delete handle;
  return kOk;
}

LT_API cublasLtMatmulDescCreate(Product** product, int compute, int scale) {
  if (product == nullptr) return kInvalidValue;
  const bool narrow = compute == kComputeF32 || compute == kComputeTf32;
  if (!(narrow && scale == kF32) && !(compute == kComputeF64 && scale == kF64))
    return kNotSupported;
  *product = Products().Add(std::make_unique<Product>(Product{.compute = compute, .scale = scale}));
  return kOk;
}

LT_API cublasLtMatmulDescDestroy(Product* product) { return Destroy(Products(), product); }

LT_API cublasLtMatmulDescSetAttribute(Product* p, int attribute, const void* value, size_t bytes) {
  if (!Products().Has(p)) return kInvalidValue;
  if (attribute == 3) return Set(p->transpose_a, value, bytes);
  if (attribute == 4) return Set(p->transpose_b, value, bytes);
  if (attribute == 7) return Set(p->epilogue, value, bytes);
  return attribute == 8 ? Set(p->bias, value, bytes) : kNotSupported;
}

LT_API cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns,
                                  int64_t leading) {
  if (layout == nullptr || !IsType(type)) return kInvalidValue;
  *layout = Layouts().Add(std::make_unique<Layout>(Layout{type, rows, columns, leading}));
  return kOk;
}

LT_API cublasLtMatrixLayoutDestroy(Layout* layout) { return Destroy(Layouts(), layout); }

LT_API cublasLtMatrixLayoutSetAttribute(Layout* l, int attribute, const void* value, size_t bytes) {
  if (!Layouts().Has(l)) return kInvalidValue;
  if (attribute == 5) return Set(l->batch, value, bytes);
  return attribute == 6 ? Set(l->stride, value, bytes) : kNotSupported;
}

LT_API cublasLtMatmulPreferenceCreate(Preference** preference) {
  if (preference == nullptr) return kInvalidValue;
  *preference = Preferences().Add(std::make_unique<Preference>());
  return kOk;
}

LT_API cublasLtMatmulPreferenceDestroy(Preference* p) { return Destroy(Preferences(), p); }

LT_API cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute, const void* value,
                                            size_t bytes) {
  if (!Preferences().Has(p)) return kInvalidValue;
  return attribute == 1 ? Set(p->workspace, value, bytes) : kNotSupported;
}

// NOLINTNEXTLINE(readability-function-size): the library's signature
LT_API cublasLtMatmulAlgoGetHeuristic(Handle* handle, Product* product, Layout* a, Layout* b,
                                      Layout* c, Layout* d, Preference* preference, int wanted,
                                      Heuristic* results, int* found) {
  if (handle == nullptr || !Products().Has(product) || !Preferences().Has(preference) ||
      wanted < 1 || results == nullptr || found == nullptr)
    return kInvalidValue;
  for (Layout* l : {a, b, c, d})
    if (!Layouts().Has(l)) return kInvalidValue;
  int64_t k = 0;
  if (const Status s = Check(*product, *a, *b, *d, k); s != kOk) return s;
  const size_t workspace = k >= kDeep ? kWorkspaceBytes : 0;
  if (workspace > preference->workspace) return kNotSupported;
  *results = {
      .algorithm = {kSignature, d->rows, d->columns, static_cast<uint64_t>(k), workspace, {}},
      .workspace_bytes = workspace,
      .state = kOk,
      .waves = 1,
      .reserved = {}};
  *found = 1;
  return kOk;
}

// NOLINTNEXTLINE(readability-function-size): the library's signature
LT_API cublasLtMatmul(Handle* handle, Product* product, const void* alpha, CUdeviceptr a,
                      Layout* a_layout, CUdeviceptr b, Layout* b_layout, const void* beta,
                      CUdeviceptr c, Layout* c_layout, CUdeviceptr d, Layout* d_layout,
                      const Algorithm* algorithm, CUdeviceptr workspace, size_t workspace_bytes,
                      CUstream stream) {
  if (handle == nullptr || !Products().Has(product) || algorithm == nullptr || c != d ||
      c_layout != d_layout)
    return kInvalidValue;
  for (Layout* l : {a_layout, b_layout, d_layout})
    if (!Layouts().Has(l)) return kInvalidValue;
  auto job = std::make_unique<Job>();
  *job = {.product = *product, .a = *a_layout, .b = *b_layout, .d = *d_layout};
  if (const Status s = Check(*product, job->a, job->b, job->d, job->k); s != kOk) return s;
  const int type = job->d.type;
  if (Get(static_cast<const uint8_t*>(alpha), product->scale, 0) != 1 ||
      Get(static_cast<const uint8_t*>(beta), product->scale, 0) != 0)
    return kNotSupported;
  if (algorithm->signature != kSignature || algorithm->m != job->d.rows ||
      algorithm->n != job->d.columns || algorithm->k != static_cast<uint64_t>(job->k) ||
      algorithm->workspace > workspace_bytes)
    return kInvalidValue;
  job->at_a = Locate(a, SpanOf(job->a), type, kAlignment);
  job->at_b = Locate(b, SpanOf(job->b), type, kAlignment);
  job->at_d = Locate(d, SpanOf(job->d), type, kAlignment);
  job->workspace_bytes = algorithm->workspace;
  if (algorithm->workspace > 0)
    job->workspace =
        Locate(workspace, algorithm->workspace / BytesOf(type), type, kWorkspaceAlignment);
  if ((product->epilogue & kBias) != 0)
    job->bias = Locate(product->bias, job->d.rows, type, kAlignment);
  if (job->at_a == nullptr || job->at_b == nullptr || job->at_d == nullptr ||
      (algorithm->workspace > 0) != (job->workspace != nullptr) ||
      ((product->epilogue & kBias) != 0) != (job->bias != nullptr))
    return kInvalidValue;
  const auto launch =
      reinterpret_cast<CUresult (*)(CUstream, CUhostFn, void*)>(DriverSymbol("cuLaunchHostFunc"));
  const auto run = [](void* data) { static_cast<const Job*>(data)->Run(); };
  const std::lock_guard lock(handle->mutex);
  handle->jobs.push_back(std::move(job));
  return launch(stream, run, handle->jobs.back().get()) == CUDA_SUCCESS ? kOk : kInternal;
}

extern "C" __attribute__((visibility("default"))) const char* cublasLtGetStatusName(Status status) {
  switch (status) {
    case kOk:
      return "CUBLAS_STATUS_SUCCESS";
    case kNotInitialised:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
