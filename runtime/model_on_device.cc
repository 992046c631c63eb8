// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_on_device.h"

#include <algorithm>

namespace forge {
namespace {

// Of constants computed at once: what they are computed from needs room beside them.
constexpr uint64_t kBatchBytes = uint64_t{16} << 20;

// The constants that a function reads.
std::vector<const ir::Variable*> ConstantsOf(const ir::Function& f) {
  std::vector<const ir::Variable*> out;
  for (const auto& r : f.reads())
    if (r.variable->role == ir::Variable::Role::kConstant) out.push_back(r.variable);
  return out;
}

}  // namespace

// A function that computes constants from others, into variables of `owner`.
struct ModelOnDevice::Computation {
  const ir::Module& owner;
  const ir::Function& load;
};

// Results of a computation that are made at once.
struct ModelOnDevice::Batch {
  std::vector<std::string> names;
  std::vector<VariablePlace> into;
  uint64_t bytes = 0;
};

struct ModelOnDevice::Loading {
  std::span<const Computation> computations;
  const VariableKeys& keys;
  const Executable::Options& build;
};

ModelOnDevice::ModelOnDevice(std::shared_ptr<ModelShare> share, Lowered lowered)
    : share_(std::move(share)), lowered_(std::move(lowered)) {
  keys_.AddComputed(*lowered_.module, *lowered_.load);
}

VariableKeys ModelOnDevice::KeysOf(const BoundFunctions& bound) const {
  VariableKeys keys = keys_;
  keys.AddComputed(*bound.module, *bound.load);
  return keys;
}

absl::StatusOr<WeightSizes> ModelOnDevice::SizesOf(const BoundFunctions& bound) const {
  const VariableKeys keys = KeysOf(bound);
  WeightSizes sizes;
  for (const ir::Variable* v : ConstantsOf(*bound.main)) {
    FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(v->type));
    sizes[keys.Of(*v)] = AlignUp(bytes, kAlignment);
  }
  return sizes;
}

absl::Status ModelOnDevice::LoadConstants(const BoundFunctions& bound,
                                          const SessionOptions& options,
                                          const std::atomic<bool>* cancel,
                                          VariablePlaces& to) const {
  const Computation computations[] = {{*lowered_.module, *lowered_.load},
                                      {*bound.module, *bound.load}};
  Executable::Options build{.compile_only = options.debug.compile_only};
  build.compile.once = true;
  build.compile.cancel = cancel;
  if (options.progress)
    build.compile.progress = [&](std::string_view, size_t done, size_t total) {
      options.progress("packing weights", done, total);
    };
  if (options.debug.compile_only) {
    for (const Computation& c : computations)
      FORGE_RETURN_IF_ERROR(
          Executable::Build({share_->device, c.load, {}, share_->programs, {}}, build).status());
    return absl::OkStatus();
  }
  const VariableKeys keys = KeysOf(bound);
  const std::vector<const ir::Variable*> read = ConstantsOf(*bound.main);
  std::lock_guard lock(share_->computing);
  VariablePlaces
      places;  // released before the lock, so that no thread sees a value that was not computed
  FORGE_RETURN_IF_ERROR(Load({computations, keys, build}, read, places));
  for (const ir::Variable* v : read) to[v] = places.at(v);
  return absl::OkStatus();
}

absl::Status ModelOnDevice::Load(const Loading& loading,
                                 std::span<const ir::Variable* const> wanted,
                                 VariablePlaces& places) const {
  std::vector<VariableStore::Keyed> keyed;
  keyed.reserve(wanted.size());
  for (const ir::Variable* v : wanted) keyed.push_back({v, loading.keys.Of(*v)});
  FORGE_ASSIGN_OR_RETURN(const std::vector<const ir::Variable*> fresh,
                         share_->constants.Add(keyed, places));
  for (const Computation& c : loading.computations)
    FORGE_RETURN_IF_ERROR(Compute(loading, c, fresh, places));
  return absl::OkStatus();
}

// Computes those results of `c` that are fresh, a batch at a time.
absl::Status ModelOnDevice::Compute(const Loading& loading, const Computation& c,
                                    std::span<const ir::Variable* const> fresh,
                                    const VariablePlaces& places) const {
  Batch batch;
  for (const auto& r : c.load.results()) {
    const ir::Variable* v = c.owner.FindVariable(r.name);
    if (std::find(fresh.begin(), fresh.end(), v) == fresh.end()) continue;
    batch.names.push_back(r.name);
    batch.into.push_back(*places.at(v));
    batch.bytes += places.at(v)->bytes;
    if (batch.bytes < kBatchBytes) continue;
    FORGE_RETURN_IF_ERROR(Run(loading, c.load, batch));
    batch = {};
  }
  return batch.names.empty() ? absl::OkStatus() : Run(loading, c.load, batch);
}

// What the batch is computed from is let go at the end.
absl::Status ModelOnDevice::Run(const Loading& loading, const ir::Function& load,
                                const Batch& batch) const {
  ir::Function wanted(load.name(), load.module());
  FORGE_RETURN_IF_ERROR(KeepResults(load, wanted, batch.names));
  VariablePlaces from;
  FORGE_RETURN_IF_ERROR(Load(loading, ConstantsOf(wanted), from));
  const VariablePlaces* read[] = {&from};
  FORGE_ASSIGN_OR_RETURN(
      std::unique_ptr<Executable> e,
      Executable::Build({share_->device, wanted, read, share_->programs, batch.into},
                        loading.build));
  return e->RunInPlace(loading.build.compile.cancel);
}

}  // namespace forge
