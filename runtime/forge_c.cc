// SPDX-License-Identifier: Apache-2.0
#include <cstring>

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
struct forge_session {
  std::unique_ptr<forge::Session> session;
};
struct forge_tensor {
  forge::NamedTensor tensor;
  std::string dtype;
};

namespace {

forge_error* Error(const absl::Status& s) {
  forge_code code = FORGE_FAILED;
  switch (s.code()) {
    case absl::StatusCode::kInvalidArgument:
      code = FORGE_USAGE;
      break;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kNotFound:
      code = FORGE_FILE;
      break;
    case absl::StatusCode::kUnavailable:
      code = FORGE_DEVICE;
      break;
    case absl::StatusCode::kUnimplemented:
      code = FORGE_REFUSED;
      break;
    default:
      break;
  }
  return new forge_error{code, std::string(forge::Message(s))};
}

forge_tensor* Wrap(forge::NamedTensor t) {
  std::string dtype(forge::Name(t.value.dtype()));
  return new forge_tensor{std::move(t), std::move(dtype)};
}

}  // namespace

extern "C" {

forge_code forge_error_code(const forge_error* error) { return error->code; }
const char* forge_error_message(const forge_error* error) { return error->message.c_str(); }
void forge_error_free(forge_error* error) { delete error; }

const char* forge_version(void) { return FORGE_VERSION; }

forge_error* forge_model_load(const char* path, forge_model** model) {
  if (path == nullptr || model == nullptr)
    return Error(forge::InvalidArgument("path and model must not be NULL"));
  auto loaded = forge::Model::Load(path);
  if (!loaded.ok()) return Error(loaded.status());
  *model = new forge_model{*std::move(loaded), {}};
  for (const auto& [key, value] : (*model)->model->module().metadata)
    (*model)->metadata[key] = value;
  return nullptr;
}

const char* forge_model_metadata(const forge_model* model, const char* key) {
  auto it = model->metadata.find(key);
  return it == model->metadata.end() ? nullptr : it->second.c_str();
}

void forge_model_free(forge_model* model) { delete model; }

forge_error* forge_session_create(const forge_model* model, const char* device,
                                  forge_session** session) {
  if (model == nullptr || session == nullptr)
    return Error(forge::InvalidArgument("model and session must not be NULL"));
  auto opened = forge::OpenDevice(device ? device : "auto", {});
  if (!opened.ok()) return Error(opened.status());
  auto made = forge::Session::Create(model->model, *opened);
  if (!made.ok()) return Error(made.status());
  *session = new forge_session{*std::move(made)};
  return nullptr;
}

size_t forge_session_input_count(const forge_session* s) { return s->session->inputs().size(); }
size_t forge_session_output_count(const forge_session* s) { return s->session->outputs().size(); }
const char* forge_session_input_name(const forge_session* s, size_t i) {
  return i < s->session->inputs().size() ? s->session->inputs()[i].name.c_str() : nullptr;
}
const char* forge_session_output_name(const forge_session* s, size_t i) {
  return i < s->session->outputs().size() ? s->session->outputs()[i].name.c_str() : nullptr;
}
const char* forge_session_device_name(const forge_session* s) {
  return s->session->device().info().name.c_str();
}

forge_error* forge_session_run(forge_session* session, const forge_tensor* const* inputs,
                               size_t input_count, forge_tensor** outputs, size_t output_count) {
  if (session == nullptr || (inputs == nullptr && input_count > 0))
    return Error(forge::InvalidArgument("session and inputs must not be NULL"));
  const size_t wanted = session->session->outputs().size();
  if (outputs == nullptr || output_count < wanted)
    return Error(forge::InvalidArgument("the model has {} outputs, there is room for {}", wanted,
                                        outputs ? output_count : 0));
  std::vector<forge::NamedTensor> given;
  for (size_t i = 0; i < input_count; ++i) {
    if (inputs[i] == nullptr) return Error(forge::InvalidArgument("input {} is NULL", i));
    given.push_back(inputs[i]->tensor);
  }
  auto results = session->session->Run(given);
  if (!results.ok()) return Error(results.status());
  for (size_t i = 0; i < wanted; ++i) outputs[i] = Wrap(std::move((*results)[i]));
  return nullptr;
}

void forge_session_cancel(forge_session* session) { session->session->Cancel(); }
void forge_session_free(forge_session* session) { delete session; }

// The parameters are those of C. NOLINTNEXTLINE(readability-function-size)
forge_error* forge_tensor_create(const char* name, const char* dtype, const int64_t* shape,
                                 size_t rank, const void* data, size_t bytes,
                                 forge_tensor** tensor) {
  if (name == nullptr || dtype == nullptr || tensor == nullptr || (shape == nullptr && rank > 0) ||
      (data == nullptr && bytes > 0))
    return Error(forge::InvalidArgument("name, dtype, shape, data and tensor must not be NULL"));
  const auto type = forge::ParseDType(dtype);
  if (!type) return Error(forge::InvalidArgument("there is no dtype '{}'", dtype));
  std::vector<uint8_t> copy(bytes);
  if (bytes > 0) std::memcpy(copy.data(), data, bytes);
  auto value =
      forge::ir::HostValue::Of(*type, std::span(shape, rank), forge::Bytes(std::move(copy)));
  if (!value.ok()) return Error(value.status());
  *tensor = Wrap({name, *std::move(value)});
  return nullptr;
}

const char* forge_tensor_name(const forge_tensor* t) { return t->tensor.name.c_str(); }
const char* forge_tensor_dtype(const forge_tensor* t) { return t->dtype.c_str(); }
size_t forge_tensor_rank(const forge_tensor* t) { return t->tensor.value.shape().size(); }
const int64_t* forge_tensor_shape(const forge_tensor* t) { return t->tensor.value.shape().data(); }
const void* forge_tensor_data(const forge_tensor* t) { return t->tensor.value.bytes().data(); }
size_t forge_tensor_bytes(const forge_tensor* t) { return t->tensor.value.bytes().size(); }
void forge_tensor_free(forge_tensor* t) { delete t; }

}  // extern "C"
