// SPDX-License-Identifier: Apache-2.0
// The emulated driver of tests/cuda, and the stand-in for cuBLASLt over it, behind the plug-in's
// own interfaces. Neither needs NVRTC.
#pragma once
#include <gtest/gtest.h>

#include "cuda_runtime/products/product_library.h"
#include "tests/support/scoped_environment.h"

namespace forge::cuda {

class EmulatedTest : public testing::Test {
 protected:
  explicit EmulatedTest(const std::string& build) : folder_(build + "/emulated_cuda") {}
  void SetUp() override {
    auto loaded = DriverApi::Load(folder_ + "/libcuda.so.1");
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    api_ = *std::move(loaded);
    const auto facts = QueryFacts(api_, 0);
    ASSERT_TRUE(facts.ok()) << facts.status();
    Adapt(api_);
    auto context = Context::Create(std::make_shared<const DriverApi>(api_), *facts);
    ASSERT_TRUE(context.ok()) << context.status();
    context_ = *context;
    const ScopedEnvironment path("FORGE_CUDA_PATH", folder_);
    const auto cublaslt = CublasLt::Load();
    ASSERT_TRUE(cublaslt.ok()) << cublaslt.status();
    auto library = ProductLibrary::Create(context_, *cublaslt);
    ASSERT_TRUE(library.ok()) << library.status();
    library_ = *library;
  }
  // What a test changes of the driver's functions.
  virtual void Adapt(DriverApi& /*api*/) {}

  const std::string folder_;
  DriverApi api_;
  ContextRef context_;
  ProductLibraryRef library_;
};

}  // namespace forge::cuda
