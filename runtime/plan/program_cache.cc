// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/program_cache.h"

#include <algorithm>
#include <deque>

#include "absl/cleanup/cleanup.h"
#include "runtime/plan/keys.h"

namespace forge {
namespace {

// As a search sees requests: how a node is computed is chosen before its operands are prepared.
struct DenseRequests {
  explicit DenseRequests(std::span<const CompileRequest> prepared)
      : requests(prepared.begin(), prepared.end()) {
    for (CompileRequest& r : requests)
      for (ir::TypeSpan* span : {&r.in, &r.out}) {
        ir::Types& own = types.emplace_back(span->begin(), span->end());
        for (ir::Type& t : own)
          if (t) t = t.With(ir::EncodingRef());
        *span = own;
      }
  }
  DenseRequests(const DenseRequests&) = delete;

  std::vector<CompileRequest> requests;
  std::deque<ir::Types> types;
};

}  // namespace

// The requests of a call that it compiles itself, by their places.
struct ProgramCache::Wanted {
  std::vector<size_t> places;
  std::vector<std::string> keys;
};

size_t ProgramCache::size() const {
  std::lock_guard lock(mutex_);
  return programs_.size();
}

bool ProgramCache::Claim(std::span<const std::string> keys, std::vector<ProgramRef>& out,
                         Wanted& wanted) {
  bool all = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (out[i]) continue;
    if (const auto at = programs_.find(keys[i]); at != programs_.end()) {
      out[i] = at->second.program;
      at->second.used = calls_;
    } else if (compiling_.insert(keys[i]).second) {
      wanted.places.push_back(i);
      wanted.keys.push_back(keys[i]);
    } else {
      all = false;
    }
  }
  return all;
}

// Drops the oldest of those that the cache alone holds.
void ProgramCache::Trim() {
  if (programs_.size() <= kMostIdle) return;
  std::vector<std::pair<uint64_t, const std::string*>> idle;
  for (const auto& [key, entry] : programs_)
    if (entry.program.use_count() == 1) idle.emplace_back(entry.used, &key);
  if (idle.size() <= kMostIdle) return;
  std::sort(idle.begin(), idle.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < idle.size() - kMostIdle; ++i)
    programs_.erase(std::string(*idle[i].second));
}

absl::Status ProgramCache::Search(std::span<const CompileRequest> requests,
                                  const Options& options) {
  std::lock_guard lock(searching_);
  const DenseRequests dense(requests);
  return Autotune(device_, dense.requests, options.autotune,
                  [&](size_t done, size_t total) {
                    if (options.progress)
                      options.progress("searching for faster kernels", done, total);
                  })
      .status();
}

absl::Status ProgramCache::Compile(const Wanted& wanted, std::span<const Request> requests,
                                   const Options& options) {
  const absl::Cleanup let_go = [&] {
    std::lock_guard lock(mutex_);
    for (const std::string& key : wanted.keys) compiling_.erase(key);
    compiled_.notify_all();
  };
  std::vector<CompileRequest> compile;
  for (const size_t i : wanted.places) {
    const Request& r = requests[i];
    compile.push_back(
        {&r.node->op, r.in, r.out, r.name, options.choice, options.once, options.fast});
  }
  if (options.autotune.seconds > 0) FORGE_RETURN_IF_ERROR(Search(compile, options));
  FORGE_RETURN_IF_ERROR(CheckCancelled(options.cancel));
  auto compiled = device_->Compile(compile, [&](size_t done) {
    if (options.progress) options.progress("compiling kernels", done, compile.size());
    return CheckCancelled(options.cancel).ok();
  });
  FORGE_RETURN_IF_ERROR(CheckCancelled(options.cancel));
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < compile.size(); ++i) {
    if (!compiled[i].ok()) return Annotate(compiled[i].status(), compile[i].name);
    programs_[wanted.keys[i]] = {*std::move(compiled[i]), calls_};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ProgramRef>> ProgramCache::Get(std::span<const Request> requests,
                                                          Counts& counts, const Options& options) {
  std::vector<std::string> keys;
  for (const Request& r : requests)
    keys.push_back(KeyOf(r.node->op, r.in, r.out) + (options.once ? " once" : "") +
                   (options.fast ? " fast" : ""));
  std::vector<ProgramRef> out(requests.size());
  std::unique_lock lock(mutex_);
  ++calls_;
  int made = 0;
  while (true) {
    Wanted wanted;
    const bool all = Claim(keys, out, wanted);
    if (!wanted.keys.empty()) {
      lock.unlock();
      const absl::Status status = Compile(wanted, requests, options);
      lock.lock();
      FORGE_RETURN_IF_ERROR(status);
      made += static_cast<int>(wanted.keys.size());
    } else if (all) {
      break;
    } else {
      FORGE_RETURN_IF_ERROR(CheckCancelled(options.cancel));
      compiled_.wait_for(lock, std::chrono::milliseconds(20));  // looks at `cancel` meanwhile
    }
  }
  counts.made += made;
  counts.reused += static_cast<int>(requests.size()) - made;
  Trim();
  return out;
}

}  // namespace forge
