// SPDX-License-Identifier: Apache-2.0
// .npy files and .npz archives.
#include "formats/arrays/npy.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forge::fuzz::TimeLimit limit;
  const forge::Bytes file(std::vector<uint8_t>(data, data + size));
  if (size >= 2 && data[0] == 'P' && data[1] == 'K')
    (void)forge::ParseNpz(file, "a.npz");
  else
    (void)forge::ParseNpy(file, "a.npy");
  return 0;
}
