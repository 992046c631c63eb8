// SPDX-License-Identifier: Apache-2.0
// safetensors files.
#include "formats/arrays/safetensors.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forge::fuzz::TimeLimit limit;
  (void)forge::ParseSafetensors(forge::Bytes(std::vector<uint8_t>(data, data + size)),
                                "a.safetensors");
  return 0;
}
