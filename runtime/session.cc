// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <algorithm>
#include <set>

#include "base/platform.h"
#include "formats/load.h"
#include "ir/graph/interpreter.h"
#include "runtime/model_on_device.h"
#include "runtime/plan/resolve.h"
#include "runtime/staged_function.h"

namespace forge {
namespace {

// Bound plans a Session keeps of each function: enough for a detector that sees a few picture
// sizes.
constexpr ptrdiff_t kMaxPlans = 8;

double Milliseconds(int64_t since) { return static_cast<double>(NowNanoseconds() - since) * 1e-6; }

std::string TypeText(const ir::HostValue& v) { return v.type().ToText(); }

std::string TextOf(std::span<const Session::Port> ports) {
  std::string all;
  for (const Session::Port& p : ports)
    all += (all.empty() ? "" : ", ") + fmt::format("{}: {}", p.name, p.type.ToText());
  return all;
}

absl::Status CheckBounds(const ir::Symbol& s, int64_t value) {
  if (value >= s.min && value <= s.max && value % s.divisor == 0) return absl::OkStatus();
  return InvalidArgument("dimension '{}' is {}, the model wants {} to {} in steps of {}", s.name,
                         value, s.min, s.max, s.divisor);
}

// Are all types open in these alone?
absl::Status CheckStepValues(const ir::Function& f, const ir::Bindings& given) {
  for (uint32_t v = 0; v < f.value_count(); ++v) {
    const ir::Type& type = f.type(v);
    if (!type.is_tensor() || type.is_constant()) continue;
    std::vector<ir::SymbolRef> symbols;
    for (const ir::Dim& d : type.shape()) d.CollectSymbols(symbols);
    for (const ir::SymbolRef& s : symbols)
      if (!given.contains(s))
        return InvalidArgument("the step value '{}' is not given: no input's shape tells it",
                               s->name);
  }
  return absl::OkStatus();
}

std::vector<TensorRef> RefsOf(std::span<const ir::HostValue* const> values) {
  std::vector<TensorRef> refs;
  for (const ir::HostValue* v : values) refs.push_back({v->dtype(), v->shape(), v->bytes()});
  return refs;
}

}  // namespace

// One binding of one of a Session's functions, for all step values that it leaves open.
struct Session::Plan {
  size_t function = 0;
  ir::Bindings bindings;
  std::vector<ir::SymbolRef> step_symbols;
  std::vector<int64_t> step_values;  // of the newest run
  BoundFunctions bound;
  std::vector<ir::Type> inputs, outputs;  // with numbers for extents
  std::vector<uint64_t> input_bytes, output_bytes;
  WeightSizes weights;
  VariablePlaces constants;
  std::unique_ptr<Executable> executable;

  // Where the plan serves them, makes their step values its own.  errors: of sizes
  absl::StatusOr<bool> Serves(const ir::Bindings& given);
  absl::Status ReadTypes();
  bool Takes(std::span<const TensorRef> given) const;
  // errors: InvalidArgument (sizes, overlaps)
  absl::Status CheckMemory(std::span<const TensorRef> in,
                           std::span<const std::span<uint8_t>> out) const;
};

absl::StatusOr<bool> Session::Plan::Serves(const ir::Bindings& given) {
  if (given.size() != bindings.size() + step_symbols.size()) return false;
  for (const auto& [symbol, value] : bindings)
    if (const auto at = given.find(symbol); at == given.end() || at->second != value) return false;
  std::vector<int64_t> values;
  for (const ir::SymbolRef& s : step_symbols) {
    const auto at = given.find(s);
    if (at == given.end()) return false;
    values.push_back(at->second);
  }
  if (values == step_values) return true;
  step_values = std::move(values);
  FORGE_RETURN_IF_ERROR(ReadTypes());
  return true;
}

absl::Status Session::Plan::ReadTypes() {
  const ir::Function& f = *bound.main;
  ir::Bindings at;
  for (size_t i = 0; i < step_symbols.size(); ++i) at[step_symbols[i]] = step_values[i];
  inputs.clear(), outputs.clear(), input_bytes.clear(), output_bytes.clear();
  for (const auto& a : f.arguments()) {
    inputs.push_back(f.type(a.value).Bind(at));
    FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(inputs.back()));
    input_bytes.push_back(bytes);
  }
  for (const auto& r : f.results()) {
    outputs.push_back(f.type(r.value).Bind(at));
    FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(outputs.back()));
    output_bytes.push_back(bytes);
  }
  return absl::OkStatus();
}

bool Session::Plan::Takes(std::span<const TensorRef> given) const {
  const auto same = [](const ir::Type& t, const TensorRef& r) {
    return t.dtype() == r.dtype &&
           std::equal(t.shape().begin(), t.shape().end(), r.shape.begin(), r.shape.end(),
                      [](const ir::Dim& d, int64_t n) { return d.constant() == n; });
  };
  return std::equal(inputs.begin(), inputs.end(), given.begin(), given.end(), same);
}

absl::Status Session::Plan::CheckMemory(std::span<const TensorRef> in,
                                        std::span<const std::span<uint8_t>> out) const {
  if (out.size() != output_bytes.size())
    return InvalidArgument("the model has {} outputs, but memory is given for {}",
                           output_bytes.size(), out.size());
  const auto meet = [](std::span<const uint8_t> a, std::span<const uint8_t> b) {
    return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
  };
  const auto other_size = [](std::string_view what, size_t i, const ir::Type& type, uint64_t bytes,
                             uint64_t given) {
    return InvalidArgument("{} {} is {} of {} bytes, but the memory given has {} bytes", what, i,
                           type.ToText(), bytes, given);
  };
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].bytes.size() != input_bytes[i])
      return other_size("input", i, inputs[i], input_bytes[i], in[i].bytes.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].size() != output_bytes[i])
      return other_size("output", i, outputs[i], output_bytes[i], out[i].size());
    for (size_t k = 0; k < in.size(); ++k)
      if (meet(in[k].bytes, out[i]))
        return InvalidArgument("the memory of output {} overlaps that of input {}", i, k);
    for (size_t k = 0; k < i; ++k)
      if (meet(out[k], out[i]))
        return InvalidArgument("the memory of output {} overlaps that of output {}", i, k);
  }
  return absl::OkStatus();
}

// What runs change.
struct Session::States {
  explicit States(DeviceRef device) : store(std::move(device)) {}
  VariableStore store;
  VariablePlaces places;
};

// While it lives, its call is the one in progress.
class Session::Turn {
 public:
  explicit Turn(Session& session) : session_(session) {
    if (session.forks_ != ForkCount() || session.caller_ == std::this_thread::get_id()) return;
    lock_ = std::unique_lock(session.turn_);
    session.caller_ = std::this_thread::get_id();
    session.cancelled_ = false;
  }
  ~Turn() {
    if (lock_.owns_lock()) session_.caller_ = std::thread::id();
  }
  Turn(const Turn&) = delete;
  absl::Status status() const {
    if (lock_.owns_lock()) return absl::OkStatus();
    if (session_.forks_ != ForkCount())
      return Aborted(
          "the Session was created before this process was forked; create a new one in the child "
          "process");
    return InvalidArgument("a callback must not call the Session that called it");
  }

 private:
  Session& session_;
  std::unique_lock<std::mutex> lock_;
};

// What the parts of a model share, by device.
struct Model::Shares {
  std::mutex mutex;
  std::map<const Device*, std::weak_ptr<ModelShare>> of;

  std::shared_ptr<ModelShare> Get(const DeviceRef& device) {
    std::lock_guard lock(mutex);
    std::erase_if(of, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<ModelShare>& known = of[device.get()];
    std::shared_ptr<ModelShare> share = known.lock();
    if (!share) known = share = std::make_shared<ModelShare>(device);
    return share;
  }
};

struct Model::Shared {
  struct Entry {
    const Device* device;
    std::string key;
    std::weak_ptr<ModelOnDevice> made;
  };
  std::mutex mutex;
  std::vector<Entry> entries;
  std::shared_ptr<Shares> shares = std::make_shared<Shares>();

  // The lowered functions, made at the first use.  errors: those of Lower
  absl::StatusOr<std::shared_ptr<ModelOnDevice>> Get(const ir::Module& module,
                                                     const DeviceRef& device,
                                                     const SessionOptions& options);
};

Model::Model(std::unique_ptr<ir::Module> module)
    : module_(std::move(module)), shared_(std::make_unique<Shared>()) {}
Model::Model(std::unique_ptr<ir::Module> module, const Model& whole) : Model(std::move(module)) {
  shared_->shares = whole.shared_->shares;
}
Model::~Model() = default;

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(
    const std::filesystem::path& path, const std::function<void(size_t, size_t)>& progress) {
  LoadOptions options;
  options.onnx.progress = progress;
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, LoadModel(path, options));
  return std::make_shared<const Model>(std::move(module));
}

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(const Bytes& file,
                                                         std::string_view where) {
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, LoadModel(file, where));
  return std::make_shared<const Model>(std::move(module));
}

Session::~Session() {
  if (forks_ == ForkCount()) return;
  // Devices would wait for threads that are in the other process alone.
  static_cast<void>(new std::vector(std::move(plans_)));
  static_cast<void>(states_.release());
  static_cast<void>(new std::shared_ptr(std::move(shared_)));
  static_cast<void>(new DeviceRef(std::move(device_)));
}

namespace {

LowerOptions LoweringFor(const SessionOptions& options) {
  LowerOptions lower;
  lower.functions = options.functions;
  lower.outputs = options.outputs;
  lower.freeze = options.freeze;
  lower.fuse = options.debug.fuse;
  lower.precision = options.precision.products;
  lower.observe = options.debug.observe;
  return lower;
}

// Sessions whose options agree here may share what was lowered.
std::string KeyOf(const SessionOptions& options) {
  std::string key = fmt::format("{} {} {} {}", options.freeze, options.debug.fuse,
                                options.debug.compile_only, NameOf(options.precision));
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
  for (const Entry& e : entries) {
    const std::shared_ptr<ModelOnDevice> made = e.device == device.get() ? e.made.lock() : nullptr;
    if (made && e.key == key) return made;
  }
  FORGE_ASSIGN_OR_RETURN(Lowered lowered, Lower(module, device->target(), LoweringFor(options)));
  auto made = std::make_shared<ModelOnDevice>(shares->Get(device), std::move(lowered));
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
  FORGE_ASSIGN_OR_RETURN(const bool staged, s->CreateStages());
  if (staged) return s;
  FORGE_ASSIGN_OR_RETURN(s->shared_,
                         s->model_->shared_->Get(s->model_->module(), s->device_, s->options_));
  for (const ir::Function* f : s->shared_->functions())
    s->AddPorts(*f, f->arguments().size(), f->results().size());
  for (const auto& [name, value] : s->options_.dims) {
    ir::SymbolRef symbol = s->shared_->module().FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    s->fixed_[symbol] = value;
  }
  FORGE_RETURN_IF_ERROR(s->AddStates());
  s->lower_ms_ = Milliseconds(begin);
  return s;
}

// Where types depend on values of a run, all functions are staged.
absl::StatusOr<bool> Session::CreateStages() {
  bool any = false;
  for (const std::string& name : options_.functions) {
    FORGE_ASSIGN_OR_RETURN(const bool waits,
                           WaitsForValues(model_->module(), name, options_.freeze));
    any |= waits;
  }
  if (!any) return false;
  for (const auto& [name, value] : options_.dims) {
    const ir::SymbolRef symbol = model_->module().FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    fixed_[symbol] = value;
  }
  for (const std::string& name : options_.functions) {
    FORGE_ASSIGN_OR_RETURN(staged_.emplace_back(), StagedFunction::Create(*this, name, held_));
    const StagedFunction& staged = *staged_.back();
    AddPorts(staged.function(), staged.inputs(), staged.outputs());
  }
  return true;
}

void Session::AddPorts(const ir::Function& f, size_t inputs, size_t outputs) {
  FunctionPorts& ports = ports_.emplace_back();
  for (const auto& a : f.arguments().first(inputs))
    ports.inputs.push_back({a.name, f.type(a.value)});
  for (const auto& r : f.results().first(outputs))
    ports.outputs.push_back({r.name, f.type(r.value)});
}

absl::StatusOr<std::unique_ptr<Session>> Session::CreatePart(std::shared_ptr<const Model> model,
                                                             const Session& whole,
                                                             const std::string& function) {
  SessionOptions options = whole.options_;
  options.functions = {function};
  options.outputs.clear();
  options.dims.clear();
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> part,
                         Create(std::move(model), whole.device_, std::move(options)));
  part->cancel_ = whole.cancel_;
  return part;
}

absl::StatusOr<std::vector<const ir::HostValue*>> Session::Match(
    std::span<const NamedTensor> inputs, size_t function) const {
  const std::vector<Port>& ports = PortsOf(function).inputs;
  std::vector<const ir::HostValue*> arguments(ports.size(), nullptr);
  for (const NamedTensor& t : inputs) {
    auto it =
        std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == t.name; });
    if (it == ports.end())
      return InvalidArgument("the model has no input '{}'; its inputs are {}", t.name,
                             TextOf(ports));
    const size_t at = it - ports.begin();
    if (arguments[at]) return InvalidArgument("input '{}' is given twice", t.name);
    const bool ranked = it->type.is_tensor();
    const bool typed = ranked || it->type.kind() == ir::Type::Kind::kUnranked;
    if ((typed && (!t.value.is_tensor() || t.value.dtype() != it->type.dtype())) ||
        (ranked && t.value.rank() != it->type.rank())) {
      return InvalidArgument("input '{}' is {}, but the model expects {}", t.name,
                             TypeText(t.value), it->type.ToText());
    }
    arguments[at] = &t.value;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i])
      return InvalidArgument("input '{}' ({}) is missing", ports[i].name, ports[i].type.ToText());
  return arguments;
}

absl::StatusOr<ir::Bindings> Session::BindingsFor(std::span<const TensorRef> inputs,
                                                  size_t function) const {
  std::vector<ir::HostValue> values;
  for (const TensorRef& r : inputs) {
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value,
                           ir::HostValue::Of(r.dtype, r.shape, Bytes(r.bytes, nullptr)));
    values.push_back(std::move(value));
  }
  std::vector<const ir::HostValue*> arguments;
  for (const ir::HostValue& v : values) arguments.push_back(&v);
  ir::Bindings bindings = fixed_;
  FORGE_RETURN_IF_ERROR(ir::BindArguments(*shared_->functions()[function], arguments, bindings));
  return bindings;
}

std::span<const ir::FusionGap> Session::gaps() const {
  return shared_ ? shared_->gaps() : std::span<const ir::FusionGap>();
}

std::vector<SessionPart> Session::parts(size_t function) const {
  std::vector<SessionPart> out;
  if (runs_in_parts()) staged_[function]->AddParts(out);
  return out;
}

const Executable* Session::executable() const {
  return plans_.empty() ? nullptr : plans_.back()->executable.get();
}

SessionStatistics Session::statistics() const {
  SessionStatistics s;
  if (executable() != nullptr) static_cast<PlanStatistics&>(s) = executable()->statistics();
  s.lower_ms = lower_ms_;
  s.compile_ms = compile_ms_;
  if (!options_.debug.compile_only) s.weight_bytes = WeightBytes();
  return s;
}

uint64_t Session::WeightBytes(const Plan* also) const {
  WeightSizes all;
  for (const auto& plan : plans_) all.insert(plan->weights.begin(), plan->weights.end());
  if (also) all.insert(also->weights.begin(), also->weights.end());
  uint64_t bytes = 0;
  for (const auto& [key, size] : all) bytes += size;
  return bytes;
}

absl::Status Session::CheckLimit(const Plan& plan) const {
  const uint64_t weights = WeightBytes(&plan), needed = weights + state_bytes_;
  if (needed <= options_.memory_limit) return absl::OkStatus();
  return ResourceExhausted(
      "the weights need {} bytes and the states {}, but the memory limit is {}", weights,
      state_bytes_, options_.memory_limit);
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
  if (options_.debug.compile_only) return absl::OkStatus();
  std::set<std::string> keys;
  for (const VariableStore::Keyed& k : states) {
    FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(k.variable->type));
    if (keys.insert(k.key).second) state_bytes_ += AlignUp(bytes, kAlignment);
  }
  if (state_bytes_ > options_.memory_limit)
    return ResourceExhausted("the states need {} bytes, but the memory limit is {}", state_bytes_,
                             options_.memory_limit);
  return states_->store.Add(states, states_->places).status();
}

// Step values stay open where the device has programs for that.
absl::StatusOr<std::unique_ptr<Session::Plan>> Session::MakePlan(const ir::Bindings& bindings,
                                                                 size_t function) {
  ir::Bindings step_values;
  for (const auto& [symbol, value] : bindings)
    if (symbol->when == ir::When::kStep) step_values.emplace(symbol, value);
  const bool open = device_->keeps_step_values() && !options_.debug.stepwise;
  if (step_values.empty() || !open) return MakePlanFor(bindings, {}, function);
  ir::Bindings others = bindings;
  for (const auto& [symbol, value] : step_values) others.erase(symbol);
  absl::StatusOr<std::unique_ptr<Plan>> plan = MakePlanFor(others, step_values, function);
  // What is wrong with all values may not be wrong with these.
  if (plan.ok() || absl::IsAborted(plan.status())) return plan;
  return MakePlanFor(bindings, {}, function);
}

absl::StatusOr<std::unique_ptr<Session::Plan>> Session::MakePlanFor(const ir::Bindings& bindings,
                                                                    const ir::Bindings& step_values,
                                                                    size_t function) {
  auto plan = std::make_unique<Plan>();
  plan->function = function;
  plan->bindings = bindings;
  for (const auto& [symbol, value] : step_values) {
    plan->step_symbols.push_back(symbol);
    plan->step_values.push_back(value);
  }
  const ir::Function& f = *shared_->functions()[function];
  FORGE_ASSIGN_OR_RETURN(plan->bound,
                         BindLowered(f, device_->target(), bindings, LoweringFor(options_)));
  FORGE_RETURN_IF_ERROR(CheckStepValues(*plan->bound.main, step_values));
  FORGE_RETURN_IF_ERROR(plan->ReadTypes());
  FORGE_ASSIGN_OR_RETURN(plan->weights, shared_->SizesOf(plan->bound));
  if (!options_.debug.compile_only) FORGE_RETURN_IF_ERROR(CheckLimit(*plan));
  FORGE_RETURN_IF_ERROR(CheckCancelled(cancel_));
  // Constants are packed and go up while kernels compile.
  std::future<absl::Status> loading = InBackground([&, plan = plan.get()] {
    return shared_->LoadConstants(plan->bound, options_, cancel_, plan->constants);
  });
  const VariablePlaces* places[] = {&plan->constants, &states_->places};
  Executable::Options build{.timestamps = options_.debug.timestamps,
                            .stepwise = options_.debug.stepwise,
                            .compile_only = options_.debug.compile_only};
  build.compile = {
      .fast = options_.precision.fast, .progress = options_.progress, .cancel = cancel_};
  if (!options_.debug.compile_only) {
    build.compile.autotune = options_.autotune;
    build.memory_limit = options_.memory_limit - WeightBytes(plan.get()) - state_bytes_;
  }
  Executable::Inputs inputs{device_, *plan->bound.main, places, shared_->share().programs, {}};
  inputs.step_symbols = plan->step_symbols;
  inputs.wait_for_variables = [&] { return loading.get(); };
  FORGE_ASSIGN_OR_RETURN(plan->executable, Executable::Build(inputs, build));
  if (loading.valid()) FORGE_RETURN_IF_ERROR(loading.get());  // compile_only waits for nothing
  return plan;
}

absl::Status Session::Prepare(const ir::Bindings& bindings, size_t function) {
  for (const auto& [symbol, value] : bindings) FORGE_RETURN_IF_ERROR(CheckBounds(*symbol, value));
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if ((*it)->function != function) continue;
    FORGE_ASSIGN_OR_RETURN(const bool serves, (*it)->Serves(bindings));
    if (!serves) continue;
    std::rotate(it, it + 1, plans_.end());
    return absl::OkStatus();
  }
  const int64_t begin = NowNanoseconds();
  auto same = [&](const auto& p) { return p->function == function; };
  if (std::count_if(plans_.begin(), plans_.end(), same) == kMaxPlans)
    plans_.erase(std::find_if(plans_.begin(), plans_.end(), same));
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(bindings, function));
  plans_.push_back(std::move(plan));
  compile_ms_ = Milliseconds(begin);
  return absl::OkStatus();
}

absl::Status Session::PrepareFor(std::span<const TensorRef> inputs, size_t function) {
  for (size_t i = step_values_set_ ? 0 : plans_.size(); i-- > 0;) {
    if (plans_[i]->function != function || !plans_[i]->Takes(inputs)) continue;
    std::rotate(plans_.begin() + static_cast<ptrdiff_t>(i),
                plans_.begin() + static_cast<ptrdiff_t>(i) + 1, plans_.end());
    return absl::OkStatus();
  }
  FORGE_ASSIGN_OR_RETURN(const ir::Bindings bindings, BindingsFor(inputs, function));
  return Prepare(bindings, function);
}

absl::StatusOr<ir::Types> Session::BoundOutputs(size_t function) const {
  FORGE_CHECK(function < functions());
  for (size_t i = plans_.size(); i-- > 0;)
    if (plans_[i]->function == function)
      return ir::Types(plans_[i]->outputs.begin(), plans_[i]->outputs.end());
  return InvalidArgument("the function is not bound; call Bind or Run first");
}

absl::Status Session::SetStepValue(std::string_view name, int64_t value) {
  Turn turn(*this);
  FORGE_RETURN_IF_ERROR(turn.status());
  const ir::SymbolRef symbol = shared_ ? shared_->module().FindSymbol(name) : nullptr;
  if (!symbol || symbol->when != ir::When::kStep)
    return InvalidArgument("the model has no step value '{}'", name);
  FORGE_RETURN_IF_ERROR(CheckBounds(*symbol, value));
  fixed_[symbol] = value;
  step_values_set_ = true;
  return absl::OkStatus();
}

absl::Status Session::Bind(const std::map<std::string, int64_t>& dims, size_t function) {
  Turn turn(*this);
  FORGE_RETURN_IF_ERROR(turn.status());
  ir::Bindings bindings = fixed_;
  for (const auto& [name, value] : dims) {
    ir::SymbolRef symbol = (shared_ ? shared_->module() : model_->module()).FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    bindings[symbol] = value;
  }
  for (const Port& p : PortsOf(function).inputs) {
    std::vector<ir::SymbolRef> symbols;
    for (const ir::Dim& d : p.type.shape()) d.CollectSymbols(symbols);
    for (const ir::SymbolRef& s : symbols)
      if (!bindings.contains(s))
        return InvalidArgument("dimension '{}' of input '{}' is not given", s->name, p.name);
  }
  if (runs_in_parts()) return absl::OkStatus();
  return Prepare(bindings, function);
}

absl::Status Session::BindFor(std::span<const TensorRef> inputs, size_t function) {
  FORGE_CHECK(function < functions());
  Turn turn(*this);
  FORGE_RETURN_IF_ERROR(turn.status());
  return runs_in_parts() ? absl::OkStatus() : PrepareFor(inputs, function);
}

std::vector<NamedTensor> Session::Name(std::vector<ir::HostValue> results, size_t function) const {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < results.size(); ++i)
    named.push_back({PortsOf(function).outputs[i].name, std::move(results[i])});
  return named;
}

absl::Status Session::Run(std::span<const TensorRef> inputs,
                          std::span<const std::span<uint8_t>> outputs, size_t function) {
  if (options_.debug.compile_only)
    return InvalidArgument(
        "the Session was created with SessionDebug::compile_only and cannot run");
  FORGE_CHECK(function < functions());
  Turn turn(*this);
  FORGE_RETURN_IF_ERROR(turn.status());
  if (runs_in_parts()) return RunParts(inputs, outputs, function);
  FORGE_RETURN_IF_ERROR(PrepareFor(inputs, function));
  const Plan& plan = *plans_.back();
  FORGE_RETURN_IF_ERROR(plan.CheckMemory(inputs, outputs));
  absl::InlinedVector<std::span<const uint8_t>, 16> arguments;
  for (const TensorRef& r : inputs) arguments.push_back(r.bytes);
  return plan.executable->Run({arguments, outputs, plan.step_values}, cancel_);
}

absl::StatusOr<std::vector<NamedTensor>> Session::Run(std::span<const NamedTensor> inputs,
                                                      size_t function) {
  if (options_.debug.compile_only)
    return InvalidArgument(
        "the Session was created with SessionDebug::compile_only and cannot run");
  FORGE_ASSIGN_OR_RETURN(const auto arguments, Match(inputs, function));
  Turn turn(*this);
  FORGE_RETURN_IF_ERROR(turn.status());
  if (!staged_.empty()) {
    FORGE_ASSIGN_OR_RETURN(auto results, staged_[function]->Run(arguments));
    return Name(std::move(results), function);
  }
  FORGE_RETURN_IF_ERROR(PrepareFor(RefsOf(arguments), function));
  const Plan& plan = *plans_.back();
  FORGE_ASSIGN_OR_RETURN(auto results, plan.executable->Run(arguments, plan.step_values, cancel_));
  return Name(std::move(results), function);
}

// On copies: the sizes of the results are known when they are computed.
absl::Status Session::RunParts(std::span<const TensorRef> inputs,
                               std::span<const std::span<uint8_t>> outputs, size_t function) {
  const FunctionPorts& ports = PortsOf(function);
  if (inputs.size() != ports.inputs.size() || outputs.size() != ports.outputs.size())
    return InvalidArgument("the model has {} inputs and {} outputs, not {} and {}",
                           ports.inputs.size(), ports.outputs.size(), inputs.size(),
                           outputs.size());
  std::vector<ir::HostValue> values;
  for (const TensorRef& r : inputs) {
    FORGE_ASSIGN_OR_RETURN(values.emplace_back(),
                           ir::HostValue::Of(r.dtype, r.shape, Bytes(r.bytes, nullptr)));
  }
  std::vector<const ir::HostValue*> arguments;
  for (const ir::HostValue& v : values) arguments.push_back(&v);
  FORGE_ASSIGN_OR_RETURN(const std::vector<ir::HostValue> results,
                         staged_[function]->Run(arguments));
  for (const ir::HostValue& v : results)
    if (!v.is_tensor()) return Unimplemented("an output is {}, no tensor", TypeText(v));
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].bytes().size() != outputs[i].size())
      return InvalidArgument("output {} is {} of {} bytes, but the memory given has {} bytes", i,
                             TypeText(results[i]), results[i].bytes().size(), outputs[i].size());
  for (size_t i = 0; i < results.size(); ++i)
    std::ranges::copy(results[i].bytes(), outputs[i].begin());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NamedTensor>> Session::RunStepwise(
    std::span<const NamedTensor> inputs,
    const std::function<absl::Status(const StepView&)>& observer, size_t function) {
  if (!options_.debug.stepwise)
    return InvalidArgument("the Session was created without SessionDebug::stepwise");
  if (runs_in_parts())
    return Unimplemented(
        "the types of the model depend on values of a run: it runs in parts, not step by step");
  FORGE_ASSIGN_OR_RETURN(const auto arguments, Match(inputs, function));
  Turn turn(*this);
  FORGE_RETURN_IF_ERROR(turn.status());
  FORGE_RETURN_IF_ERROR(PrepareFor(RefsOf(arguments), function));
  FORGE_ASSIGN_OR_RETURN(auto results,
                         plans_.back()->executable->RunStepwise(arguments, observer, cancel_));
  return Name(std::move(results), function);
}

}  // namespace forge
