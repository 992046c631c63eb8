// SPDX-License-Identifier: Apache-2.0
#include "runtime/forge_c.h"

#include <mutex>
#include <optional>

#include "base/platform.h"
#include "base/utf8.h"
#include "formats/model_bin/model_bin.h"
#include "ir/type/precision.h"
#include "runtime/backends.h"
#include "runtime/forge.h"
#include "runtime/plan/memory_plan.h"
#include "runtime/session.h"

struct forge_devices {
  struct Entry {
    std::string id, name;
    std::optional<std::string> problem;
  };
  std::vector<Entry> entries;
};
struct forge_options {
  forge::SessionOptions session;
  forge::DeviceOptions device;
};

struct forge_session {
  // What C sees of a Session::Port.
  struct Port {
    std::string name, dtype;
    int rank = -1;
    std::vector<int64_t> shape;
    std::vector<std::string> symbols;  // empty where the extent is a number
  };
  std::unique_ptr<forge::Session> session;
  std::vector<Port> inputs, outputs;
  std::vector<forge::DType> input_types;
  std::vector<std::vector<int64_t>> bound_outputs;  // what was told last
};

namespace forge {

absl::StatusOr<std::vector<NamedTensor>> TensorsOf(const forge_tensor* const* tensors,
                                                   size_t count) {
  if (tensors == nullptr && count > 0) return InvalidArgument("the tensors must not be NULL");
  std::vector<NamedTensor> out;
  for (size_t i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) return InvalidArgument("input {} is NULL", i);
    out.push_back(tensors[i]->tensor);
  }
  return out;
}

absl::StatusOr<DeviceRef> SharedDevice(const std::string& name, const DeviceOptions& options) {
  static auto* const mutex = new std::mutex;
  static auto* const open = new std::map<std::string, std::weak_ptr<Device>>;
  // After a fork the devices of the other process are of no use.
  const std::string key = fmt::format("{} {} {}", ForkCount(), options.threads, name);
  std::lock_guard lock(*mutex);
  const auto known = open->find(key);
  if (known != open->end())
    if (DeviceRef device = known->second.lock()) return device;
  FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(name, options));
  (*open)[key] = device;
  return device;
}

}  // namespace forge

namespace {

using forge::ErrorOf;
using Port = forge_session::Port;

// A symbol's own name, as Bind takes it, or an expression as text; empty for a number.
std::string SymbolText(const forge::ir::Dim& d) {
  if (d.is_constant()) return {};
  const forge::ir::Dim::Part part = d.part();
  return part.op == forge::ir::Dim::Op::kSymbol ? part.symbol->name : d.ToText();
}

std::vector<Port> PortsOf(const std::vector<forge::Session::Port>& ports) {
  std::vector<Port> out;
  for (const forge::Session::Port& port : ports) {
    Port& p = out.emplace_back();
    p.name = port.name;
    if (!port.type.is_tensor()) continue;
    p.dtype = forge::Name(port.type.dtype());
    p.rank = static_cast<int>(port.type.rank());
    for (const forge::ir::Dim& d : port.type.shape()) {
      p.shape.push_back(d.is_constant() ? d.constant() : -1);
      p.symbols.push_back(SymbolText(d));
    }
  }
  return out;
}

const Port* At(const std::vector<Port>& ports, size_t index) {
  return index < ports.size() ? &ports[index] : nullptr;
}
const char* NameAt(const std::vector<Port>& ports, size_t index) {
  const Port* p = At(ports, index);
  return p ? p->name.c_str() : nullptr;
}
const char* DTypeAt(const std::vector<Port>& ports, size_t index) {
  const Port* p = At(ports, index);
  return p ? p->dtype.c_str() : nullptr;
}
int RankAt(const std::vector<Port>& ports, size_t index) {
  const Port* p = At(ports, index);
  return p ? p->rank : -1;
}
const int64_t* ShapeAt(const std::vector<Port>& ports, size_t index) {
  const Port* p = At(ports, index);
  return p ? p->shape.data() : nullptr;
}
const char* SymbolAt(const std::vector<Port>& ports, size_t index, size_t axis) {
  const Port* p = At(ports, index);
  if (p == nullptr || axis >= p->symbols.size() || p->symbols[axis].empty()) return nullptr;
  return p->symbols[axis].c_str();
}

absl::Status LoadModel(const char* path, forge_model** model) {
  if (path == nullptr || model == nullptr)
    return forge::InvalidArgument("path and model must not be NULL");
  FORGE_ASSIGN_OR_RETURN(auto loaded, forge::Model::Load(path));
  *model = forge::WrapModel(std::move(loaded));
  return absl::OkStatus();
}

absl::Status LoadModelInMemory(const void* data, size_t bytes, forge_model** model) {
  if (data == nullptr || model == nullptr)
    return forge::InvalidArgument("data and model must not be NULL");
  const auto* begin = static_cast<const uint8_t*>(data);
  const forge::Bytes copy(std::vector<uint8_t>(begin, begin + bytes));
  FORGE_ASSIGN_OR_RETURN(auto loaded, forge::Model::Load(copy, "a model in memory"));
  *model = forge::WrapModel(std::move(loaded));
  return absl::OkStatus();
}

absl::Status ListDevices(forge_devices** devices) {
  if (devices == nullptr) return forge::InvalidArgument("devices must not be NULL");
  auto made = std::make_unique<forge_devices>();
  for (const forge::BackendDevices& backend : forge::ListDevices()) {
    for (const forge::DeviceInfo& d : backend.devices) {
      forge_devices::Entry& e = made->entries.emplace_back();
      e.id = d.id;
      e.name = forge::WellFormedUtf8(d.name);
      if (!d.usable) e.problem = forge::WellFormedUtf8(d.usable.text());
    }
  }
  *devices = made.release();
  return absl::OkStatus();
}

// Changes options after a check that they, and a name where there is one, are there.
template <class Change>
forge_error* Set(forge_options* options, const char* name, Change change) {
  return ErrorOf([&]() -> absl::Status {
    if (options == nullptr || name == nullptr)
      return forge::InvalidArgument("options and name must not be NULL");
    return change(*options);
  });
}

absl::Status CreateSession(const forge_model* model, const char* device,
                           const forge_options& options, forge_session** session) {
  if (model == nullptr || session == nullptr)
    return forge::InvalidArgument("model and session must not be NULL");
  FORGE_ASSIGN_OR_RETURN(forge::DeviceRef opened,
                         forge::SharedDevice(device ? device : "auto", options.device));
  auto made = std::make_unique<forge_session>();
  FORGE_ASSIGN_OR_RETURN(made->session,
                         forge::Session::Create(model->model, std::move(opened), options.session));
  made->inputs = PortsOf(made->session->inputs());
  made->outputs = PortsOf(made->session->outputs());
  for (const forge::Session::Port& p : made->session->inputs())
    made->input_types.push_back(p.type.dtype());
  *session = made.release();
  return absl::OkStatus();
}

// The extents of an output at the newest binding; null where there is none.
const std::vector<int64_t>* BoundShape(forge_session& session, size_t index) {
  const auto types = session.session->BoundOutputs();
  if (!types.ok() || index >= types->size()) return nullptr;
  session.bound_outputs.resize(types->size());
  session.bound_outputs[index] = forge::ir::Constants((*types)[index].shape());
  return &session.bound_outputs[index];
}

size_t BoundBytes(const forge_session& session, size_t index) {
  const auto types = session.session->BoundOutputs();
  if (!types.ok() || index >= types->size()) return 0;
  const auto bytes = forge::BytesOf((*types)[index]);
  return bytes.ok() ? *bytes : 0;
}

struct Memories {
  const forge_input* inputs = nullptr;
  size_t input_count = 0;
  const forge_output* outputs = nullptr;
  size_t output_count = 0;
};

using TensorRefs = absl::InlinedVector<forge::TensorRef, 16>;

absl::StatusOr<TensorRefs> RefsOf(const forge_session& session, const Memories& m) {
  if (m.input_count != session.inputs.size())
    return forge::InvalidArgument("the model has {} inputs, but {} are given",
                                  session.inputs.size(), m.input_count);
  TensorRefs inputs;
  for (size_t i = 0; i < m.input_count; ++i) {
    const forge_input& in = m.inputs[i];
    if ((in.shape == nullptr && in.rank > 0) || (in.data == nullptr && in.bytes > 0))
      return forge::InvalidArgument("shape and data of input {} must not be NULL", i);
    inputs.push_back({session.input_types[i],
                      {in.shape, in.rank},
                      {static_cast<const uint8_t*>(in.data), in.bytes}});
  }
  return inputs;
}

absl::Status RunInto(forge_session* session, const Memories& m) {
  if (session == nullptr || (m.inputs == nullptr && m.input_count > 0) ||
      (m.outputs == nullptr && m.output_count > 0))
    return forge::InvalidArgument("session, inputs and outputs must not be NULL");
  FORGE_ASSIGN_OR_RETURN(const TensorRefs inputs, RefsOf(*session, m));
  absl::InlinedVector<std::span<uint8_t>, 16> outputs;
  for (size_t i = 0; i < m.output_count; ++i) {
    if (m.outputs[i].data == nullptr && m.outputs[i].bytes > 0)
      return forge::InvalidArgument("data of output {} must not be NULL", i);
    outputs.emplace_back(static_cast<uint8_t*>(m.outputs[i].data), m.outputs[i].bytes);
  }
  return session->session->Run(inputs, outputs);
}

absl::Status BindInputs(forge_session* session, const Memories& m) {
  if (session == nullptr || (m.inputs == nullptr && m.input_count > 0))
    return forge::InvalidArgument("session and inputs must not be NULL");
  FORGE_ASSIGN_OR_RETURN(const TensorRefs inputs, RefsOf(*session, m));
  return session->session->BindFor(inputs);
}

absl::Status BindSession(forge_session* session, const char* const* names, const int64_t* extents,
                         size_t count) {
  if (session == nullptr || (count > 0 && (names == nullptr || extents == nullptr)))
    return forge::InvalidArgument("session, names and extents must not be NULL");
  std::map<std::string, int64_t> dims;
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return forge::InvalidArgument("name {} is NULL", i);
    if (!dims.emplace(names[i], extents[i]).second)
      return forge::InvalidArgument("dimension '{}' is given twice", names[i]);
  }
  return session->session->Bind(dims);
}

struct Tensors {
  const forge_tensor* const* inputs = nullptr;
  size_t input_count = 0;
  forge_tensor** outputs = nullptr;
  size_t output_count = 0;
};

absl::Status RunSession(forge_session* session, const Tensors& tensors) {
  if (session == nullptr || (tensors.inputs == nullptr && tensors.input_count > 0))
    return forge::InvalidArgument("session and inputs must not be NULL");
  const size_t wanted = session->outputs.size();
  if (wanted > 0 && (tensors.outputs == nullptr || tensors.output_count < wanted))
    return forge::InvalidArgument("the model has {} outputs, but output_count is {}", wanted,
                                  tensors.outputs ? tensors.output_count : 0);
  FORGE_ASSIGN_OR_RETURN(const std::vector<forge::NamedTensor> given,
                         forge::TensorsOf(tensors.inputs, tensors.input_count));
  FORGE_ASSIGN_OR_RETURN(auto results, session->session->Run(given));
  std::vector<std::unique_ptr<forge_tensor>> made;
  for (const forge::NamedTensor& t : results)
    if (!t.value.is_tensor() || t.value.dtype() == forge::DType::kString)
      return forge::Unimplemented("output '{}' is {}, which the C interface does not have", t.name,
                                  t.value.type().ToText());
  for (forge::NamedTensor& t : results) made.push_back(forge::WrapTensor(std::move(t)));
  for (size_t i = 0; i < wanted; ++i) tensors.outputs[i] = made[i].release();
  return absl::OkStatus();
}

struct TensorParts {
  const char* name = nullptr;
  const char* dtype = nullptr;
  const int64_t* shape = nullptr;
  size_t rank = 0;
  const void* data = nullptr;
  size_t bytes = 0;
};

absl::Status CreateTensor(const TensorParts& p, forge_tensor** tensor) {
  if (p.name == nullptr || p.dtype == nullptr || tensor == nullptr ||
      (p.shape == nullptr && p.rank > 0) || (p.data == nullptr && p.bytes > 0))
    return forge::InvalidArgument("name, dtype, shape, data and tensor must not be NULL");
  const auto type = forge::ParseDType(p.dtype);
  if (!type) return forge::InvalidArgument("unknown dtype '{}'", p.dtype);
  const std::span shape(p.shape, p.rank);
  const std::span data(static_cast<const uint8_t*>(p.data), p.bytes);
  // Before the copy: `bytes` may be any number.
  FORGE_RETURN_IF_ERROR(
      forge::ir::HostValue::Of(*type, shape, forge::Bytes(data, nullptr)).status());
  forge::Bytes copy(std::vector<uint8_t>(data.begin(), data.end()));
  FORGE_ASSIGN_OR_RETURN(auto value, forge::ir::HostValue::Of(*type, shape, std::move(copy)));
  *tensor = forge::WrapTensor({p.name, std::move(value)}).release();
  return absl::OkStatus();
}

}  // namespace

extern "C" {

int forge_interface(void) { return FORGE_INTERFACE; }
const char* forge_version(void) { return FORGE_VERSION; }

forge_code forge_error_code(const forge_error* error) { return error->code; }
const char* forge_error_message(const forge_error* error) { return error->message.c_str(); }
void forge_error_free(forge_error* error) { delete error; }

forge_error* forge_model_load(const char* path, forge_model** model) {
  return ErrorOf([&] { return LoadModel(path, model); });
}
forge_error* forge_model_load_memory(const void* data, size_t bytes, forge_model** model) {
  return ErrorOf([&] { return LoadModelInMemory(data, bytes, model); });
}
const char* forge_model_metadata(const forge_model* model, const char* key) {
  auto it = model->metadata.find(key);
  return it == model->metadata.end() ? nullptr : it->second.c_str();
}
const char* forge_model_metadata_key(const forge_model* model, size_t index) {
  if (index >= model->metadata.size()) return nullptr;
  return std::next(model->metadata.begin(), static_cast<ptrdiff_t>(index))->first.c_str();
}
forge_error* forge_model_save(const forge_model* model, const char* path) {
  return ErrorOf([&]() -> absl::Status {
    if (model == nullptr || path == nullptr)
      return forge::InvalidArgument("model and path must not be NULL");
    return forge::WriteModel(model->model->module(), path);
  });
}
void forge_model_free(forge_model* model) { delete model; }

// The parameters are those of C. NOLINTNEXTLINE(readability-function-size)
forge_error* forge_tensor_create(const char* name, const char* dtype, const int64_t* shape,
                                 size_t rank, const void* data, size_t bytes,
                                 forge_tensor** tensor) {
  return ErrorOf([&] { return CreateTensor({name, dtype, shape, rank, data, bytes}, tensor); });
}
const char* forge_tensor_name(const forge_tensor* t) { return t->tensor.name.c_str(); }
const char* forge_tensor_dtype(const forge_tensor* t) { return t->dtype.c_str(); }
size_t forge_tensor_rank(const forge_tensor* t) { return t->tensor.value.shape().size(); }
const int64_t* forge_tensor_shape(const forge_tensor* t) { return t->tensor.value.shape().data(); }
const void* forge_tensor_data(const forge_tensor* t) { return t->tensor.value.bytes().data(); }
size_t forge_tensor_bytes(const forge_tensor* t) { return t->tensor.value.bytes().size(); }
void forge_tensor_free(forge_tensor* t) { delete t; }

forge_error* forge_devices_list(forge_devices** devices) {
  return ErrorOf([&] { return ListDevices(devices); });
}
size_t forge_devices_count(const forge_devices* d) { return d->entries.size(); }
const char* forge_devices_id(const forge_devices* d, size_t i) {
  return i < d->entries.size() ? d->entries[i].id.c_str() : nullptr;
}
const char* forge_devices_name(const forge_devices* d, size_t i) {
  return i < d->entries.size() ? d->entries[i].name.c_str() : nullptr;
}
const char* forge_devices_problem(const forge_devices* d, size_t i) {
  return i < d->entries.size() && d->entries[i].problem ? d->entries[i].problem->c_str() : nullptr;
}
void forge_devices_free(forge_devices* d) { delete d; }

forge_error* forge_options_create(forge_options** options) {
  return ErrorOf([&]() -> absl::Status {
    if (options == nullptr) return forge::InvalidArgument("options must not be NULL");
    *options = new forge_options;
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_function(forge_options* options, const char* name) {
  return Set(options, name, [&](forge_options& o) {
    o.session.functions = {name};
    return absl::OkStatus();
  });
}
forge_error* forge_options_add_output(forge_options* options, const char* name) {
  return Set(options, name, [&](forge_options& o) {
    o.session.outputs.emplace_back(name);
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_dim(forge_options* options, const char* name, int64_t extent) {
  return Set(options, name, [&](forge_options& o) {
    o.session.dims[name] = extent;
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_memory_limit(forge_options* options, uint64_t bytes) {
  return Set(options, "", [&](forge_options& o) {
    o.session.memory_limit = bytes;
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_precision(forge_options* options, const char* name) {
  return Set(options, name, [&](forge_options& o) {
    FORGE_ASSIGN_OR_RETURN(o.session.precision, forge::ir::ParsePrecision(name));
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_threads(forge_options* options, int threads) {
  return Set(options, "", [&](forge_options& o) {
    if (threads < 0) return forge::InvalidArgument("{} threads", threads);
    o.device.threads = threads;
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_autotune(forge_options* options, double seconds) {
  return Set(options, "", [&](forge_options& o) {
    if (!(seconds >= 0)) return forge::InvalidArgument("{} seconds", seconds);
    o.session.autotune.seconds = seconds;
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_fusion(forge_options* options, int fuse) {
  return Set(options, "", [&](forge_options& o) {
    o.session.debug.fuse = fuse != 0;
    return absl::OkStatus();
  });
}
forge_error* forge_options_set_progress(forge_options* options, forge_progress progress,
                                        void* context) {
  return Set(options, "", [&](forge_options& o) {
    o.session.progress = nullptr;
    if (progress != nullptr)
      o.session.progress = [=](std::string_view what, size_t done, size_t total) {
        progress(context, std::string(what).c_str(), done, total);
      };
    return absl::OkStatus();
  });
}

void forge_options_free(forge_options* options) { delete options; }

forge_error* forge_session_create(const forge_model* model, const char* device,
                                  forge_session** session) {
  return ErrorOf([&] { return CreateSession(model, device, {}, session); });
}
forge_error* forge_session_create_with(const forge_model* model, const char* device,
                                       const forge_options* options, forge_session** session) {
  return ErrorOf([&]() -> absl::Status {
    if (options == nullptr) return forge::InvalidArgument("options must not be NULL");
    return CreateSession(model, device, *options, session);
  });
}
const char* forge_session_device_name(const forge_session* s) {
  return s->session->device().info().name.c_str();
}
size_t forge_session_input_count(const forge_session* s) { return s->inputs.size(); }
size_t forge_session_output_count(const forge_session* s) { return s->outputs.size(); }
const char* forge_session_input_name(const forge_session* s, size_t i) {
  return NameAt(s->inputs, i);
}
const char* forge_session_output_name(const forge_session* s, size_t i) {
  return NameAt(s->outputs, i);
}
const char* forge_session_input_dtype(const forge_session* s, size_t i) {
  return DTypeAt(s->inputs, i);
}
const char* forge_session_output_dtype(const forge_session* s, size_t i) {
  return DTypeAt(s->outputs, i);
}
int forge_session_input_rank(const forge_session* s, size_t i) { return RankAt(s->inputs, i); }
int forge_session_output_rank(const forge_session* s, size_t i) { return RankAt(s->outputs, i); }
const int64_t* forge_session_input_shape(const forge_session* s, size_t i) {
  return ShapeAt(s->inputs, i);
}
const int64_t* forge_session_output_shape(const forge_session* s, size_t i) {
  return ShapeAt(s->outputs, i);
}
const char* forge_session_input_symbol(const forge_session* s, size_t i, size_t axis) {
  return SymbolAt(s->inputs, i, axis);
}
const char* forge_session_output_symbol(const forge_session* s, size_t i, size_t axis) {
  return SymbolAt(s->outputs, i, axis);
}

forge_error* forge_session_bind(forge_session* session, const char* const* names,
                                const int64_t* extents, size_t count) {
  return ErrorOf([&] { return BindSession(session, names, extents, count); });
}
forge_error* forge_session_set_step_value(forge_session* session, const char* name, int64_t value) {
  return ErrorOf([&] {
    if (session == nullptr || name == nullptr)
      return forge::InvalidArgument("session and name must not be NULL");
    return session->session->SetStepValue(name, value);
  });
}
forge_error* forge_session_run(forge_session* session, const forge_tensor* const* inputs,
                               size_t input_count, forge_tensor** outputs, size_t output_count) {
  return ErrorOf([&] { return RunSession(session, {inputs, input_count, outputs, output_count}); });
}
const int64_t* forge_session_bound_output_shape(forge_session* session, size_t index) {
  const std::vector<int64_t>* shape = BoundShape(*session, index);
  return shape ? shape->data() : nullptr;
}
size_t forge_session_bound_output_bytes(forge_session* session, size_t index) {
  return BoundBytes(*session, index);
}
forge_error* forge_session_run_into(forge_session* session, const forge_input* inputs,
                                    size_t input_count, const forge_output* outputs,
                                    size_t output_count) {
  return ErrorOf([&] { return RunInto(session, {inputs, input_count, outputs, output_count}); });
}
forge_error* forge_session_bind_inputs(forge_session* session, const forge_input* inputs,
                                       size_t input_count) {
  return ErrorOf([&] { return BindInputs(session, {inputs, input_count, nullptr, 0}); });
}
int forge_session_runs_in_parts(const forge_session* session) {
  return session->session->runs_in_parts() ? 1 : 0;
}
void forge_session_cancel(forge_session* session) { session->session->Cancel(); }
void forge_session_free(forge_session* session) { delete session; }

}  // extern "C"
