// SPDX-License-Identifier: Apache-2.0
#include "tools/parity/reduce_model.h"

#include <algorithm>
#include <set>

#include "formats/model_bin/model_bin.h"
#include "ir/graph/copier.h"
#include "ir/graph/interpreter.h"
#include "ir/passes/passes.h"
#include "tools/support/tensor_io.h"

namespace forge::tools {
namespace {

// main with numbers for all dimensions, and every value of it.
struct Whole {
  std::unique_ptr<ir::Module> module;
  std::unique_ptr<ir::Function> main;
  std::vector<ir::HostValue> values;  // by id; empty for variables
};

absl::StatusOr<Whole> Evaluate(const ReduceRequest& r) {
  Whole w{.module = ir::Clone(r.model), .main = nullptr, .values = {}};
  ir::Freeze(*w.module);
  const ir::Function* main = w.module->Find("main");
  ir::Function folded("main", w.module.get());
  FORGE_RETURN_IF_ERROR(ir::Fold(*w.module, *main, folded));
  std::vector<const ir::HostValue*> arguments;
  for (const auto& a : folded.arguments()) {
    const auto given = std::find_if(r.inputs.begin(), r.inputs.end(),
                                    [&](const NamedTensor& t) { return t.name == a.name; });
    if (given == r.inputs.end()) return InvalidArgument("input '{}' is missing", a.name);
    arguments.push_back(&given->value);
  }
  ir::Bindings bindings;
  FORGE_RETURN_IF_ERROR(ir::BindArguments(folded, arguments, bindings));
  w.main = std::make_unique<ir::Function>("main", w.module.get());
  FORGE_RETURN_IF_ERROR(ir::Bind(*w.module, folded, *w.main, bindings));
  w.values.resize(w.main->value_count());
  ir::Interpreter interpreter;
  interpreter.observe = [&](uint32_t value, const ir::HostValue& v) {
    if (w.main->VariableOf(value) == nullptr) w.values[value] = v;
    return absl::OkStatus();
  };
  FORGE_RETURN_IF_ERROR(interpreter.Run(*w.main, arguments).status());
  for (const ir::Node& n : w.main->nodes())
    if (!BodiesOf(n.op).empty())
      return InvalidArgument("{} has bodies; only models without bodies can be reduced",
                             n.from ? n.from->ToText() : n.op.ToText());
  return w;
}

using Kept = std::vector<size_t>;  // nodes, rising

// A module of some nodes of a function.
class PartBuilder {
 public:
  PartBuilder(const Whole& whole, const Kept& kept)
      : whole_(whole),
        in_(*whole.main),
        module_(std::make_unique<ir::Module>()),
        out_(*module_->AddFunction("main")),
        copy_(in_, out_, {.missing = [this](uint32_t v) { return Operand(v); }}) {
    std::vector<bool> is_kept(in_.nodes().size(), false);
    for (size_t i : kept) is_kept[i] = true;
    FindResults(is_kept);
    for (size_t i : kept) copy_.CopyNode(in_.nodes()[i]);
    for (size_t i : kept) Return(in_.nodes()[i]);
  }

  absl::Status status() const { return out_.status(); }
  std::unique_ptr<ir::Module> TakeModule() { return std::move(module_); }
  std::vector<NamedTensor> TakeInputs() { return std::move(inputs_); }

 private:
  // Who reads a value: nodes of the part, and everybody else.
  void FindResults(const std::vector<bool>& is_kept) {
    for (size_t i = 0; i < in_.nodes().size(); ++i)
      for (uint32_t v : in_.nodes()[i].in) (is_kept[i] ? inside_ : outside_).insert(v);
    for (const auto& r : in_.results()) outside_.insert(r.value);
    for (const auto& u : in_.updates()) outside_.insert(u.value);
  }

  // What the node makes for others, or for nobody.
  void Return(const ir::Node& node) {
    for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v)
      if (out_.status().ok() && (outside_.contains(v) || !inside_.contains(v)))
        out_.Return(UniqueName(v), copy_[v]);
  }

  ir::Value Operand(uint32_t v) {
    if (const ir::Variable* variable = in_.VariableOf(v))
      return out_.Read(module_->AddVariable(*variable));
    inputs_.push_back({UniqueName(v), whole_.values[v]});
    return out_.Argument(inputs_.back().name, in_.type(v));
  }

  std::string UniqueName(uint32_t v) {
    std::string name(in_.NameOf(v));
    for (const auto& r : in_.results())
      if (r.value == v) name = r.name;
    if (name.empty()) name = fmt::format("value.{}", v);
    while (!names_.insert(name).second) name += ".again";
    return name;
  }

  const Whole& whole_;
  const ir::Function& in_;
  std::unique_ptr<ir::Module> module_;
  ir::Function& out_;
  ir::Copier copy_;
  std::set<uint32_t> inside_, outside_;
  std::set<std::string> names_;
  std::vector<NamedTensor> inputs_;
};

// How a part fails: the second device's code, or kOk and a difference.
struct Failure {
  absl::StatusCode code = absl::StatusCode::kOk;
  bool differs = false;
  bool by_classes_alone = false;  // no error beyond the bound, but other classes
  std::string text;
};

std::string TextOf(const OutputDifference& d) {
  return fmt::format("output '{}': relative error {:.2e}, largest difference {:.2e}{}{}", d.output,
                     d.rel_error, d.max_abs, d.same_classes ? "" : ", other classes",
                     d.same_specials ? "" : ", NaN or infinities elsewhere");
}

class Reducer {
 public:
  explicit Reducer(const ReduceRequest& request) : request_(request) {}

  absl::StatusOr<ReducedModel> Run() {
    FORGE_ASSIGN_OR_RETURN(whole_, Evaluate(request_));
    Kept kept(whole_.main->nodes().size());
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = i;
    FORGE_ASSIGN_OR_RETURN(wanted_, Try(kept));
    if (wanted_.code == absl::StatusCode::kOk && !wanted_.differs)
      return InvalidArgument("the devices agree on the whole model: there is nothing to reduce");
    const size_t all = kept.size();
    Failure last = wanted_;
    for (size_t chunk = std::max<size_t>(1, all / 2);;) {
      FORGE_ASSIGN_OR_RETURN(const bool smaller, TakeOut(kept, chunk, last));
      if (chunk == 1 && !smaller) break;
      chunk = std::max<size_t>(1, std::min(chunk, kept.size()) / 2);
    }
    PartBuilder part(whole_, kept);
    FORGE_RETURN_IF_ERROR(part.status());
    return ReducedModel{.module = part.TakeModule(),
                        .inputs = part.TakeInputs(),
                        .difference = last.text,
                        .nodes = kept.size(),
                        .nodes_before = all,
                        .tried = tried_};
  }

 private:
  // Takes out every run of `chunk` nodes that the failure does not need, from the end.
  absl::StatusOr<bool> TakeOut(Kept& kept, size_t chunk, Failure& last) {
    bool smaller = false;
    for (size_t end = kept.size(); end > 0 && kept.size() > 1;) {
      const size_t begin = end > chunk ? end - chunk : 0;
      Kept fewer(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(begin));
      fewer.insert(fewer.end(), kept.begin() + static_cast<ptrdiff_t>(end), kept.end());
      end = begin;
      if (fewer.empty()) continue;
      FORGE_ASSIGN_OR_RETURN(const Failure f, Try(fewer));
      if (!IsTheSame(f)) continue;
      last = f;
      kept = std::move(fewer);
      smaller = true;
      if (request_.progress) request_.progress(kept.size(), whole_.main->nodes().size());
    }
    return smaller;
  }

  bool IsTheSame(const Failure& f) const {
    if (f.code != wanted_.code || f.differs != wanted_.differs) return false;
    // Inner values have no classes: a near tie there is no difference.
    return wanted_.by_classes_alone || !f.by_classes_alone;
  }

  // errors: those of the first device on the whole model; a part that it cannot run does not fail
  absl::StatusOr<Failure> Try(const Kept& kept) {
    ++tried_;
    PartBuilder part(whole_, kept);
    if (!part.status().ok()) return Failure{};
    const auto model = std::make_shared<const Model>(part.TakeModule());
    const std::vector<NamedTensor> inputs = part.TakeInputs();
    const auto good = RunOn(model, request_.devices[0], inputs, request_.precision);
    if (!good.ok() && tried_ == 1) return good.status();
    if (!good.ok()) return Failure{};
    const auto suspect = RunOn(model, request_.devices[1], inputs, request_.precision);
    if (!suspect.ok())
      return Failure{.code = suspect.status().code(),
                     .text = std::string(Message(suspect.status()))};
    FORGE_ASSIGN_OR_RETURN(const Comparison c,
                           Compare(*suspect, *good, request_.against, request_.precision));
    Failure f{.differs = !c.within(), .by_classes_alone = true};
    for (const OutputDifference& d : c.outputs) {
      if (d.within) continue;
      const bool beyond = !d.same_specials || d.rel_error > d.bound;
      if (beyond || f.text.empty()) f.text = TextOf(d);
      f.by_classes_alone = f.by_classes_alone && !beyond;
    }
    return f;
  }

  static absl::StatusOr<std::vector<NamedTensor>> RunOn(const std::shared_ptr<const Model>& model,
                                                        const DeviceRef& device,
                                                        std::span<const NamedTensor> inputs,
                                                        const ir::Precision& precision) {
    SessionOptions options;
    options.precision = PrecisionBeside(precision, *device);
    FORGE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, device, options));
    return session->Run(inputs);
  }

  const ReduceRequest& request_;
  Whole whole_;
  Failure wanted_;
  size_t tried_ = 0;
};

}  // namespace

absl::StatusOr<ReducedModel> ReduceModel(const ReduceRequest& request) {
  return Reducer(request).Run();
}

absl::StatusOr<std::filesystem::path> WriteReduced(const ReducedModel& reduced,
                                                   const std::filesystem::path& out) {
  FORGE_RETURN_IF_ERROR(WriteModel(*reduced.module, out));
  const std::filesystem::path folder = out.string() + ".inputs";
  FORGE_RETURN_IF_ERROR(WriteOutputs(reduced.inputs, folder).status());
  return folder;
}

}  // namespace forge::tools
