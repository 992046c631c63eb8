// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower.h"

#include <array>

#include "ir/passes/copier.h"
#include "ir/passes/passes.h"

namespace forge {
namespace {

constexpr std::array<std::string_view, 9> kPassNames = {
    "import", "fold", "recognise", "legalise", "hoist", "fuse", "bind", "encode", "pack"};

// Adds every named value to the results, or keeps only those results that are named.
absl::Status SelectOutputs(const ir::Function& in, ir::Function& out,
                           const std::vector<std::string>& names) {
  // All values stay alive, so that any of them can be returned.
  ir::Copier copy(in, out);
  for (const ir::Node& node : in.nodes()) copy.CopyNode(node);
  for (const std::string& name : names) {
    uint32_t found = ir::kAbsent;
    for (uint32_t v = 0; v < in.value_count(); ++v)
      if (in.NameOf(v) == name) found = v;
    for (const auto& r : in.results())
      if (r.name == name) found = r.value;
    if (found == ir::kAbsent)
      return InvalidArgument("the model has no output or inner value '{}'", name);
    out.Return(name, copy[found]);
  }
  for (const auto& u : in.updates()) out.Store(u.variable, copy[u.value]);
  return out.status();
}

// Runs passes one after the other, keeping the last function only.
class Pipeline {
 public:
  Pipeline(const LowerOptions& options, const ir::Function& start)
      : options_(options), name_(start.name()), start_(&start) {}

  const ir::Function& current() const { return start_ ? *start_ : *at_; }

  template <class Pass>  // Status(const Function& in, Function& out)
  absl::Status Run(std::string_view name, Pass pass) {
    auto next = std::make_unique<ir::Function>(name_);
    FORGE_RETURN_IF_ERROR(pass(current(), *next));
    FORGE_RETURN_IF_ERROR(next->status());
    at_ = std::move(next);
    start_ = nullptr;
    if (options_.observe) options_.observe(name, *at_);
    return absl::OkStatus();
  }
  std::unique_ptr<ir::Function> Take() { return std::move(at_); }

 private:
  const LowerOptions& options_;
  std::string name_;
  const ir::Function* start_ = nullptr;
  std::unique_ptr<ir::Function> at_;
};

// Gives a function a place in the module, under a name of its own.
ir::Function* Keep(ir::Module& m, std::unique_ptr<ir::Function> f) {
  const std::string name = m.AddFunction(f->name())->name();
  return m.Replace(name, std::move(f));
}

}  // namespace

std::span<const std::string_view> PassNames() { return kPassNames; }

absl::StatusOr<Lowered> Lower(const ir::Module& model, const ir::Target& target,
                              const LowerOptions& options) {
  Lowered lowered{.module = ir::Clone(model)};
  ir::Module& m = *lowered.module;
  ir::Freeze(m);
  const ir::Function* start = m.Find(options.function);
  if (start == nullptr) return InvalidArgument("the model has no function '{}'", options.function);
  Pipeline p(options, *start);
  FORGE_RETURN_IF_ERROR(p.Run("import", [&](const ir::Function& in, ir::Function& out) {
    if (!options.outputs.empty()) return SelectOutputs(in, out, options.outputs);
    return ir::Rewriter{.pass = "import"}.Run(
        in, out,
        [](ir::Function&, const ir::Node&, ir::ValueSpan) { return std::optional<ir::Values>(); });
  }));
  FORGE_RETURN_IF_ERROR(p.Run(
      "fold", [&](const ir::Function& in, ir::Function& out) { return ir::Fold(m, in, out); }));
  FORGE_RETURN_IF_ERROR(p.Run("recognise", ir::Recognise));
  FORGE_RETURN_IF_ERROR(p.Run("legalise", [&](const ir::Function& in, ir::Function& out) {
    return ir::Legalise(in, out, target);
  }));
  auto load = std::make_unique<ir::Function>("load");
  FORGE_RETURN_IF_ERROR(p.Run("hoist", [&](const ir::Function& in, ir::Function& out) {
    return ir::Hoist(m, in, *load, out).status();
  }));
  auto fuse = [&](const ir::Function& in, ir::Function& out) {
    return ir::Fuse(m, in, out, target);
  };
  FORGE_RETURN_IF_ERROR(p.Run("fuse", fuse));
  lowered.main = m.Replace(options.function, p.Take());
  Pipeline l(options, *load);
  FORGE_RETURN_IF_ERROR(l.Run("fuse load", fuse));
  lowered.load = Keep(m, l.Take());
#ifndef NDEBUG
  FORGE_RETURN_IF_ERROR(ir::Verify(m));
#endif
  return lowered;
}

absl::StatusOr<BoundFunctions> BindLowered(const ir::Function& f, const ir::Target& target,
                                           const ir::Bindings& values,
                                           const LowerOptions& options) {
  BoundFunctions bound{.module = std::make_unique<ir::Module>()};
  ir::Module& m = *bound.module;
  Pipeline p(options, f);
  FORGE_RETURN_IF_ERROR(p.Run("bind", [&](const ir::Function& in, ir::Function& out) {
    return ir::Bind(m, in, out, values);
  }));
  FORGE_RETURN_IF_ERROR(p.Run("encode", [&](const ir::Function& in, ir::Function& out) {
    return ir::AssignEncodings(in, out, target);
  }));
  auto load = std::make_unique<ir::Function>("load");
  FORGE_RETURN_IF_ERROR(p.Run("pack", [&](const ir::Function& in, ir::Function& out) {
    return ir::Hoist(m, in, *load, out).status();
  }));
  bound.main = Keep(m, p.Take());
  bound.load = Keep(m, std::move(load));
  return bound;
}

}  // namespace forge
