// SPDX-License-Identifier: Apache-2.0
#include "formats/images/decode_image_op.h"

#include "formats/images/image.h"
#include "ir/op/define.h"

namespace forge::ir {
namespace {

// As Pillow's convert("L"): ITU-R 601-2 luma in units of 2^-16.
uint8_t Luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

}  // namespace

absl::Status DecodePicture::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  if (x.dtype() != DType::kU8 || x.rank() != 1)
    return InvalidArgument("{} is no list of bytes", x.type().ToText());
  FORGE_ASSIGN_OR_RETURN(const HostValue image, DecodeImage(x.shared_bytes(), "the picture"));
  const auto channels = static_cast<size_t>(image.dim(2));
  const size_t kept = order == PixelOrder::kGray ? 1 : 3;
  const std::vector<int64_t> shape = {image.dim(0), image.dim(1), static_cast<int64_t>(kept)};
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(DType::kU8, shape));
  const std::span<uint8_t> to = out.mutable_bytes();
  for (size_t i = 0; i < to.size() / kept; ++i) {
    const uint8_t* pixel = image.bytes().data() + i * channels;
    const auto sample = [&](size_t c) { return pixel[channels == 1 ? 0 : c]; };
    if (kept == 1)
      to[i] = channels == 1 ? pixel[0] : Luma(pixel);
    else
      for (size_t c = 0; c < kept; ++c)
        to[i * kept + c] = sample(order == PixelOrder::kBgr ? kept - 1 - c : c);
  }
  e.out(0) = std::move(out);
  return absl::OkStatus();
}

FORGE_DEFINE_OP(DecodePicture)

}  // namespace forge::ir
