// SPDX-License-Identifier: Apache-2.0
// A driver whose memory is the host's and whose stream is done at once. Kernels do nothing but are
// counted; results of single functions can be replaced.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "cuda_runtime/api/context.h"

namespace forge::cuda {

struct FakeDriver {
  // What functions return instead of success.
  CuResult allocate = kCuSuccess, allocate_host = kCuSuccess, launch = kCuSuccess,
           query_event = kCuSuccess, load_cubin = kCuSuccess, load_ptx = kCuSuccess,
           create_event = kCuSuccess;

  struct Launched {
    CuFunction function;
    std::array<unsigned, 3> grid, block;
    std::vector<uint64_t> arguments;  // as many as Launched::expected
  };
  std::vector<Launched> launches;
  size_t expected_arguments = 0;
  std::vector<std::string> images;  // given to the driver, in order
  std::set<void*> objects;          // that were made and not destroyed
};

// The one that the functions of FakeApi work on; anew for each test.
FakeDriver& TheFakeDriver();
std::shared_ptr<const DriverApi> FakeApi();

class FakeDriverTest : public testing::Test {
 protected:
  FakeDriverTest() { TheFakeDriver() = {}; }
  // Ends the process of the driver: what a lost context had goes with it.
  ~FakeDriverTest() override;
  FakeDriver& driver_ = TheFakeDriver();
};

}  // namespace forge::cuda
