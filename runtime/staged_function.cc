// SPDX-License-Identifier: Apache-2.0
#include "runtime/staged_function.h"

#include <algorithm>

#include "ir/graph/capture_reads.h"
#include "ir/graph/copier.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/control/loop.h"
#include "ir/passes/passes.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/resolve.h"
#include "runtime/staged_loop.h"

namespace forge {
namespace {

using ir::HostValue;
using Pointers = std::vector<const HostValue*>;

constexpr size_t kMaxVariants = 16;  // kept of each function

}  // namespace

// The function for arguments of certain shapes, and certain values of those that decide types.
struct StagedFunction::Variant {
  // The place of a value that the rest of the function takes.
  struct Source {
    enum Kind : uint8_t { kArgument, kConstant, kPart, kCall } kind = kArgument;
    size_t index = 0, result = 0;  // of a call: which call, which of its results
  };
  // A loop, or a host step.
  struct Call {
    std::unique_ptr<StagedLoop> loop;
    std::optional<ir::AnyOp> step;
    std::string where;  // the node of a host step, for messages
    std::vector<std::optional<Source>> operands;
    absl::StatusOr<std::vector<HostValue>> Run(const Pointers& in, uint64_t most_steps,
                                               const std::atomic<bool>* cancel) const;
  };

  std::vector<size_t> arguments;       // of the function: those that the parts take
  std::vector<size_t> part_arguments;  // of these: those that the part takes
  // The part of the function that can run. Either on the device, or, where it is little arithmetic,
  // on the host; neither: there is nothing to compute yet.
  std::unique_ptr<Session> part;
  std::unique_ptr<ir::Module> host;
  const ir::Function* host_part = nullptr;
  std::vector<HostValue> constants;  // that calls take
  std::vector<Call> calls;
  std::vector<Source> taken;             // by the rest; without one, the results
  std::unique_ptr<StagedFunction> rest;  // may be null

  absl::StatusOr<std::vector<HostValue>> RunPart(const Pointers& in) const;
  absl::StatusOr<std::vector<HostValue>> Run(std::span<const HostValue* const> in,
                                             uint64_t most_steps, const std::atomic<bool>* cancel);
};

absl::StatusOr<std::vector<HostValue>> StagedFunction::Variant::RunPart(const Pointers& in) const {
  if (host_part != nullptr) {
    FORGE_ASSIGN_OR_RETURN(ir::Interpretation done, ir::Interpreter().Run(*host_part, in));
    return std::move(done.results);
  }
  if (part == nullptr) return std::vector<HostValue>();
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < in.size(); ++i) named.push_back({part->inputs()[i].name, *in[i]});
  FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> results, part->Run(named));
  std::vector<HostValue> out;
  for (NamedTensor& r : results) out.push_back(std::move(r.value));
  return out;
}

absl::StatusOr<std::vector<HostValue>> StagedFunction::Variant::Call::Run(
    const Pointers& in, uint64_t most_steps, const std::atomic<bool>* cancel) const {
  if (loop) return loop->Run(in, most_steps, cancel);
  if (cancel->load()) return Aborted("cancelled");
  absl::StatusOr<std::vector<HostValue>> results = ir::Evaluate(*step, in);
  if (!results.ok() && !where.empty()) return Annotate(results.status(), where);
  return results;
}

absl::StatusOr<std::vector<HostValue>> StagedFunction::Variant::Run(
    std::span<const HostValue* const> in, uint64_t most_steps, const std::atomic<bool>* cancel) {
  Pointers given;
  for (const size_t i : arguments) given.push_back(in[i]);
  Pointers to_part;
  for (const size_t i : part_arguments) to_part.push_back(given[i]);
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> parts, RunPart(to_part));
  if (taken.empty() && rest == nullptr) return parts;
  std::vector<std::vector<HostValue>> results;
  const auto find = [&](const Source& s) -> const HostValue* {
    if (s.kind == Source::kArgument) return given[s.index];
    if (s.kind == Source::kConstant) return &constants[s.index];
    return s.kind == Source::kPart ? &parts[s.index] : &results[s.index][s.result];
  };
  for (Call& call : calls) {
    Pointers operands;
    for (const std::optional<Source>& s : call.operands) operands.push_back(s ? find(*s) : nullptr);
    FORGE_ASSIGN_OR_RETURN(results.emplace_back(), call.Run(operands, most_steps, cancel));
  }
  Pointers next;
  for (const Source& s : taken) next.push_back(find(s));
  if (rest != nullptr) return rest->Run(next);
  std::vector<HostValue> all;
  for (const HostValue* v : next) all.push_back(*v);
  return all;
}

StagedFunction::StagedFunction(const Session& whole, std::shared_ptr<const Model> model,
                               std::string function, std::vector<bool> read, ir::Bindings bindings)
    : whole_(whole),
      model_(std::move(model)),
      function_(std::move(function)),
      read_(std::move(read)),
      bindings_(std::move(bindings)) {}
StagedFunction::~StagedFunction() = default;

absl::StatusOr<std::unique_ptr<StagedFunction>> StagedFunction::Create(const Session& whole,
                                                                       const std::string& function,
                                                                       HeldVariables& held) {
  std::unique_ptr<ir::Module> m = ir::Clone(whole.model_->module());
  if (!whole.options_.outputs.empty() && function == whole.options_.functions[0]) {
    auto kept = std::make_unique<ir::Function>(function, m.get());
    FORGE_RETURN_IF_ERROR(KeepResults(*m->Find(function), *kept, whole.options_.outputs));
    m->Replace(function, std::move(kept));
  }
  FORGE_ASSIGN_OR_RETURN(Variables variables,
                         TakeVariables(*m, function, whole.options_.freeze, held));
  std::vector<bool> read(m->Find(function)->arguments().size(), false);
  std::unique_ptr<StagedFunction> staged(
      new StagedFunction(whole, std::make_shared<const Model>(std::move(m), *whole.model_),
                         function, std::move(read), whole.fixed_));
  staged->variables_ = std::move(variables);
  return staged;
}

// Replaces the function by one that takes the values of its variables and returns the new ones.
absl::StatusOr<StagedFunction::Variables> StagedFunction::TakeVariables(ir::Module& m,
                                                                        const std::string& function,
                                                                        bool freeze,
                                                                        HeldVariables& held) {
  if (freeze) ir::Freeze(m);
  FORGE_RETURN_IF_ERROR(ir::CaptureReads(m, function));
  const ir::Function& in = *m.Find(function);
  Variables out{.held = &held};
  auto f = std::make_unique<ir::Function>(function, &m);
  ir::Copier copy(in, *f);
  copy.CopyArguments();
  for (const ir::Function::VariableRead& read : in.reads()) {
    const ir::Variable& v = *read.variable;
    if (v.role == ir::Variable::Role::kConstant) continue;
    out.read.push_back(v.name);
    copy.Set(read.value, f->Argument("variable " + v.name, v.type));
    if (held.contains(v.name)) continue;
    FORGE_ASSIGN_OR_RETURN(held[v.name], ir::InitialValue(v));
  }
  for (const ir::Node& node : in.nodes()) copy.CopyNode(node);
  for (const ir::Function::Result& r : in.results()) f->Return(r.name, copy[r.value]);
  for (const ir::Function::Update& u : in.updates()) {
    if (u.variable->role == ir::Variable::Role::kConstant)
      return InvalidArgument("function '{}' changes '{}', which is a constant in this Session",
                             function, u.variable->name);
    out.changed.push_back(u.variable->name);
    f->Return("variable " + u.variable->name, copy[u.value]);
  }
  FORGE_RETURN_IF_ERROR(f->status());
  m.Replace(function, std::move(f));
  return out;
}

void StagedFunction::AddParts(std::vector<SessionPart>& to) const {
  if (variants_.empty()) return;
  const Variant& v = *variants_.back().second;
  const auto reads = std::ranges::count(v.rest ? v.rest->read_ : std::vector<bool>(), true);
  if (v.part || v.host_part != nullptr)
    to.push_back({v.part.get(), v.rest == nullptr  ? "returns the results"
                                : !v.calls.empty() ? "hands them to the host"
                                                   : fmt::format("reads {} values", reads)});
  for (const Variant::Call& call : v.calls) {
    if (call.step) to.push_back({nullptr, call.where + call.step->ToText()});
    if (call.loop) to.push_back({nullptr, "runs a loop"});
    if (call.loop) call.loop->body().AddParts(to);
  }
  if (v.rest) v.rest->AddParts(to);
}

std::string StagedFunction::KeyOf(std::span<const HostValue* const> arguments) const {
  std::string key;
  for (size_t i = 0; i < arguments.size(); ++i) {
    key += arguments[i]->type().ToText();
    const std::span<const uint8_t> bytes = arguments[i]->bytes();
    if (read_[i]) key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    key += ';';
  }
  return key;
}

absl::StatusOr<std::vector<HostValue>> StagedFunction::Run(
    std::span<const HostValue* const> arguments) {
  Pointers all(arguments.begin(), arguments.end());
  for (const std::string& name : variables_.read) all.push_back(&variables_.held->at(name));
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, RunVariant(all));
  const size_t outputs = results.size() - variables_.changed.size();
  for (size_t i = 0; i < variables_.changed.size(); ++i)
    (*variables_.held)[variables_.changed[i]] = std::move(results[outputs + i]);
  results.resize(outputs);
  return results;
}

absl::StatusOr<std::vector<HostValue>> StagedFunction::RunVariant(
    std::span<const HostValue* const> arguments) {
  const std::string key = KeyOf(arguments);
  auto at = std::ranges::find(variants_, key, [](const auto& v) { return v.first; });
  if (at == variants_.end()) {
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Variant> made, MakeVariant(arguments));
    if (variants_.size() == kMaxVariants) variants_.erase(variants_.begin());
    variants_.emplace_back(key, std::move(made));
  } else {
    std::rotate(at, at + 1, variants_.end());
  }
  return variants_.back().second->Run(arguments, whole_.options_.max_iterations, whole_.cancel_);
}

// Makes the part of the function that can run, the loops after it, and the rest.
class StagedFunction::Divider {
 public:
  Divider(const StagedFunction& whole, std::unique_ptr<ir::Module> m, const Resolved& resolved,
          const ir::Bindings& bindings, Variant& variant)
      : whole_(whole),
        m_(std::move(m)),
        f_(*resolved.function),
        resolved_(resolved),
        bindings_(bindings),
        variant_(variant) {
    for (size_t i = 0; i < f_.arguments().size(); ++i) {
      const uint32_t v = f_.arguments()[i].value;
      arguments_.push_back(v);
      if (IsHostType(f_.type(v))) continue;
      on_device_.push_back(v);
      variant_.part_arguments.push_back(i);
    }
  }

  absl::Status Run() {
    if (resolved_.complete()) return MakeResults();
    std::vector<uint32_t> made;
    for (const ir::Node* call : resolved_.calls)
      for (uint32_t k = 0; resolved_.numbers.empty() && k < call->outs; ++k)
        made.push_back(call->first_out + k);
    const bool on_host = made.empty() && IsHostArithmetic(f_, resolved_.numbers);
    // Values that the host computes leave the whole function to the rest.
    std::vector<uint32_t> taken = on_host ? arguments_ : LiveValues(f_, made);
    Add(taken, resolved_.numbers);
    std::vector<uint32_t> wanted = taken;
    if (!made.empty())
      for (const ir::Node* call : resolved_.calls) Add(wanted, call->in);
    FORGE_RETURN_IF_ERROR(MakePart(wanted, made));
    for (size_t i = 0; i < resolved_.calls.size() && !made.empty(); ++i)
      FORGE_RETURN_IF_ERROR(MakeCall(*resolved_.calls[i]));
    return MakeRest(taken);
  }

 private:
  using Source = Variant::Source;

  // What is left takes values of the host along.
  absl::Status MakeResults() {
    std::vector<uint32_t> results;
    for (const auto& r : f_.results()) results.push_back(r.value);
    std::vector<uint32_t> wanted;
    Add(wanted, results);
    FORGE_RETURN_IF_ERROR(MakePart(wanted, {}));
    for (const uint32_t v : results) variant_.taken.push_back(sources_.at(v));
    return absl::OkStatus();
  }

  static void Add(std::vector<uint32_t>& to, std::span<const uint32_t> values) {
    for (const uint32_t v : values)
      if (v != ir::kAbsent && std::ranges::find(to, v) == to.end()) to.push_back(v);
  }

  // Computes the values that are neither arguments nor constants nor results of calls.
  absl::Status MakePart(std::span<const uint32_t> wanted, std::span<const uint32_t> made) {
    for (size_t i = 0; i < arguments_.size(); ++i) sources_[arguments_[i]] = {Source::kArgument, i};
    for (size_t i = 0; i < resolved_.calls.size() && !made.empty(); ++i)
      for (uint32_t k = 0; k < resolved_.calls[i]->outs; ++k)
        sources_[resolved_.calls[i]->first_out + k] = {Source::kCall, i, k};
    std::vector<uint32_t> computed;
    for (const uint32_t v : wanted) {
      if (sources_.contains(v)) continue;
      if (const ir::Variable* variable = f_.VariableOf(v)) {
        FORGE_ASSIGN_OR_RETURN(variant_.constants.emplace_back(), ir::InitialValue(*variable));
        sources_[v] = {Source::kConstant, variant_.constants.size() - 1};
        continue;
      }
      sources_[v] = {Source::kPart, computed.size()};
      computed.push_back(v);
    }
    if (computed.empty()) return absl::OkStatus();
    const bool on_host = IsHostArithmetic(f_, computed);
    std::unique_ptr<ir::Module> part = ir::Clone(*m_);
    FORGE_RETURN_IF_ERROR(Extract(*part, f_.name(), on_device_, computed));
    if (on_host) {
      variant_.host = std::move(part);
      variant_.host_part = variant_.host->Find(f_.name());
      return absl::OkStatus();
    }
    auto model = std::make_shared<const Model>(std::move(part), *whole_.model_);
    FORGE_ASSIGN_OR_RETURN(variant_.part,
                           Session::CreatePart(std::move(model), whole_.whole_, f_.name()));
    return absl::OkStatus();
  }

  absl::Status MakeCall(const ir::Node& node) {
    if (node.op.Is<ir::Loop>()) return MakeLoop(node);
    Variant::Call& call = variant_.calls.emplace_back();
    call.step = node.op;
    if (node.from != nullptr) call.where = node.from->ToText();
    for (const uint32_t v : node.in) {
      std::optional<Source>& source = call.operands.emplace_back();
      if (v != ir::kAbsent) source = sources_.at(v);
    }
    return absl::OkStatus();
  }

  absl::Status MakeLoop(const ir::Node& node) {
    const ir::Loop& loop = *node.op.As<ir::Loop>();
    StagedLoop::Form form{.has_steps = node.in[0] != ir::kAbsent,
                          .has_condition = node.in[1] != ir::kAbsent,
                          .carried = static_cast<size_t>(loop.carried),
                          .steps = loop.rows.is_constant() ? loop.rows.constant() : -1};
    const ir::Function& body = *loop.body;
    for (size_t i = form.carried + 1; i < body.results().size(); ++i)
      form.rows.push_back(body.type(body.results()[i].value));
    Variant::Call& call = variant_.calls.emplace_back();
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i] != ir::kAbsent)
        call.operands.emplace_back(sources_.at(node.in[i]));
      else if (i >= 2)
        return InvalidArgument("operand {} of a loop is missing", i);
    }
    call.loop =
        std::make_unique<StagedLoop>(Stage(ir::CloneWithBodies(*m_, body), body.name(),
                                           std::vector<bool>(body.arguments().size(), false)),
                                     std::move(form));
    return absl::OkStatus();
  }

  absl::Status MakeRest(const std::vector<uint32_t>& taken) {
    std::vector<bool> read;
    for (const uint32_t v : taken) {
      variant_.taken.push_back(sources_.at(v));
      read.push_back(std::ranges::find(resolved_.numbers, v) != resolved_.numbers.end());
    }
    const std::string name = f_.name();
    FORGE_RETURN_IF_ERROR(ExtractRest(*m_, name, taken));
    variant_.rest = Stage(std::move(m_), name, std::move(read));
    return absl::OkStatus();
  }

  std::unique_ptr<StagedFunction> Stage(std::unique_ptr<ir::Module> m, std::string function,
                                        std::vector<bool> read) const {
    return std::unique_ptr<StagedFunction>(new StagedFunction(
        whole_.whole_, std::make_shared<const Model>(std::move(m), *whole_.model_),
        std::move(function), std::move(read), bindings_));
  }

  const StagedFunction& whole_;
  std::unique_ptr<ir::Module> m_;
  const ir::Function& f_;
  const Resolved& resolved_;
  const ir::Bindings& bindings_;
  Variant& variant_;
  std::vector<uint32_t> arguments_;
  std::vector<uint32_t> on_device_;  // those that the part can take
  std::map<uint32_t, Source> sources_;
};

absl::StatusOr<std::unique_ptr<StagedFunction::Variant>> StagedFunction::MakeVariant(
    std::span<const HostValue* const> arguments) const {
  std::unique_ptr<ir::Module> m = ir::Clone(model_->module());
  ir::Bindings bindings = bindings_;
  FORGE_RETURN_IF_ERROR(ir::BindArguments(*m->Find(function_), arguments, bindings));
  auto variant = std::make_unique<Variant>();
  std::vector<ResolveArgument> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    given.push_back({arguments[i]->type(), read_[i] ? arguments[i] : nullptr});
    if (!read_[i]) variant->arguments.push_back(i);
  }
  FORGE_ASSIGN_OR_RETURN(const Resolved resolved, Resolve(*m, function_, given, bindings));
  const ir::Function& f = *resolved.function;
  const auto on_host = [&](const auto& v) { return IsHostType(f.type(v.value)); };
  const bool mixed =
      std::ranges::any_of(f.arguments(), on_host) || std::ranges::any_of(f.results(), on_host);
  if (resolved.complete() && !mixed) {
    for (size_t i = 0; i < variant->arguments.size(); ++i) variant->part_arguments.push_back(i);
    auto part = std::make_shared<const Model>(std::move(m), *model_);
    FORGE_ASSIGN_OR_RETURN(variant->part, Session::CreatePart(std::move(part), whole_, function_));
    return variant;
  }
  FORGE_RETURN_IF_ERROR(Divider(*this, std::move(m), resolved, bindings, *variant).Run());
  return variant;
}

}  // namespace forge
