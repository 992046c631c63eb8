// SPDX-License-Identifier: Apache-2.0
// A libnvtx3interop.so.1 that prints the ranges of each thread, indented by their depth.
#include <cstdio>

namespace {
thread_local int depth = 0;
}

extern "C" {

int nvtxRangePushA(const char* label) {
  std::fprintf(stderr, "emulated NVTX:%*s%s\n", 1 + 2 * depth, "", label);
  return depth++;
}

int nvtxRangePop() { return --depth; }
}
