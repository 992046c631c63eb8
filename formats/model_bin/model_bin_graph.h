// SPDX-License-Identifier: Apache-2.0
// Conversion of the graph of a model.bin between a module and FlatBuffers. Private to
// model_bin*.cc.
#pragma once
#include <map>

#include "absl/container/flat_hash_map.h"
#include "formats/model_bin/model_bin_format.h"

namespace forge::formats {

// The weights in the order of storage; equal contents are stored once.
class BlobTable {
 public:
  // Adds bytes and returns their index in the table.
  uint32_t Add(const Bytes& bytes);
  std::span<const Bytes> blobs() const { return blobs_; }
  std::span<const fb::Blob> places() const { return places_; }
  uint64_t size() const { return size_; }  // bytes, including the gaps between blobs
  uint64_t Id() const;                     // see FileHeader::weights_id

 private:
  std::vector<Bytes> blobs_;
  std::vector<fb::Blob> places_;
  std::multimap<uint64_t, uint32_t> by_checksum_;
  std::map<std::pair<const uint8_t*, uint64_t>, uint32_t> by_place_;
  uint64_t size_ = 0;
};

// Encodes a module as a finished buffer and adds its weights to `blobs`.
//   errors: InvalidArgument
absl::StatusOr<flatbuffers::DetachedBuffer> EncodeGraph(const ir::Module& module, BlobTable& blobs);

// Decodes the module of a verified buffer.
//   weights: the bytes that blob offsets refer to     graph_size: bytes of the buffer
//   errors: DataLoss naming function, node or table entry
absl::StatusOr<std::unique_ptr<ir::Module>> DecodeGraph(const fb::Model& model,
                                                        const Bytes& weights, uint64_t graph_size);

}  // namespace forge::formats
