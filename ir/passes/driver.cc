// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/driver.h"

#include "absl/container/flat_hash_set.h"
#include "ir/ops/compiler/fused.h"

namespace forge::ir {
namespace {

// Functions of one module, bodies before those who call them. Bodies are nested, never cyclic:
// Verify() sees to that.
class Calls {
 public:
  explicit Calls(const Module& m) : module_(m) {}

  void Add(const Function& f) {
    if (!seen_.insert(&f).second) return;
    for (const Node& n : f.nodes()) {
      if (n.op.Is<Fused>()) continue;
      for (const Function* body : BodiesOf(n.op))
        if (body != nullptr && module_.Find(body->name()) == body) Add(*body);
    }
    order_.push_back(f.name());
  }
  std::vector<std::string> Take() { return std::move(order_); }

 private:
  const Module& module_;
  absl::flat_hash_set<const Function*> seen_;
  std::vector<std::string> order_;
};

}  // namespace

std::vector<std::string> PassDriver::Reached() const {
  Calls calls(module_);
  for (const std::string& root : roots_) calls.Add(*module_.Find(root));
  return calls.Take();
}

absl::Status PassDriver::Run(std::string_view name, Pass pass) {
  for (const std::string& function : Reached()) {
    auto next = std::make_unique<Function>(function, &module_);
    FORGE_RETURN_IF_ERROR(pass(*module_.Find(function), *next));
    FORGE_RETURN_IF_ERROR(next->status());
    FORGE_RETURN_IF_ERROR(Check(name, *next));
    module_.Replace(function, std::move(next));
  }
  return absl::OkStatus();
}

absl::Status PassDriver::Check(std::string_view name) const {
  for (const std::string& function : Reached())
    FORGE_RETURN_IF_ERROR(Check(name, *module_.Find(function)));
  return absl::OkStatus();
}

absl::Status PassDriver::Check(std::string_view name, const Function& f) const {
  if (options_.verify)
    FORGE_RETURN_IF_ERROR(Annotate(Verify(f), fmt::format("after the pass {}", name)));
  if (options_.observe) options_.observe(name, f);
  return absl::OkStatus();
}

}  // namespace forge::ir
