// SPDX-License-Identifier: Apache-2.0
// An emulated driver of its own for each test: a copy of libcuda.so.1, loaded under an environment.
#pragma once
#include <map>
#include <string>

#include "tests/cuda/driver/types.h"

namespace forge::emulated {

class Client {
 public:
  // Loads the driver and calls cuInit; `environment` holds for this driver alone.
  explicit Client(const std::map<std::string, std::string>& environment = {});
  // The function of that name, with the type of its parameters. Missing ones end the test program.
  template <class... A>
  CUresult Call(const char* name, A... a) const {
    return reinterpret_cast<CUresult (*)(A...)>(Symbol(name))(a...);
  }
  // Retains the context of device 0 and makes it current.
  void MakeCurrent() const;
  // Loads the PTX of tests/ptx/kernels and returns the kernel.
  CUfunction Kernel(const std::string& name, const std::string& arch = "80") const;

 private:
  void* Symbol(const char* name) const;
  void* library_ = nullptr;
};

}  // namespace forge::emulated
