// SPDX-License-Identifier: Apache-2.0
// The interface to oneDNN. Its exceptions, engine, layouts and argument sets are not visible
// outside.
#pragma once
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>

#include "cpu_runtime/layout.h"

namespace forge::cpu {

const dnnl::engine& Engine();  // the engine of the CPU

// Runs f() and converts exceptions of oneDNN to a status.
//   what: the beginning of the message
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

// The element type in oneDNN; undef where it has none that Forge uses.
dnnl::memory::data_type LibraryType(DType t);
// The memory descriptor of a view. Throws dnnl::error.
dnnl::memory::desc DescOf(const View& v);
// The memory descriptor of a tensor with channels. A layout that is both dense and channels last,
// because strides of axes of extent 1 do not matter, is described as channels last, for which
// oneDNN has its fastest kernels.
dnnl::memory::desc ImageDescOf(const View& v);

// The descriptor with the layout left to the primitive.
dnnl::memory::desc AnyLayout(const dnnl::memory::desc& d);

// A primitive with the descriptors of its arguments. Memory objects are created once for each
// concurrent caller; each run sets only their pointers.
class PrimitiveCall {
 public:
  struct Argument {
    int index = 0;  // DNNL_ARG_...
    dnnl::memory::desc desc;
  };
  PrimitiveCall(dnnl::primitive primitive, std::vector<Argument> arguments)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)) {}
  // Runs the primitive. May be called from several threads.
  //   handles: one for each argument, in order
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

// The name of a kernel: "dnnl:brgconv_1x1:avx512_core".
std::string KernelName(const char* implementation);

}  // namespace forge::cpu
