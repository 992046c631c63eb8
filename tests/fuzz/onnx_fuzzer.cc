// SPDX-License-Identifier: Apache-2.0
// ONNX models: importing, and all that comes before the first run.
#include "formats/onnx/importer.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/onnx_mutator.h"
#include "tests/fuzz/prepare.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forge::fuzz::TimeLimit limit;
  const forge::Bytes file(std::vector<uint8_t>(data, data + size));
  auto module = forge::ImportOnnx(file, "m.onnx", /*folder=*/{});
  if (module.ok()) forge::fuzz::Prepare(*std::move(module));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 8 != 0) {
    if (const size_t made = forge::fuzz::MutateOnnx({data, max_size}, size, seed); made > 0)
      return made;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
