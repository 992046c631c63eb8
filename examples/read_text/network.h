// SPDX-License-Identifier: Apache-2.0
// A model with one input and one output, on a device.
#pragma once
#include <filesystem>
#include <memory>

#include "runtime/session.h"

class Network {
 public:
  // Loads model.bin or an ONNX file.
  //   errors: those of Model::Load and Session::Create; InvalidArgument (more inputs or outputs)
  static absl::StatusOr<Network> Load(const std::filesystem::path& path, forge::DeviceRef device);

  std::string_view Metadata(std::string_view key) const { return model_->Metadata(key); }

  // errors: those of Session::Run; InvalidArgument (the result is not f32 of `rank` dimensions)
  absl::StatusOr<forge::ir::HostValue> Run(forge::ir::HostValue input, int rank);

 private:
  std::string path_;
  std::shared_ptr<const forge::Model> model_;
  std::unique_ptr<forge::Session> session_;
};

// The elements of an f32 tensor.
inline std::span<const float> Floats(const forge::ir::HostValue& v) {
  return {reinterpret_cast<const float*>(v.bytes().data()), static_cast<size_t>(v.elements())};
}
