// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/onednn/packed.h"

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

absl::Status PackedEncoding::Decode(DType, std::span<const int64_t>, std::span<const uint8_t> in,
                                    std::span<uint8_t> out) const {
  if (in.size() != packed_.get_size() || out.size() != plain_.get_size())
    return Internal("{}: {} bytes cannot be unpacked to {}", name_, in.size(), out.size());
  return Guarded("reorder", [&] {
    // The library takes pointers to mutable memory even of what it only reads.
    dnnl::memory from(packed_, Engine(), const_cast<uint8_t*>(in.data()));
    dnnl::memory to(plain_, Engine(), out.data());
    dnnl::stream stream(Engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  });
}

const PackedEncoding* PackedOf(const ir::Type& t) {
  return dynamic_cast<const PackedEncoding*>(t.encoding().get());
}

}  // namespace forge::cpu
