// SPDX-License-Identifier: Apache-2.0
#include "formats/model_bin/model_bin.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/platform.h"
#include "formats/model_bin/model_bin_graph.h"
#include "formats/model_bin/model_bin_types.h"
#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

using namespace formats;  // NOLINT: the private half of this file

std::span<const uint8_t> BytesOfHeader(const FileHeader& h) {
  return {reinterpret_cast<const uint8_t*>(&h), sizeof(h)};
}

uint64_t ChecksumOfHeader(const FileHeader& h) {
  return XXH3_64bits(&h, offsetof(FileHeader, header_checksum));
}

FileHeader MakeHeader(std::string_view magic) {
  FileHeader h = {};
  std::ranges::copy(magic, h.magic.begin());
  h.major = kFormatMajor;
  h.minor = kFormatMinor;
  return h;
}

// ---- writing ----------------------------------------------------------------------------------

constexpr std::array<uint8_t, kWeightAlignment> kZeros = {};

// Appends the blobs of `table` with the gaps between them.
void AppendWeights(const BlobTable& table, std::vector<std::span<const uint8_t>>& parts) {
  uint64_t at = 0;
  for (size_t i = 0; i < table.blobs().size(); ++i) {
    parts.push_back(std::span(kZeros).first(table.places()[i].offset() - at));
    parts.push_back(table.blobs()[i].span());
    at = table.places()[i].offset() + table.blobs()[i].size();
  }
}

FileHeader MakeWeightsHeader(const BlobTable& table) {
  FileHeader h = MakeHeader(kWeightsMagic);
  h.weights_offset = sizeof(h);
  h.weights_size = table.size();
  h.weights_id = table.Id();
  h.header_checksum = ChecksumOfHeader(h);
  return h;
}

// ---- reading ----------------------------------------------------------------------------------

// The header of `file`, when it is one of this program's versions and undamaged.
absl::StatusOr<FileHeader> ReadHeader(const Bytes& file, std::string_view magic,
                                      std::string_view where) {
  FileHeader h{};
  if (file.size() < sizeof(h))
    return DataLoss("{}: {} bytes are too few for the header of a model file", where, file.size());
  std::memcpy(&h, file.data(), sizeof(h));
  if (!std::ranges::equal(h.magic, magic))
    return DataLoss("{}: not a model file: wrong magic at byte 0", where);
  if (h.major != kFormatMajor)
    return DataLoss("{}: written in format {}.{}, but this program reads {}.x", where, h.major,
                    h.minor, kFormatMajor);
  if (h.header_checksum != ChecksumOfHeader(h))
    return DataLoss("{}: damaged header: bytes 0 to 55 do not match the checksum at byte 56",
                    where);
  if ((h.flags & ~kExternalWeights) != 0)
    return DataLoss("{}: unknown flags {:#x} at byte 12", where, h.flags);
  return h;
}

// The weights that `file` holds from h.weights_offset to its end.
absl::StatusOr<Bytes> WeightsIn(const Bytes& file, const FileHeader& h, std::string_view where) {
  if (h.weights_offset % kWeightAlignment != 0 || h.weights_offset > file.size())
    return DataLoss("{}: weights begin at byte {} of {}", where, h.weights_offset, file.size());
  if (file.size() - h.weights_offset != h.weights_size)
    return DataLoss("{}: {} bytes of weights from byte {} do not end at the end of the file, {}",
                    where, h.weights_size, h.weights_offset, file.size());
  return file.Part(h.weights_offset, h.weights_size);
}

absl::StatusOr<Bytes> ReadWeightsFile(const std::filesystem::path& path, uint64_t id) {
  const std::string where = path.string();
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  FORGE_ASSIGN_OR_RETURN(const FileHeader h, ReadHeader(file, kWeightsMagic, where));
  if (h.weights_id != id) return DataLoss("{}: holds the weights of another model", where);
  return WeightsIn(file, h, where);
}

// FlatBuffers verifies where lists begin and end, but not that elements of eight bytes are aligned.
bool IsAligned(const auto* list) {
  return list == nullptr || list->size() == 0 ||
         reinterpret_cast<uintptr_t>(list->Data()) % alignof(uint64_t) == 0;
}

template <class List, class Check>
bool AllOf(const List* list, Check check) {
  if (list == nullptr) return true;
  for (const auto* element : *list)
    if (!check(*element)) return false;
  return true;
}

bool IsAligned(const FbList<fb::Dim>* dims) {
  return AllOf(dims, [](const fb::Dim& d) { return IsAligned(d.tokens()); });
}

// Whether every list of a verified graph may be read as it lies.
bool IsAligned(const fb::Model& model) {
  const auto attribute = [](const fb::Attribute& a) {
    return IsAligned(a.ints()) && IsAligned(a.floats()) && IsAligned(a.dims());
  };
  const auto node = [&](const fb::Node& n) { return AllOf(n.attributes(), attribute); };
  return IsAligned(model.blobs()) &&
         AllOf(model.types(), [](const fb::Type& t) { return IsAligned(t.shape()); }) &&
         AllOf(model.variables(),
               [](const fb::Variable& v) {
                 return v.storage() == nullptr || IsAligned(v.storage()->begin());
               }) &&
         AllOf(model.functions(), [&](const fb::Function& f) { return AllOf(f.nodes(), node); });
}

// The graph that follows the header, verified; its bytes are moved where they lie unaligned.
absl::StatusOr<Bytes> GraphIn(const Bytes& file, const FileHeader& h, std::string_view where) {
  if (!Inside(sizeof(h), h.graph_size, file.size()))
    return DataLoss("{}: {} bytes of graph from byte {} do not fit the file of {}", where,
                    h.graph_size, sizeof(h), file.size());
  Bytes graph = file.Part(sizeof(h), h.graph_size);
  if (XXH3_64bits(graph.data(), graph.size()) != h.graph_checksum)
    return DataLoss("{}: damaged graph: bytes {} to {} do not match the checksum at byte 24", where,
                    sizeof(h), sizeof(h) + h.graph_size);
  if (reinterpret_cast<uintptr_t>(graph.data()) % alignof(uint64_t) != 0)
    graph = Bytes(std::vector<uint8_t>(graph.span().begin(), graph.span().end()));
  constexpr uint64_t kMaxGraph = FLATBUFFERS_MAX_BUFFER_SIZE - 1;
  constexpr flatbuffers::uoffset_t kMaxDepth = 16;
  if (graph.size() > kMaxGraph) return DataLoss("{}: the graph is larger than 2 GiB", where);
  // Every table takes four bytes at least.
  flatbuffers::Verifier verifier(graph.data(), graph.size(), kMaxDepth,
                                 static_cast<flatbuffers::uoffset_t>(graph.size() / 4));
  if (!fb::VerifyModelBuffer(verifier))
    return DataLoss("{}: the graph at byte {} is not a valid FlatBuffer", where, sizeof(h));
  if (!IsAligned(*fb::GetModel(graph.data())))
    return DataLoss("{}: the graph at byte {} has a list that is not aligned", where, sizeof(h));
  return graph;
}

absl::Status CheckBlobTable(const fb::Model& model, uint64_t id, std::string_view where) {
  const auto* blobs = model.blobs();
  const uint64_t size = blobs == nullptr ? 0 : blobs->size() * sizeof(fb::Blob);
  if (XXH3_64bits(size == 0 ? nullptr : blobs->Data(), size) == id) return absl::OkStatus();
  return DataLoss("{}: the list of weights does not match its checksum at byte 48", where);
}

// Reads every weight: only when asked to.
absl::Status VerifyWeights(const fb::Model& model, const Bytes& weights, std::string_view where) {
  if (model.blobs() == nullptr) return absl::OkStatus();
  uint32_t i = 0;
  for (const fb::Blob* blob : *model.blobs()) {
    if (!Inside(blob->offset(), blob->size(), weights.size()))
      return DataLoss("{}: blob {} lies outside the weights", where, i);
    const Bytes bytes = weights.Part(blob->offset(), blob->size());
    if (XXH3_64bits(bytes.data(), bytes.size()) != blob->checksum())
      return DataLoss("{}: damaged weights: blob {}, {} bytes from {}, does not match its checksum",
                      where, i, blob->size(), blob->offset());
    ++i;
  }
  return absl::OkStatus();
}

// weights_path: where external weights lie; empty when the file may have none
absl::StatusOr<std::unique_ptr<ir::Module>> Read(const Bytes& file, std::string_view where,
                                                 const std::filesystem::path& weights_path,
                                                 const ModelReadOptions& options) {
  FORGE_ASSIGN_OR_RETURN(const FileHeader h, ReadHeader(file, kModelMagic, where));
  FORGE_ASSIGN_OR_RETURN(const Bytes graph, GraphIn(file, h, where));
  const fb::Model& model = *fb::GetModel(graph.data());
  FORGE_RETURN_IF_ERROR(CheckBlobTable(model, h.weights_id, where));
  Bytes weights;
  if ((h.flags & kExternalWeights) == 0) {
    if (h.weights_offset < sizeof(h) + h.graph_size)
      return DataLoss("{}: weights begin at byte {}, inside the graph", where, h.weights_offset);
    FORGE_ASSIGN_OR_RETURN(weights, WeightsIn(file, h, where));
  } else if (file.size() != sizeof(h) + h.graph_size) {
    return DataLoss("{}: {} bytes of graph do not end at the end of the file, {}", where,
                    h.graph_size, file.size());
  } else if (weights_path.empty()) {
    return DataLoss("{}: its weights are in a separate file; load the model by its path", where);
  } else {
    FORGE_ASSIGN_OR_RETURN(weights, ReadWeightsFile(weights_path, h.weights_id));
  }
  if (options.verify_weights) FORGE_RETURN_IF_ERROR(VerifyWeights(model, weights, where));
  absl::StatusOr<std::unique_ptr<ir::Module>> module = DecodeGraph(model, weights, h.graph_size);
  if (!module.ok()) return Annotate(module.status(), where);
  return module;
}

}  // namespace

absl::Status WriteModel(const ir::Module& module, const std::filesystem::path& path,
                        const ModelWriteOptions& options) {
  BlobTable table;
  FORGE_ASSIGN_OR_RETURN(const flatbuffers::DetachedBuffer graph, EncodeGraph(module, table));
  FileHeader h = MakeHeader(kModelMagic);
  h.graph_size = graph.size();
  h.graph_checksum = XXH3_64bits(graph.data(), graph.size());
  h.weights_id = table.Id();
  h.weights_size = table.size();
  std::vector<FileContent> files = {{path, {BytesOfHeader(h), {graph.data(), graph.size()}}}};
  const FileHeader weights = MakeWeightsHeader(table);
  if (options.external_weights) {
    h.flags = kExternalWeights;
    files.push_back({WeightsPath(path), {BytesOfHeader(weights)}});
  } else {
    h.weights_offset = AlignUp(sizeof(h) + h.graph_size, kWeightAlignment);
    files[0].parts.push_back(std::span(kZeros).first(h.weights_offset - sizeof(h) - h.graph_size));
  }
  AppendWeights(table, files.back().parts);
  h.header_checksum = ChecksumOfHeader(h);
  return WriteFiles(files, options.progress);
}

absl::StatusOr<std::unique_ptr<ir::Module>> ReadModel(const std::filesystem::path& path,
                                                      const ModelReadOptions& options) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  return Read(file, path.string(), WeightsPath(path), options);
}

absl::StatusOr<std::unique_ptr<ir::Module>> ReadModel(const Bytes& file, std::string_view where,
                                                      const ModelReadOptions& options) {
  return Read(file, where, {}, options);
}

bool IsModelFile(std::span<const uint8_t> content) {
  return content.size() >= kModelMagic.size() &&
         std::memcmp(content.data(), kModelMagic.data(), kModelMagic.size()) == 0;
}

}  // namespace forge
