// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <algorithm>
#include <future>

#include "base/platform.h"
#include "formats/load.h"
#include "ir/interpreter.h"
#include "runtime/model_on_device.h"

namespace forge {
namespace {

// Bound plans a Session keeps of each function: enough for a detector that sees a few picture
// sizes.
constexpr ptrdiff_t kMaxPlans = 8;

double Milliseconds(int64_t since) { return static_cast<double>(NowNanoseconds() - since) * 1e-6; }

std::string TypeText(const ir::HostValue& v) { return v.type().ToText(); }

}  // namespace

// One binding of one of a Session's functions.
struct Session::Plan {
  size_t function = 0;
  ir::Bindings bindings;
  BoundFunctions bound;
  VariablePlaces constants;
  std::unique_ptr<Executable> executable;
};

// What runs change.
struct Session::States {
  explicit States(DeviceRef device) : store(std::move(device)) {}
  VariableStore store;
  VariablePlaces places;
};

struct Model::Shared {
  struct Entry {
    const Device* device;
    std::string key;
    std::weak_ptr<ModelOnDevice> made;
  };
  std::mutex mutex;
  std::vector<Entry> entries;

  // The lowered functions, made at the first use.  errors: those of Lower
  absl::StatusOr<std::shared_ptr<ModelOnDevice>> Get(const ir::Module& module,
                                                     const DeviceRef& device,
                                                     const SessionOptions& options);
};

Model::Model(std::unique_ptr<ir::Module> module)
    : module_(std::move(module)), shared_(std::make_unique<Shared>()) {}
Model::~Model() = default;

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(
    const std::filesystem::path& path, const std::function<void(size_t, size_t)>& progress) {
  LoadOptions options;
  options.onnx.progress = progress;
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, LoadModel(path, options));
  return std::make_shared<const Model>(std::move(module));
}

Session::~Session() = default;

namespace {

LowerOptions LoweringFor(const SessionOptions& options) {
  LowerOptions lower;
  lower.functions = options.functions;
  lower.outputs = options.outputs;
  lower.freeze = options.freeze;
  lower.observe = options.observe;
  return lower;
}

// Sessions whose options agree here may share what was lowered.
std::string KeyOf(const SessionOptions& options) {
  std::string key = fmt::format("{} {}", options.freeze, options.compile_only);
  for (const std::string& f : options.functions) key += "\nf " + f;
  for (const std::string& o : options.outputs) key += "\no " + o;
  return key;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ModelOnDevice>> Model::Shared::Get(const ir::Module& module,
                                                                  const DeviceRef& device,
                                                                  const SessionOptions& options) {
  const std::string key = KeyOf(options);
  std::lock_guard lock(mutex);
  std::shared_ptr<ModelShare> share;
  for (const Entry& e : entries) {
    const std::shared_ptr<ModelOnDevice> made = e.device == device.get() ? e.made.lock() : nullptr;
    if (!made) continue;
    if (e.key == key) return made;
    share = made->shared();
  }
  if (!share) share = std::make_shared<ModelShare>(device);
  FORGE_ASSIGN_OR_RETURN(Lowered lowered, Lower(module, device->target(), LoweringFor(options)));
  auto made = std::make_shared<ModelOnDevice>(std::move(share), std::move(lowered));
  std::erase_if(entries, [](const auto& e) { return e.made.expired(); });
  entries.push_back({device.get(), key, made});
  return made;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Model> model,
                                                         DeviceRef device, SessionOptions options) {
  std::unique_ptr<Session> s(new Session);
  const int64_t begin = NowNanoseconds();
  s->model_ = std::move(model);
  s->device_ = std::move(device);
  s->options_ = std::move(options);
  FORGE_ASSIGN_OR_RETURN(s->shared_,
                         s->model_->shared_->Get(s->model_->module(), s->device_, s->options_));
  for (const ir::Function* f : s->shared_->functions()) {
    FunctionFace& face = s->faces_.emplace_back();
    for (const auto& a : f->arguments()) face.inputs.push_back({a.name, f->type(a.value)});
    for (const auto& r : f->results()) face.outputs.push_back({r.name, f->type(r.value)});
  }
  for (const auto& [name, value] : s->options_.dims) {
    ir::SymbolRef symbol = s->shared_->module().FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    s->fixed_[symbol] = value;
  }
  FORGE_RETURN_IF_ERROR(s->AddStates());
  s->lower_ms_ = Milliseconds(begin);
  return s;
}

absl::StatusOr<std::vector<const ir::HostValue*>> Session::Match(
    std::span<const NamedTensor> inputs, size_t function) const {
  const std::vector<Port>& ports = Face(function).inputs;
  std::vector<const ir::HostValue*> arguments(ports.size(), nullptr);
  std::string known;
  for (const Port& p : ports)
    known += (known.empty() ? "" : ", ") + fmt::format("{}: {}", p.name, p.type.ToText());
  for (const NamedTensor& t : inputs) {
    auto it =
        std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == t.name; });
    if (it == ports.end())
      return InvalidArgument("the model has no input '{}'; it has {}", t.name, known);
    const size_t at = it - ports.begin();
    if (arguments[at]) return InvalidArgument("input '{}' is given twice", t.name);
    if (t.value.dtype() != it->type.dtype() || t.value.rank() != it->type.rank()) {
      return InvalidArgument("input '{}' is {}, the model wants {}", t.name, TypeText(t.value),
                             it->type.ToText());
    }
    arguments[at] = &t.value;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i])
      return InvalidArgument("input '{}' ({}) is missing", ports[i].name, ports[i].type.ToText());
  return arguments;
}

absl::StatusOr<ir::Bindings> Session::BindingsFor(std::span<const ir::HostValue* const> arguments,
                                                  size_t function) const {
  ir::Bindings bindings = fixed_;
  FORGE_RETURN_IF_ERROR(ir::BindArguments(*shared_->functions()[function], arguments, bindings));
  return bindings;
}

std::span<const ir::FusionGap> Session::gaps() const { return shared_->gaps(); }

SessionStatistics Session::statistics() const {
  SessionStatistics s;
  if (current_ != nullptr) static_cast<PlanStatistics&>(s) = current_->statistics();
  s.lower_ms = lower_ms_;
  s.compile_ms = compile_ms_;
  s.weight_bytes = shared_->share().constants.bytes();
  return s;
}

absl::Status Session::AddStates() {
  std::vector<VariableStore::Keyed> states;
  auto add = [&](const ir::Variable* v) { states.push_back({v, VariableKeys().Of(*v)}); };
  for (const ir::Function* f : shared_->functions()) {
    for (const auto& r : f->reads())
      if (r.variable->role != ir::Variable::Role::kConstant) add(r.variable);
    for (const auto& u : f->updates()) {
      if (u.variable->role == ir::Variable::Role::kConstant)
        return InvalidArgument("function '{}' changes '{}', which is a constant in this Session",
                               f->name(), u.variable->name);
      add(u.variable);
    }
  }
  states_ = std::make_unique<States>(device_);
  if (options_.compile_only) return absl::OkStatus();
  return states_->store.Add(states, states_->places).status();
}

absl::StatusOr<std::unique_ptr<Session::Plan>> Session::MakePlan(const ir::Bindings& bindings,
                                                                 size_t function) {
  auto plan = std::make_unique<Plan>();
  plan->function = function;
  plan->bindings = bindings;
  const ir::Function& f = *shared_->functions()[function];
  FORGE_ASSIGN_OR_RETURN(plan->bound,
                         BindLowered(f, device_->target(), bindings, LoweringFor(options_)));
  // Constants are packed and go up while kernels compile.
  std::future<absl::Status> loading = std::async(std::launch::async, [&] {
    return shared_->LoadConstants(plan->bound, options_, plan->constants);
  });
  const VariablePlaces* places[] = {&plan->constants, &states_->places};
  Executable::Options build{.timestamps = options_.timestamps,
                            .stepwise = options_.stepwise,
                            .compile_only = options_.compile_only};
  build.compile = {.progress = options_.progress};
  if (!options_.compile_only) build.compile.autotune = options_.autotune;
  Executable::Inputs inputs{device_, *plan->bound.main, places, shared_->share().programs, {}};
  inputs.wait_for_variables = [&]() -> absl::Status {
    FORGE_RETURN_IF_ERROR(loading.get());
    if (options_.memory_limit == UINT64_MAX) return absl::OkStatus();
    const uint64_t weights = shared_->share().constants.bytes();
    if (weights > options_.memory_limit)
      return ResourceExhausted("the weights take {} bytes, and the limit is {}", weights,
                               options_.memory_limit);
    build.memory_limit = options_.memory_limit - weights;  // read after this, to place the arena
    return absl::OkStatus();
  };
  FORGE_ASSIGN_OR_RETURN(plan->executable, Executable::Build(inputs, build));
  if (loading.valid()) FORGE_RETURN_IF_ERROR(loading.get());  // compile_only waits for nothing
  return plan;
}

absl::Status Session::Prepare(const ir::Bindings& bindings, size_t function) {
  for (const auto& [symbol, value] : bindings) {
    if (value < symbol->min || value > symbol->max || value % symbol->divisor != 0) {
      return InvalidArgument("dimension '{}' is {}, the model wants {} to {} in steps of {}",
                             symbol->name, value, symbol->min, symbol->max, symbol->divisor);
    }
  }
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if ((*it)->function != function || (*it)->bindings != bindings) continue;
    std::rotate(it, it + 1, plans_.end());
    current_ = plans_.back()->executable.get();
    return absl::OkStatus();
  }
  const int64_t begin = NowNanoseconds();
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(bindings, function));
  auto same = [&](const auto& p) { return p->function == function; };
  if (std::count_if(plans_.begin(), plans_.end(), same) == kMaxPlans)
    plans_.erase(std::find_if(plans_.begin(), plans_.end(), same));
  plans_.push_back(std::move(plan));
  current_ = plans_.back()->executable.get();
  compile_ms_ = Milliseconds(begin);
  return absl::OkStatus();
}

absl::Status Session::Bind(const std::map<std::string, int64_t>& dims, size_t function) {
  ir::Bindings bindings = fixed_;
  for (const auto& [name, value] : dims) {
    ir::SymbolRef symbol = shared_->module().FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    bindings[symbol] = value;
  }
  for (const Port& p : Face(function).inputs) {
    std::vector<ir::SymbolRef> symbols;
    for (const ir::Dim& d : p.type.shape()) d.CollectSymbols(symbols);
    for (const ir::SymbolRef& s : symbols)
      if (!bindings.contains(s))
        return InvalidArgument("dimension '{}' of input '{}' is not given", s->name, p.name);
  }
  return Prepare(bindings, function);
}

std::vector<NamedTensor> Session::Name(std::vector<ir::HostValue> results, size_t function) const {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < results.size(); ++i)
    named.push_back({Face(function).outputs[i].name, std::move(results[i])});
  return named;
}

absl::StatusOr<std::vector<NamedTensor>> Session::Run(std::span<const NamedTensor> inputs,
                                                      size_t function) {
  if (options_.compile_only) return InvalidArgument("the Session was made to compile only");
  FORGE_ASSIGN_OR_RETURN(std::vector<const ir::HostValue*> arguments, Match(inputs, function));
  FORGE_ASSIGN_OR_RETURN(ir::Bindings bindings, BindingsFor(arguments, function));
  FORGE_RETURN_IF_ERROR(Prepare(bindings, function));
  cancel_ = false;
  std::vector<ir::HostValue> results;
  FORGE_RETURN_IF_ERROR(current_->Run(arguments, results, &cancel_));
  return Name(std::move(results), function);
}

absl::StatusOr<std::vector<NamedTensor>> Session::RunStepwise(
    std::span<const NamedTensor> inputs,
    const std::function<absl::Status(const StepView&)>& observer, size_t function) {
  if (!options_.stepwise)
    return InvalidArgument("the Session was made without SessionOptions::stepwise");
  FORGE_ASSIGN_OR_RETURN(std::vector<const ir::HostValue*> arguments, Match(inputs, function));
  FORGE_ASSIGN_OR_RETURN(ir::Bindings bindings, BindingsFor(arguments, function));
  FORGE_RETURN_IF_ERROR(Prepare(bindings, function));
  std::vector<ir::HostValue> results;
  FORGE_RETURN_IF_ERROR(current_->RunStepwise(arguments, results, observer));
  return Name(std::move(results), function);
}

}  // namespace forge
