// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <algorithm>

#include "base/platform.h"
#include "formats/load.h"
#include "ir/interpreter.h"
#include "runtime/executable.h"
#include "runtime/lower.h"

namespace forge {
namespace {

// Bound plans a Session keeps: enough for a detector that sees a few picture sizes.
constexpr size_t kMaxPlans = 8;

double Milliseconds(int64_t since) { return static_cast<double>(NowNanoseconds() - since) * 1e-6; }

std::string TypeText(const ir::HostValue& v) { return v.type().ToText(); }

}  // namespace

// What a device makes of a model and Sessions share: the lowered functions, weights and programs.
class ModelOnDevice {
 public:
  ModelOnDevice(DeviceRef d, Lowered l)
      : device(d), lowered(std::move(l)), constants(d), programs(d) {}

  // Uploads what has bytes and computes what depends on it.
  absl::Status LoadVariables(const SessionOptions& options) {
    return Compute(*lowered.module, *lowered.load, *lowered.main, options);
  }

  // Gives the variables that `main` reads a place, and runs `load` for those it computes.
  absl::Status Compute(const ir::Module& owner, const ir::Function& load, const ir::Function& main,
                       const SessionOptions& options) {
    Executable::Options build{.compile_only = options.compile_only};
    if (options.progress)
      build.progress = [&](size_t done, size_t total) {
        options.progress("packing weights", done, total);
      };
    if (options.compile_only)
      return Executable::Build({device, load, {}, programs, {}}, build).status();
    std::vector<ir::Variable*> needed;
    for (const ir::Function* f : {&load, &main})
      for (const auto& r : f->reads())
        if (r.variable->role != ir::Variable::Role::kState) needed.push_back(r.variable);
    FORGE_RETURN_IF_ERROR(constants.Add(needed));
    if (load.results().empty()) return absl::OkStatus();
    std::vector<VariablePlace> into;
    for (const auto& r : load.results()) {
      const VariablePlace* place = constants.Find(owner.FindVariable(r.name));
      FORGE_CHECK(place != nullptr);
      into.push_back(*place);
    }
    const VariableStore* stores[] = {&constants};
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Executable> e,
                           Executable::Build({device, load, stores, programs, into}, build));
    return e->RunForVariables();
  }

  DeviceRef device;
  Lowered lowered;
  VariableStore constants;
  ProgramCache programs;
};

// One binding of a Session's function.
struct Session::Plan {
  ir::Bindings bindings;
  BoundFunctions bound;
  std::unique_ptr<Executable> executable;
};

struct Model::Shared {
  struct Entry {
    const Device* device;
    std::string key;
    std::weak_ptr<ModelOnDevice> made;
  };
  std::mutex mutex;
  std::vector<Entry> entries;
};

Model::Model(std::unique_ptr<ir::Module> module)
    : module_(std::move(module)), shared_(std::make_unique<Shared>()) {}
Model::~Model() = default;

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, LoadModel(path));
  return std::make_shared<const Model>(std::move(module));
}

Session::~Session() = default;

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Model> model,
                                                         DeviceRef device, SessionOptions options) {
  std::unique_ptr<Session> s(new Session);
  const int64_t begin = NowNanoseconds();
  s->model_ = std::move(model);
  s->device_ = std::move(device);
  s->options_ = std::move(options);
  s->states_ = std::make_unique<VariableStore>(s->device_);
  Model::Shared& shared = *s->model_->shared_;
  std::string key = s->options_.function + (s->options_.compile_only ? "\ncompile only" : "");
  for (const std::string& o : s->options_.outputs) key += "\n" + o;
  std::lock_guard lock(shared.mutex);
  for (const auto& e : shared.entries)
    if (e.device == s->device_.get() && e.key == key) s->shared_ = e.made.lock();
  if (!s->shared_) {
    FORGE_ASSIGN_OR_RETURN(Lowered lowered,
                           Lower(s->model_->module(), s->device_->target(),
                                 {s->options_.function, s->options_.outputs, s->options_.observe}));
    s->shared_ = std::make_shared<ModelOnDevice>(s->device_, std::move(lowered));
    FORGE_RETURN_IF_ERROR(s->shared_->LoadVariables(s->options_));
    std::erase_if(shared.entries, [](const auto& e) { return e.made.expired(); });
    shared.entries.push_back({s->device_.get(), key, s->shared_});
  }
  const ir::Function& f = *s->shared_->lowered.main;
  for (const auto& a : f.arguments()) s->inputs_.push_back({a.name, f.type(a.value)});
  for (const auto& r : f.results()) s->outputs_.push_back({r.name, f.type(r.value)});
  for (const auto& [name, value] : s->options_.dims) {
    ir::SymbolRef symbol = s->shared_->lowered.module->FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    s->fixed_[symbol] = value;
  }
  s->lower_ms_ = Milliseconds(begin);
  return s;
}

absl::StatusOr<std::vector<const ir::HostValue*>> Session::Match(
    std::span<const NamedTensor> inputs) const {
  std::vector<const ir::HostValue*> arguments(inputs_.size(), nullptr);
  std::string known;
  for (const Port& p : inputs_)
    known += (known.empty() ? "" : ", ") + fmt::format("{}: {}", p.name, p.type.ToText());
  for (const NamedTensor& t : inputs) {
    auto it = std::find_if(inputs_.begin(), inputs_.end(),
                           [&](const Port& p) { return p.name == t.name; });
    if (it == inputs_.end())
      return InvalidArgument("the model has no input '{}'; it has {}", t.name, known);
    const size_t at = it - inputs_.begin();
    if (arguments[at]) return InvalidArgument("input '{}' is given twice", t.name);
    if (t.value.dtype() != it->type.dtype() || t.value.rank() != it->type.rank()) {
      return InvalidArgument("input '{}' is {}, the model wants {}", t.name, TypeText(t.value),
                             it->type.ToText());
    }
    arguments[at] = &t.value;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i])
      return InvalidArgument("input '{}' ({}) is missing", inputs_[i].name,
                             inputs_[i].type.ToText());
  return arguments;
}

absl::StatusOr<ir::Bindings> Session::BindingsFor(
    std::span<const ir::HostValue* const> arguments) const {
  ir::Bindings bindings = fixed_;
  FORGE_RETURN_IF_ERROR(ir::BindArguments(*shared_->lowered.main, arguments, bindings));
  for (const auto& [symbol, value] : bindings) {
    if (value < symbol->min || value > symbol->max || value % symbol->divisor != 0) {
      return InvalidArgument("dimension '{}' is {}, the model wants {} to {} in steps of {}",
                             symbol->name, value, symbol->min, symbol->max, symbol->divisor);
    }
  }
  return bindings;
}

SessionStatistics Session::statistics() const {
  SessionStatistics s{
      .lower_ms = lower_ms_, .compile_ms = compile_ms_, .weight_bytes = shared_->constants.bytes()};
  if (current_ == nullptr) return s;
  const PlanStatistics p = current_->statistics();
  s.steps = p.steps;
  s.dispatches = p.dispatches;
  s.barriers = p.barriers;
  s.kernels_made = p.kernels_made;
  s.kernels_reused = p.kernels_reused;
  s.arena_bytes = p.arena_bytes;
  s.largest_live_set = p.largest_live_set;
  s.staging_bytes = p.staging_bytes;
  return s;
}

absl::Status Session::AddStates(const ir::Function& f) {
  std::vector<ir::Variable*> states;
  for (const auto& r : f.reads())
    if (r.variable->role == ir::Variable::Role::kState) states.push_back(r.variable);
  for (const auto& u : f.updates()) states.push_back(u.variable);
  return states_->Add(states);
}

absl::Status Session::Prepare(const ir::Bindings& bindings) {
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if ((*it)->bindings != bindings) continue;
    std::rotate(it, it + 1, plans_.end());
    current_ = plans_.back()->executable.get();
    return absl::OkStatus();
  }
  const int64_t begin = NowNanoseconds();
  auto plan = std::make_unique<Plan>();
  plan->bindings = bindings;
  const Lowered& lowered = shared_->lowered;
  const LowerOptions lower{options_.function, options_.outputs, options_.observe};
  FORGE_ASSIGN_OR_RETURN(plan->bound,
                         BindLowered(*lowered.main, device_->target(), bindings, lower));
  FORGE_RETURN_IF_ERROR(
      shared_->Compute(*plan->bound.module, *plan->bound.load, *plan->bound.main, options_));
  if (!options_.compile_only) FORGE_RETURN_IF_ERROR(AddStates(*plan->bound.main));
  const VariableStore* stores[] = {&shared_->constants, states_.get()};
  Executable::Options build{.timestamps = options_.timestamps,
                            .stepwise = options_.stepwise,
                            .compile_only = options_.compile_only};
  if (options_.progress)
    build.progress = [this](size_t done, size_t total) {
      options_.progress("compiling kernels", done, total);
    };
  FORGE_ASSIGN_OR_RETURN(
      plan->executable,
      Executable::Build({device_, *plan->bound.main, stores, shared_->programs, {}}, build));
  if (plans_.size() == kMaxPlans) plans_.erase(plans_.begin());
  plans_.push_back(std::move(plan));
  current_ = plans_.back()->executable.get();
  compile_ms_ = Milliseconds(begin);
  return absl::OkStatus();
}

absl::Status Session::Bind(const std::map<std::string, int64_t>& dims) {
  ir::Bindings bindings = fixed_;
  for (const auto& [name, value] : dims) {
    ir::SymbolRef symbol = shared_->lowered.module->FindSymbol(name);
    if (!symbol) return InvalidArgument("the model has no dimension '{}'", name);
    bindings[symbol] = value;
  }
  for (const Port& p : inputs_) {
    std::vector<ir::SymbolRef> symbols;
    for (const ir::Dim& d : p.type.shape()) d.CollectSymbols(symbols);
    for (const ir::SymbolRef& s : symbols)
      if (!bindings.contains(s))
        return InvalidArgument("dimension '{}' of input '{}' is not given", s->name, p.name);
  }
  return Prepare(bindings);
}

std::vector<NamedTensor> Session::Name(std::vector<ir::HostValue> results) const {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < results.size(); ++i)
    named.push_back({outputs_[i].name, std::move(results[i])});
  return named;
}

absl::StatusOr<std::vector<NamedTensor>> Session::Run(std::span<const NamedTensor> inputs) {
  if (options_.compile_only) return InvalidArgument("the Session was made to compile only");
  FORGE_ASSIGN_OR_RETURN(std::vector<const ir::HostValue*> arguments, Match(inputs));
  FORGE_ASSIGN_OR_RETURN(ir::Bindings bindings, BindingsFor(arguments));
  FORGE_RETURN_IF_ERROR(Prepare(bindings));
  cancel_ = false;
  std::vector<ir::HostValue> results;
  FORGE_RETURN_IF_ERROR(current_->Run(arguments, results, &cancel_));
  return Name(std::move(results));
}

absl::StatusOr<std::vector<NamedTensor>> Session::RunStepwise(
    std::span<const NamedTensor> inputs,
    const std::function<absl::Status(const StepView&)>& observer) {
  if (!options_.stepwise)
    return InvalidArgument("the Session was made without SessionOptions::stepwise");
  FORGE_ASSIGN_OR_RETURN(std::vector<const ir::HostValue*> arguments, Match(inputs));
  FORGE_ASSIGN_OR_RETURN(ir::Bindings bindings, BindingsFor(arguments));
  FORGE_RETURN_IF_ERROR(Prepare(bindings));
  std::vector<ir::HostValue> results;
  FORGE_RETURN_IF_ERROR(current_->RunStepwise(arguments, results, observer));
  return Name(std::move(results));
}

}  // namespace forge
