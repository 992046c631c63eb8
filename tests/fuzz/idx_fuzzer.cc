// SPDX-License-Identifier: Apache-2.0
// IDX files, gzipped or not.
#include "formats/arrays/idx.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forge::fuzz::TimeLimit limit;
  (void)forge::ParseIdx(forge::Bytes(std::vector<uint8_t>(data, data + size)), "a.idx");
  return 0;
}
