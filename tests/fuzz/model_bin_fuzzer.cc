// SPDX-License-Identifier: Apache-2.0
// model.bin: reading, verifying, and all that comes before the first run.
#include <xxhash.h>

#include <algorithm>
#include <random>

#include "formats/model_bin/model_bin.h"
#include "formats/model_bin/model_bin_format.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/prepare.h"

namespace forge::fuzz {
namespace {

using formats::FileHeader;

constexpr size_t kHeader = sizeof(FileHeader);

// The checksum of the blob table, where the graph is sound enough to have one.
uint64_t WeightsId(std::span<const uint8_t> graph) {
  std::vector<uint64_t> aligned((graph.size() + 7) / 8);
  auto* bytes = reinterpret_cast<uint8_t*>(aligned.data());
  std::ranges::copy(graph, bytes);
  flatbuffers::Verifier verifier(bytes, graph.size());
  if (!fb::VerifyModelBuffer(verifier)) return XXH3_64bits(nullptr, 0);
  const auto* blobs = fb::GetModel(bytes)->blobs();
  const size_t size = blobs == nullptr ? 0 : blobs->size() * sizeof(fb::Blob);
  return XXH3_64bits(size == 0 ? nullptr : blobs->Data(), size);
}

// Makes sizes and checksums of the header true, so that what is behind them is reached.
size_t Repair(std::span<uint8_t> file, size_t graph_size) {
  FileHeader h{};
  std::memcpy(&h, file.data(), kHeader);
  std::ranges::copy(formats::kModelMagic, h.magic.begin());
  h.major = formats::kFormatMajor;
  h.flags = 0;
  h.graph_size = std::min(graph_size, file.size() - kHeader);
  const auto graph = file.subspan(kHeader, h.graph_size);
  h.graph_checksum = XXH3_64bits(graph.data(), graph.size());
  h.weights_offset = AlignUp(kHeader + h.graph_size, formats::kWeightAlignment);
  const size_t size = std::max<size_t>(file.size(), h.weights_offset);
  h.weights_size = size - h.weights_offset;
  h.weights_id = WeightsId(graph);
  h.header_checksum = XXH3_64bits(&h, offsetof(FileHeader, header_checksum));
  std::memcpy(file.data(), &h, kHeader);
  return size;
}

// Changes a few neighbouring numbers: what follows in the graph stays where offsets point.
void ChangeInPlace(std::span<uint8_t> graph, std::minstd_rand& random) {
  const size_t width = size_t{1} << random() % 4;
  if (graph.size() < width) return;
  const size_t at = random() % (graph.size() / width) * width;
  const auto window = graph.subspan(at, width);
  switch (random() % 4) {
    case 0:
      LLVMFuzzerMutate(window.data(), width, width);
      return;
    case 1: {  // a number from elsewhere
      const size_t from = random() % (graph.size() / width) * width;
      std::memmove(window.data(), graph.data() + from, width);
      return;
    }
    case 2: {  // a little more or less
      window[0] = static_cast<uint8_t>(window[0] + static_cast<int>(random() % 9) - 4);
      return;
    }
    default: {
      constexpr int64_t kEdges[] = {0, 1, 2, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 4096};
      const int64_t edge = kEdges[random() % std::size(kEdges)];
      std::memcpy(window.data(), &edge, width);
    }
  }
}

}  // namespace
}  // namespace forge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forge::fuzz::TimeLimit limit;
  const forge::Bytes file(std::vector<uint8_t>(data, data + size));
  auto module = forge::ReadModel(file, "model.bin", {.verify_weights = true});
  if (!module.ok()) module = forge::ReadModel(file, "model.bin");
  if (module.ok()) forge::fuzz::Prepare(*std::move(module));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace forge::fuzz;
  std::minstd_rand random(seed + 1);
  if (size < kHeader || max_size < kHeader + 64 || random() % 16 == 0)
    return LLVMFuzzerMutate(data, size, max_size);
  FileHeader h{};
  std::memcpy(&h, data, kHeader);
  size_t graph = std::min<uint64_t>(h.graph_size, size - kHeader);
  if (random() % 8 == 0) {
    size = kHeader + LLVMFuzzerMutate(data + kHeader, size - kHeader, max_size - kHeader);
    graph = std::min(graph, size - kHeader);
  } else {
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      ChangeInPlace({data + kHeader, random() % 16 == 0 ? size - kHeader : graph}, random);
  }
  // The gap before the weights may make the file longer.
  const size_t room = std::min(max_size, size + forge::formats::kWeightAlignment);
  std::fill(data + size, data + room, 0);
  const size_t end = Repair({data, size}, graph);
  return end <= max_size ? end : size;
}
