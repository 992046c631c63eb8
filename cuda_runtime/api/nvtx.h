// SPDX-License-Identifier: Apache-2.0
// NVTX, by which programs name what Nsight shows, opened by name at run time.
// Source: NVTX C API, version 3.
#pragma once
#include <memory>
#include <string>

#include "base/platform.h"
#include "base/status.h"

namespace forge::cuda {

// The functions of the library. May be called from any thread.
class Nvtx {
 public:
  // Opens the library where Nvrtc::Load looks for its own.
  //   errors: Unavailable
  static absl::StatusOr<std::shared_ptr<const Nvtx>> Load();
  Nvtx(const Nvtx&) = delete;

  // A range of this thread, for the life of the object.
  class Range {
   public:
    // nvtx: null: no range
    Range(const Nvtx* nvtx, const std::string& label) : nvtx_(nvtx) {
      if (nvtx_ != nullptr) nvtx_->push_(label.c_str());
    }
    ~Range() {
      if (nvtx_ != nullptr) nvtx_->pop_();
    }
    Range(const Range&) = delete;

   private:
    const Nvtx* nvtx_;
  };

 private:
  Nvtx() = default;
  int (*push_)(const char* label) = nullptr;
  int (*pop_)() = nullptr;
  std::shared_ptr<SharedLibrary> library_;
};
using NvtxRef = std::shared_ptr<const Nvtx>;

}  // namespace forge::cuda
