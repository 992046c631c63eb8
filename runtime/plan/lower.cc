// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/lower.h"

#include <algorithm>
#include <array>

#include "ir/passes/copier.h"
#include "ir/passes/passes.h"

namespace forge {
namespace {

constexpr std::array<std::string_view, 12> kPassNames = {
    "import", "fold", "recognise", "legalise", "simplify", "join",
    "hoist",  "fuse", "bind",      "split",    "encode",   "pack"};

// The value of that name: a result's, else an inner value's.
uint32_t ValueNamed(const ir::Function& f, std::string_view name) {
  for (const auto& r : f.results())
    if (r.name == name) return r.value;
  for (uint32_t v = f.value_count(); v-- > 0;)
    if (f.NameOf(v) == name) return v;
  return ir::kAbsent;
}

// Adds every named value to the results, or keeps only those results that are named.
absl::Status SelectOutputs(const ir::Function& in, ir::Function& out,
                           const std::vector<std::string>& names) {
  // All values stay alive, so that any of them can be returned.
  ir::Copier copy(in, out);
  for (const ir::Node& node : in.nodes()) copy.CopyNode(node);
  for (const std::string& name : names) {
    const uint32_t found = ValueNamed(in, name);
    if (found == ir::kAbsent)
      return InvalidArgument("the model has no output or inner value '{}'", name);
    out.Return(name, copy[found]);
  }
  for (const auto& u : in.updates()) out.Store(u.variable, copy[u.value]);
  return out.status();
}

// Removes values without a reader.
absl::Status CopyLive(const ir::Function& in, ir::Function& out) {
  return ir::Rewriter{.pass = "import"}.Run(
      in, out,
      [](ir::Function&, const ir::Node&, ir::ValueSpan) { return std::optional<ir::Values>(); });
}

// Runs passes one after the other, keeping the last function only.
class Pipeline {
 public:
  // What the passes write is made for `m`.
  Pipeline(const LowerOptions& options, ir::Module& m, const ir::Function& start)
      : options_(options), module_(m), name_(start.name()), start_(&start) {}

  const ir::Function& current() const { return start_ ? *start_ : *at_; }

  template <class Pass>  // Status(const Function& in, Function& out)
  absl::Status Run(std::string_view name, Pass pass) {
    auto next = std::make_unique<ir::Function>(name_, &module_);
    FORGE_RETURN_IF_ERROR(pass(current(), *next));
    FORGE_RETURN_IF_ERROR(next->status());
    at_ = std::move(next);
    start_ = nullptr;
    if (options_.verify) FORGE_RETURN_IF_ERROR(Annotate(ir::Verify(*at_), name));
    if (options_.observe) options_.observe(name, *at_);
    return absl::OkStatus();
  }
  std::unique_ptr<ir::Function> Take() { return std::move(at_); }

 private:
  const LowerOptions& options_;
  ir::Module& module_;
  std::string name_;
  const ir::Function* start_ = nullptr;
  std::unique_ptr<ir::Function> at_;
};

// What the passes of one model share.
struct Way {
  ir::Module& module;
  const ir::Target& target;
  const LowerOptions& options;
  ir::Function& load;
  std::vector<ir::FusionGap>& gaps;

  absl::Status Fuse(const ir::Function& in, ir::Function& out) const {
    if (!options.fuse) return CopyLive(in, out);
    FORGE_ASSIGN_OR_RETURN(std::vector<ir::FusionGap> left, ir::Fuse(module, in, out, target));
    gaps.insert(gaps.end(), left.begin(), left.end());
    return absl::OkStatus();
  }

  // From a function as imported, whose place the result takes.
  absl::StatusOr<ir::Function*> Go(const std::string& name,
                                   const std::vector<std::string>& outputs) const {
    const ir::Function* start = module.Find(name);
    if (start == nullptr) return InvalidArgument("the model has no function '{}'", name);
    Pipeline p(options, module, *start);
    FORGE_RETURN_IF_ERROR(p.Run("import", [&](const ir::Function& in, ir::Function& out) {
      return outputs.empty() ? CopyLive(in, out) : SelectOutputs(in, out, outputs);
    }));
    FORGE_RETURN_IF_ERROR(p.Run("fold", [&](const ir::Function& in, ir::Function& out) {
      return ir::Fold(module, in, out);
    }));
    FORGE_RETURN_IF_ERROR(p.Run("recognise", ir::Recognise));
    FORGE_RETURN_IF_ERROR(p.Run("legalise", [&](const ir::Function& in, ir::Function& out) {
      return ir::Legalise(in, out, target);
    }));
    FORGE_RETURN_IF_ERROR(p.Run("simplify", ir::Simplify));
    FORGE_RETURN_IF_ERROR(p.Run("join", ir::Join));
    FORGE_RETURN_IF_ERROR(p.Run("hoist", [&](const ir::Function& in, ir::Function& out) {
      return ir::Hoist(module, in, load, out).status();
    }));
    FORGE_RETURN_IF_ERROR(
        p.Run("fuse", [&](const ir::Function& in, ir::Function& out) { return Fuse(in, out); }));
    return module.Replace(name, p.Take());
  }
};

}  // namespace

std::span<const std::string_view> PassNames() { return kPassNames; }

absl::StatusOr<Lowered> Lower(const ir::Module& model, const ir::Target& target,
                              const LowerOptions& options) {
  Lowered lowered{.module = ir::Clone(model), .load = nullptr, .functions = {}, .gaps = {}};
  ir::Module& m = *lowered.module;
  if (options.freeze) ir::Freeze(m);
  const std::string load_name = m.AddFunction("load")->name();
  ir::Function load(load_name, &m);
  const Way way{m, target, options, load, lowered.gaps};
  if (options.functions.empty()) return InvalidArgument("no function was asked for");
  for (const std::string& name : options.functions) {
    if (std::count(options.functions.begin(), options.functions.end(), name) > 1)
      return InvalidArgument("the function '{}' was asked for twice", name);
    const bool first = lowered.functions.empty();
    FORGE_ASSIGN_OR_RETURN(ir::Function * made,
                           way.Go(name, first ? options.outputs : std::vector<std::string>()));
    lowered.functions.push_back(made);
  }
  Pipeline l(options, m, load);
  FORGE_RETURN_IF_ERROR(l.Run(
      "fuse load", [&](const ir::Function& in, ir::Function& out) { return way.Fuse(in, out); }));
  lowered.load = m.Replace(load_name, l.Take());
  if (options.verify) FORGE_RETURN_IF_ERROR(ir::Verify(m));
  return lowered;
}

absl::StatusOr<BoundFunctions> BindLowered(const ir::Function& f, const ir::Target& target,
                                           const ir::Bindings& values,
                                           const LowerOptions& options) {
  BoundFunctions bound{.module = std::make_unique<ir::Module>(f.module())};
  ir::Module& m = *bound.module;
  const std::string name = m.AddFunction(f.name())->name();
  const std::string load_name = m.AddFunction("load")->name();
  Pipeline p(options, m, f);
  FORGE_RETURN_IF_ERROR(p.Run("bind", [&](const ir::Function& in, ir::Function& out) {
    return ir::Bind(m, in, out, values);
  }));
  FORGE_RETURN_IF_ERROR(p.Run("split", [&](const ir::Function& in, ir::Function& out) {
    return ir::Split(m, in, out, target);
  }));
  FORGE_RETURN_IF_ERROR(p.Run("encode", [&](const ir::Function& in, ir::Function& out) {
    return ir::AssignEncodings(in, out, target);
  }));
  auto load = std::make_unique<ir::Function>(load_name, &m);
  FORGE_RETURN_IF_ERROR(p.Run("pack", [&](const ir::Function& in, ir::Function& out) {
    return ir::Hoist(m, in, *load, out).status();
  }));
  bound.main = m.Replace(name, p.Take());
  bound.load = m.Replace(load_name, std::move(load));
  if (options.verify) FORGE_RETURN_IF_ERROR(ir::Verify(m));
  return bound;
}

absl::Status KeepResults(const ir::Function& in, ir::Function& out,
                         const std::vector<std::string>& names) {
  ir::Function all(in.name(), in.module());
  FORGE_RETURN_IF_ERROR(SelectOutputs(in, all, names));
  return CopyLive(all, out);
}

}  // namespace forge
