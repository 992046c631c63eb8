// SPDX-License-Identifier: Apache-2.0
#include "formats/load.h"

#include "base/platform.h"

namespace forge {
namespace {

constexpr std::string_view kShapesOfModelFile =
    "shapes can be given to models that are converted, not to a model.bin";

// An ONNX file begins with the field ir_version: number 1, a varint.
bool MayBeOnnx(std::span<const uint8_t> content) {
  constexpr uint8_t kIrVersionTag = 0x08;
  return !content.empty() && content[0] == kIrVersionTag;
}

absl::StatusOr<std::unique_ptr<ir::Module>> LoadModelFile(const std::filesystem::path& path,
                                                          const LoadOptions& options) {
  if (!options.onnx.shapes.empty())
    return InvalidArgument("{}: {}", path.string(), kShapesOfModelFile);
  return ReadModel(path, options.model);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Module>> LoadModel(const std::filesystem::path& path,
                                                      const LoadOptions& options) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  if (IsModelFile(file.span())) return LoadModelFile(path, options);
  const std::filesystem::path extension = path.extension();
  if (extension == ".onnx") return ImportOnnx(path, options.onnx);
  // The reader of its kind says best what is wrong with a damaged file.
  if (extension == ".bin") return LoadModelFile(path, options);
  if (MayBeOnnx(file.span())) return ImportOnnx(path, options.onnx);
  return DataLoss("{}: neither a model.bin nor an ONNX model", path.string());
}

absl::StatusOr<std::unique_ptr<ir::Module>> LoadModel(const Bytes& file, std::string_view where,
                                                      const LoadOptions& options) {
  if (IsModelFile(file.span())) {
    if (!options.onnx.shapes.empty()) return InvalidArgument("{}: {}", where, kShapesOfModelFile);
    return ReadModel(file, where, options.model);
  }
  if (MayBeOnnx(file.span())) return ImportOnnx(file, where, {}, options.onnx);
  return DataLoss("{}: neither a model.bin nor an ONNX model", where);
}

}  // namespace forge
