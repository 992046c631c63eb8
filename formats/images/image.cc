// SPDX-License-Identifier: Apache-2.0
#include "formats/images/image.h"

#include "base/platform.h"
#include "formats/images/image_codecs.h"

namespace forge {

absl::StatusOr<ir::HostValue> EmptyImage(uint64_t height, uint64_t width, int channels,
                                         std::string_view where) {
  if (height == 0 || width == 0) return DataLoss("{}: the picture has no pixels", where);
  if (width > kMaxPixels / height)
    return DataLoss("{}: {} x {} pixels exceed the limit of {}", where, height, width, kMaxPixels);
  const int64_t shape[] = {static_cast<int64_t>(height), static_cast<int64_t>(width), channels};
  return ir::HostValue::Zeros(DType::kU8, shape);
}

absl::StatusOr<ir::HostValue> DecodeImage(const Bytes& file, std::string_view where) {
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  if (all.starts_with("\x89PNG\r\n\x1a\n")) return DecodePng(file, where);
  if (all.starts_with("\xff\xd8\xff")) return DecodeJpeg(file, where);
  if (all.starts_with("BM")) return DecodeBmp(file, where);
  if (all.starts_with("P5") || all.starts_with("P6")) return DecodePnm(file, where);
  if (all.starts_with(std::string_view("II*\0", 4)) ||
      all.starts_with(std::string_view("MM\0*", 4)))
    return DecodeTiff(file, where);
  return DataLoss("{}: not a PNG, JPEG, BMP, PNM or TIFF picture", where);
}

absl::StatusOr<ir::HostValue> ReadImage(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  return DecodeImage(file, path.string());
}

}  // namespace forge
