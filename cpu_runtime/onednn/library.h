// SPDX-License-Identifier: Apache-2.0
// The border to oneDNN: its exceptions, engine, layouts and argument sets end here.
#pragma once
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>

#include "cpu_runtime/layout.h"

namespace forge::cpu {

const dnnl::engine& Engine();  // the CPU

// Runs f() and turns the library's exceptions into a status that begins with `what`.
template <class F>
absl::Status Guarded(std::string_view what, F f) {
  try {
    f();
  } catch (const dnnl::error& e) {
    return Unimplemented("oneDNN {}: {}", what, e.message);
  } catch (const std::exception& e) {
    return Internal("oneDNN {}: {}", what, e.what());
  }
  return absl::OkStatus();
}

// The library's name of an element type; undef where it has none that we use.
dnnl::memory::data_type LibraryType(DType t);
// Throws dnnl::error.
dnnl::memory::desc DescOf(const View& v);
// The same for a tensor with channels. Where both say the same it is written as channels last, for
// which the library has its best kernels: strides of axes of extent 1 mean nothing.
dnnl::memory::desc ImageDescOf(const View& v);

// The same tensor in whichever layout a primitive likes best.
dnnl::memory::desc AnyLayout(const dnnl::memory::desc& d);

// A primitive with its arguments' descriptors. Memory objects are made once for each thread that
// runs it at a time, and only their pointers change from run to run.
class PrimitiveCall {
 public:
  struct Argument {
    int index = 0;  // DNNL_ARG_...
    dnnl::memory::desc desc;
  };
  PrimitiveCall(dnnl::primitive primitive, std::vector<Argument> arguments)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)) {}
  // handles: one for each argument, in their order
  absl::Status Run(std::span<void* const> handles) const;

 private:
  struct ArgumentSet {
    dnnl::stream stream;
    std::vector<dnnl::memory> memory;
    std::vector<dnnl_exec_arg_t> list;
  };
  absl::StatusOr<std::unique_ptr<ArgumentSet>> Take() const;

  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ArgumentSet>> idle_;
};

// "dnnl:brgconv_1x1:avx512_core"
std::string KernelName(const char* implementation);

}  // namespace forge::cpu
