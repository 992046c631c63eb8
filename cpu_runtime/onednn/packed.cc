// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/onednn/packed.h"

#include "cpu_runtime/tape/elements.h"

namespace forge::cpu {
namespace {

std::string TextOf(const dnnl::memory::desc& d) {
  std::string blocks;
  const auto sizes = d.get_inner_blks(), axes = d.get_inner_idxs();
  for (size_t i = 0; i < sizes.size(); ++i) blocks += fmt::format("{}@{},", sizes[i], axes[i]);
  return fmt::format("[{}]/[{}]+{}:{}", fmt::join(d.get_dims(), ","),
                     fmt::join(d.get_strides(), ","), blocks, d.get_size());
}

}  // namespace

ir::EncodingRef PackedEncoding::Make(dnnl::memory::desc plain, dnnl::memory::desc packed) {
  return ir::EncodingRef(new PackedEncoding(std::move(plain), std::move(packed)));
}

PackedEncoding::PackedEncoding(dnnl::memory::desc plain, dnnl::memory::desc packed)
    : plain_(std::move(plain)),
      packed_(std::move(packed)),
      name_(fmt::format("onednn:{}<{}", TextOf(packed_), TextOf(plain_))) {}

absl::StatusOr<ir::Dim> PackedEncoding::Bytes(DType, const ir::Dims&) const {
  return ir::Dim(static_cast<int64_t>(packed_.get_size()));
}

absl::Status PackedEncoding::Decode(DType t, std::span<const int64_t>, std::span<const uint8_t> in,
                                    std::span<uint8_t> out) const {
  const size_t elements = plain_.get_size() / HeldBytes(t);
  if (in.size() != packed_.get_size() || out.size() != elements * StoredBytes(t))
    return Internal("{}: {} bytes cannot be unpacked to {}", name_, in.size(), out.size());
  std::vector<uint8_t> wide(HeldAs(t) == t ? 0 : plain_.get_size());
  uint8_t* unpacked = wide.empty() ? out.data() : wide.data();
  FORGE_RETURN_IF_ERROR(Guarded("reorder", [&] {
    // The library takes pointers to mutable memory even of what it only reads.
    dnnl::memory from(packed_, Engine(), const_cast<uint8_t*>(in.data()));
    dnnl::memory to(plain_, Engine(), unpacked);
    dnnl::stream stream(Engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }));
  if (!wide.empty()) StoreRun(t, unpacked, {out.data(), 1, elements});
  return absl::OkStatus();
}

const PackedEncoding* PackedOf(const ir::Type& t) {
  return dynamic_cast<const PackedEncoding*>(t.encoding().get());
}

}  // namespace forge::cpu
