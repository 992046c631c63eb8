// SPDX-License-Identifier: Apache-2.0
// What the sources of the C interface share.
#pragma once
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <string>

#include "base/utf8.h"
#include "runtime/backends.h"
#include "runtime/forge.h"
#include "runtime/session.h"

struct forge_error {
  forge_code code;
  std::string message;
};
struct forge_model {
  std::shared_ptr<const forge::Model> model;
  std::map<std::string, std::string> metadata;
};
struct forge_tensor {
  forge::NamedTensor tensor;
  std::string dtype;
};

namespace forge {

// The error that `work`, which returns a Status, ends with. What the standard library throws ends
// here too: an exception must not leave through C.
template <class Work>
forge_error* ErrorOf(Work work) {
  absl::Status status;
  try {
    status = work();
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("out of memory");
  } catch (const std::exception& e) {
    status = Internal("{}", e.what());
  }
  if (status.ok()) return nullptr;
  return new forge_error{static_cast<forge_code>(ExitStatus(status)),
                         WellFormedUtf8(Message(status))};
}

// A model as C holds it.
inline forge_model* WrapModel(std::shared_ptr<const Model> loaded) {
  auto made = std::make_unique<forge_model>();
  for (const auto& [key, value] : loaded->module().metadata) made->metadata[key] = value;
  made->model = std::move(loaded);
  return made.release();
}

// A tensor as C holds it.
inline std::unique_ptr<forge_tensor> WrapTensor(NamedTensor t) {
  std::string dtype(Name(t.value.dtype()));
  return std::unique_ptr<forge_tensor>(new forge_tensor{std::move(t), std::move(dtype)});
}

// The tensors that C gives.  errors: InvalidArgument (NULL)
absl::StatusOr<std::vector<NamedTensor>> TensorsOf(const forge_tensor* const* tensors,
                                                   size_t count);

// The device of that name, shared by all who hold it now: Sessions of one model on one device share
// weights and kernels.
absl::StatusOr<DeviceRef> SharedDevice(const std::string& name, const DeviceOptions& options);

}  // namespace forge
