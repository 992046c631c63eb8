// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/cuda/client.h"

namespace forge::emulated {
namespace {

using Environment = std::map<std::string, std::string>;

// y = a + b of n elements, through streams of the client.
struct Addition {
  explicit Addition(const Client& c, int elements = 1000)
      : client(c), n(elements), a(n), b(n), y(n) {
    std::iota(a.begin(), a.end(), 1.0f);
    std::iota(b.begin(), b.end(), 100.0f);
    for (CUdeviceptr* p : {&da, &db, &dy})
      EXPECT_EQ(client.Call("cuMemAlloc_v2", p, n * sizeof(float)), CUDA_SUCCESS);
    function = client.Kernel("vector_add");
  }
  CUresult Launch(CUstream stream, int count) {
    void* arguments[] = {&da, &db, &dy, &count};
    return client.Call("cuLaunchKernel", function, static_cast<unsigned>((count + 127) / 128), 1u,
                       1u, 128u, 1u, 1u, 0u, stream, static_cast<void**>(arguments),
                       static_cast<void**>(nullptr));
  }
  CUresult Upload(CUstream stream) {
    client.Call("cuMemcpyHtoDAsync_v2", da, static_cast<const void*>(a.data()), n * sizeof(float),
                stream);
    return client.Call("cuMemcpyHtoDAsync_v2", db, static_cast<const void*>(b.data()),
                       n * sizeof(float), stream);
  }
  CUresult Download() {
    return client.Call("cuMemcpyDtoH_v2", static_cast<void*>(y.data()), dy, n * sizeof(float));
  }
  bool Right() const {
    for (size_t i = 0; i < n; ++i)
      if (y[i] != a[i] + b[i]) return false;
    return true;
  }
  const Client& client;
  size_t n;
  std::vector<float> a, b, y;
  CUdeviceptr da = 0, db = 0, dy = 0;
  CUfunction function = nullptr;
};

CUstream NewStream(const Client& client) {
  CUstream stream = nullptr;
  EXPECT_EQ(client.Call("cuStreamCreate", &stream, 1u), CUDA_SUCCESS);
  return stream;
}

TEST(EmulatedDriverTest, SaysThatItIsEmulated) {
  const Client client(Environment{{"FORGE_EMULATED_CUDA_CAPABILITY", "9.0"}});
  char name[128];
  int major = 0, minor = 0;
  EXPECT_EQ(client.Call("cuDeviceGetName", static_cast<char*>(name), 128, 0), CUDA_SUCCESS);
  EXPECT_STREQ(name, "emulated CUDA device (compute capability 9.0)");
  client.Call("cuDeviceGetAttribute", &major, 75, 0);
  client.Call("cuDeviceGetAttribute", &minor, 76, 0);
  EXPECT_EQ(major * 10 + minor, 90);
}

TEST(EmulatedDriverTest, RunsAKernelInAStream) {
  const Client client;
  client.MakeCurrent();
  Addition addition(client);
  const CUstream stream = NewStream(client);
  EXPECT_EQ(addition.Upload(stream), CUDA_SUCCESS);
  EXPECT_EQ(addition.Launch(stream, 1000), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuStreamSynchronize", stream), CUDA_SUCCESS);
  EXPECT_EQ(addition.Download(), CUDA_SUCCESS);
  EXPECT_TRUE(addition.Right());
}

// Two streams, the second of which needs the first one's uploads.
bool RightInTwoStreams(uint64_t seed, bool event_waited_for) {
  const Client client(Environment{{"FORGE_EMULATED_CUDA_SEED", std::to_string(seed)}});
  client.MakeCurrent();
  Addition addition(client);
  const CUstream first = NewStream(client), second = NewStream(client);
  CUevent event = nullptr;
  client.Call("cuEventCreate", &event, 2u);
  addition.Upload(first);
  client.Call("cuEventRecord", event, first);
  if (event_waited_for) client.Call("cuStreamWaitEvent", second, event, 0u);
  addition.Launch(second, 1000);
  client.Call("cuStreamSynchronize", second);
  addition.Download();
  return addition.Right();
}

TEST(EmulatedDriverTest, AMissingWaitShowsUnderSomeSeed) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_TRUE(RightInTwoStreams(seed, true)) << seed;
    wrong += RightInTwoStreams(seed, false) ? 0 : 1;
  }
  EXPECT_GT(wrong, 0);
}

TEST(EmulatedDriverTest, AnAccessOutOfBoundsEndsTheContext) {
  const Client client;
  client.MakeCurrent();
  Addition addition(client);
  addition.Upload(nullptr);
  ::testing::internal::CaptureStderr();  // the kernel runs on a thread of its own
  EXPECT_EQ(addition.Launch(nullptr, 1001), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuCtxSynchronize"), CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("kernel vector_add, block (7, 0, 0), thread (104, 0, 0), line"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("0 bytes behind the allocation of 4000 bytes"), std::string::npos) << text;
  EXPECT_EQ(addition.Launch(nullptr, 1000), CUDA_ERROR_ILLEGAL_ADDRESS);
  // Released and retained again, the device works.
  EXPECT_EQ(client.Call("cuDevicePrimaryCtxRelease_v2", 0), CUDA_SUCCESS);
  client.MakeCurrent();
  EXPECT_EQ(addition.Upload(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(addition.Launch(nullptr, 1000), CUDA_SUCCESS);
  EXPECT_EQ(addition.Download(), CUDA_SUCCESS);
  EXPECT_TRUE(addition.Right());
}

TEST(EmulatedDriverTest, FailsTheCallThatTheEnvironmentNames) {
  const Client client(
      Environment{{"FORGE_EMULATED_CUDA_FAIL", "cuMemAlloc_v2:2,cuStreamCreate:1=700"}});
  client.MakeCurrent();
  CUdeviceptr p = 0;
  CUstream stream = nullptr;
  EXPECT_EQ(client.Call("cuMemAlloc_v2", &p, size_t{16}), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuMemAlloc_v2", &p, size_t{16}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client.Call("cuMemAlloc_v2", &p, size_t{16}), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuStreamCreate", &stream, 0u), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(client.Call("cuStreamCreate", &stream, 0u), CUDA_SUCCESS);
}

TEST(EmulatedDriverTest, RefusesMachineCodeAndNewerPtx) {
  const Client client;
  client.MakeCurrent();
  CUmodule module = nullptr;
  const char elf[] =
      "\x7f"
      "ELF and more";
  EXPECT_EQ(client.Call("cuModuleLoadData", &module, static_cast<const void*>(elf)),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  const char newer[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
  EXPECT_EQ(client.Call("cuModuleLoadData", &module, static_cast<const void*>(newer)),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  const char wrong[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry f() { frob.u32; }";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(client.Call("cuModuleLoadData", &module, static_cast<const void*>(wrong)),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("line 4"), std::string::npos);
}

TEST(EmulatedDriverTest, ReplaysACapturedGraphWithNewParameters) {
  const Client client;
  client.MakeCurrent();
  Addition addition(client);
  addition.Upload(nullptr);
  client.Call("cuCtxSynchronize");
  const CUstream stream = NewStream(client);
  EXPECT_EQ(client.Call("cuStreamBeginCapture_v2", stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(addition.Launch(stream, 10), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  size_t count = 1;
  EXPECT_EQ(client.Call("cuStreamEndCapture", stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuGraphInstantiateWithFlags", &exec, graph, 0ull), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuGraphGetNodes", graph, &node, &count), CUDA_SUCCESS);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(client.Call("cuGraphLaunch", exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuStreamSynchronize", stream), CUDA_SUCCESS);
  addition.Download();
  EXPECT_EQ(addition.y[9], addition.a[9] + addition.b[9]);
  EXPECT_FALSE(addition.Right());
  CUDA_KERNEL_NODE_PARAMS params{};
  EXPECT_EQ(client.Call("cuGraphKernelNodeGetParams_v2", node, &params), CUDA_SUCCESS);
  int all = 1000;
  void* arguments[] = {params.params[0], params.params[1], params.params[2], &all};
  params.params = arguments;
  params.grid_x = 8;
  EXPECT_EQ(client.Call("cuGraphExecKernelNodeSetParams_v2", exec, node,
                        static_cast<const CUDA_KERNEL_NODE_PARAMS*>(&params)),
            CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuGraphLaunch", exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuStreamSynchronize", stream), CUDA_SUCCESS);
  addition.Download();
  EXPECT_TRUE(addition.Right());
}

TEST(EmulatedDriverTest, QueriesAreNotReadyUntilTheWorkIsDone) {
  const Client client;
  client.MakeCurrent();
  Addition addition(client);
  const CUstream stream = NewStream(client);
  CUevent event = nullptr;
  client.Call("cuEventCreate", &event, 0u);
  addition.Upload(stream);
  addition.Launch(stream, 1000);
  client.Call("cuEventRecord", event, stream);
  while (client.Call("cuEventQuery", event) == CUDA_ERROR_NOT_READY) continue;
  EXPECT_EQ(client.Call("cuEventQuery", event), CUDA_SUCCESS);
  addition.Download();
  EXPECT_TRUE(addition.Right());
}

TEST(EmulatedDriverTest, WhatFreesMemoryWaitsAndBadHandlesAreErrors) {
  const Client client;
  client.MakeCurrent();
  Addition addition(client);
  addition.Upload(nullptr);
  addition.Launch(nullptr, 1000);
  EXPECT_EQ(client.Call("cuMemFree_v2", addition.da), CUDA_SUCCESS);
  EXPECT_EQ(client.Call("cuMemFree_v2", addition.da), CUDA_ERROR_INVALID_VALUE);
  addition.Download();
  EXPECT_TRUE(addition.Right());
  EXPECT_EQ(client.Call("cuStreamSynchronize", reinterpret_cast<CUstream>(&addition)),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST(EmulatedDriverTest, FindsFunctionsByName) {
  const Client client;
  void* function = nullptr;
  int status = -1;
  EXPECT_EQ(
      client.Call("cuGetProcAddress_v2", "cuMemAlloc", &function, 12000, uint64_t{0}, &status),
      CUDA_SUCCESS);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(
      client.Call("cuGetProcAddress_v2", "cuNoSuchThing", &function, 12000, uint64_t{0}, &status),
      CUDA_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace forge::emulated
