// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/lower.h"

#include <algorithm>
#include <array>

#include "ir/graph/copier.h"
#include "ir/passes/driver.h"
#include "ir/passes/passes.h"

namespace forge {
namespace {

constexpr std::array<std::string_view, 15> kPassNames = {
    "import", "fold",  "recognise", "integers", "tabulate", "precision", "legalise", "simplify",
    "join",   "hoist", "fuse",      "bind",     "split",    "encode",    "pack"};

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
  copy.CopyArguments();
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
  return ir::Rewriter{.pass = "import"}.Run(in, out);
}

ir::PassDriver::Options DriverOptions(const LowerOptions& options) {
  return {.verify = options.verify, .observe = options.observe};
}

// The passes with open symbols.
class Lowering {
 public:
  Lowering(ir::Module& m, const ir::Target& target, const LowerOptions& options, Lowered& lowered)
      : module_(m),
        target_(target),
        options_(options),
        lowered_(lowered),
        load_(m.AddFunction("load")->name(), &m) {}

  absl::Status Run() {
    FORGE_RETURN_IF_ERROR(CheckFunctions());
    ir::PassDriver d(module_, options_.functions, DriverOptions(options_));
    FORGE_RETURN_IF_ERROR(
        d.Run("import", [&](const auto& in, auto& out) { return Import(in, out); }));
    FORGE_RETURN_IF_ERROR(
        d.Run("fold", [&](const auto& in, auto& out) { return ir::Fold(module_, in, out); }));
    FORGE_RETURN_IF_ERROR(d.Run("recognise", ir::Recognise));
    FORGE_RETURN_IF_ERROR(d.Run("integers", [&](const auto& in, auto& out) {
      return ir::MultiplyIntegers(in, out, target_);
    }));
    FORGE_RETURN_IF_ERROR(d.Run(
        "tabulate", [&](const auto& in, auto& out) { return ir::Tabulate(in, out, target_); }));
    FORGE_RETURN_IF_ERROR(d.Run("precision", [&](const auto& in, auto& out) {
      return ir::RoundProducts(in, out, options_.precision);
    }));
    FORGE_RETURN_IF_ERROR(d.Run(
        "legalise", [&](const auto& in, auto& out) { return ir::Legalise(in, out, target_); }));
    FORGE_RETURN_IF_ERROR(d.Run("simplify", ir::Simplify));
    FORGE_RETURN_IF_ERROR(d.Run("join", ir::Join));
    FORGE_RETURN_IF_ERROR(d.Run("hoist", [&](const auto& in, auto& out) {
      return ir::Hoist(module_, in, load_, out).status();
    }));
    FORGE_RETURN_IF_ERROR(d.Run("fuse", [&](const auto& in, auto& out) { return Fuse(in, out); }));
    for (const std::string& name : options_.functions)
      lowered_.functions.push_back(module_.Find(name));
    return LowerLoad();
  }

 private:
  absl::Status CheckFunctions() const {
    if (options_.functions.empty()) return InvalidArgument("no function was asked for");
    for (const std::string& name : options_.functions) {
      if (std::count(options_.functions.begin(), options_.functions.end(), name) > 1)
        return InvalidArgument("the function '{}' is selected twice", name);
      if (module_.Find(name) == nullptr || name == load_.name())
        return InvalidArgument("the model has no function '{}'", name);
    }
    return absl::OkStatus();
  }

  absl::Status Import(const ir::Function& in, ir::Function& out) const {
    const bool selects = in.name() == options_.functions[0] && !options_.outputs.empty();
    return selects ? SelectOutputs(in, out, options_.outputs) : CopyLive(in, out);
  }

  absl::Status Fuse(const ir::Function& in, ir::Function& out) {
    if (!options_.fuse) return CopyLive(in, out);
    FORGE_ASSIGN_OR_RETURN(std::vector<ir::FusionGap> left, ir::Fuse(module_, in, out, target_));
    lowered_.gaps.insert(lowered_.gaps.end(), left.begin(), left.end());
    return absl::OkStatus();
  }

  absl::Status LowerLoad() {
    ir::PassDriver d(module_, {load_.name()}, DriverOptions(options_));
    FORGE_RETURN_IF_ERROR(
        d.Run("fuse load", [&](const auto&, auto& out) { return Fuse(load_, out); }));
    lowered_.load = module_.Find(load_.name());
    return absl::OkStatus();
  }

  ir::Module& module_;
  const ir::Target& target_;
  const LowerOptions& options_;
  Lowered& lowered_;
  ir::Function load_;  // what is hoisted, until all is
};

}  // namespace

std::span<const std::string_view> PassNames() { return kPassNames; }

absl::StatusOr<Lowered> Lower(const ir::Module& model, const ir::Target& target,
                              const LowerOptions& options) {
  Lowered lowered{.module = ir::Clone(model), .load = nullptr, .functions = {}, .gaps = {}};
  ir::Module& m = *lowered.module;
  if (options.freeze) ir::Freeze(m);
  FORGE_RETURN_IF_ERROR(Lowering(m, target, options, lowered).Run());
  if (options.verify) FORGE_RETURN_IF_ERROR(ir::Verify(m));
  return lowered;
}

absl::StatusOr<BoundFunctions> BindLowered(const ir::Function& f, const ir::Target& target,
                                           const ir::Bindings& values,
                                           const LowerOptions& options) {
  BoundFunctions bound{.module = std::make_unique<ir::Module>(f.module())};
  ir::Module& m = *bound.module;
  const std::string name = m.AddFunction(f.name())->name();
  auto load = std::make_unique<ir::Function>(m.AddFunction("load")->name(), &m);
  ir::PassDriver d(m, {name}, DriverOptions(options));
  FORGE_RETURN_IF_ERROR(ir::Bind(m, f, *m.Find(name), values));
  FORGE_RETURN_IF_ERROR(d.Check("bind"));
  FORGE_RETURN_IF_ERROR(
      d.Run("split", [&](const auto& in, auto& out) { return ir::Split(m, in, out, target); }));
  FORGE_RETURN_IF_ERROR(d.Run(
      "encode", [&](const auto& in, auto& out) { return ir::AssignEncodings(in, out, target); }));
  FORGE_RETURN_IF_ERROR(d.Run(
      "pack", [&](const auto& in, auto& out) { return ir::Hoist(m, in, *load, out).status(); }));
  bound.main = m.Find(name);
  const std::string load_name = load->name();
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
