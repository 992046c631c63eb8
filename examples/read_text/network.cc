// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include "absl/strings/str_cat.h"

absl::StatusOr<Network> Network::Load(const std::filesystem::path& path, forge::DeviceRef device) {
  Network n;
  n.path_ = path.string();
  auto model = forge::Model::Load(path);
  if (!model.ok()) return model.status();
  n.model_ = *std::move(model);
  auto session = forge::Session::Create(n.model_, std::move(device));
  if (!session.ok()) return session.status();
  n.session_ = *std::move(session);
  if (n.session_->inputs().size() != 1 || n.session_->outputs().size() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat(n.path_, ": a network with one input and one output is needed"));
  return n;
}

absl::StatusOr<forge::ir::HostValue> Network::Run(forge::ir::HostValue input, int rank) {
  const forge::NamedTensor named{session_->inputs()[0].name, std::move(input)};
  auto outputs = session_->Run({&named, 1});
  if (!outputs.ok()) return outputs.status();
  forge::ir::HostValue& result = outputs->front().value;
  if (result.dtype() != forge::DType::kF32 || result.rank() != rank)
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": its result is not f32 of ", rank, " dimensions"));
  return std::move(result);
}
