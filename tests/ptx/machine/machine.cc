// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/machine.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "tests/ptx/machine/decode/decoder.h"

namespace forge::ptx {
namespace {

constexpr uint64_t kMostThreads = 1024;  // of a block
constexpr uint64_t kMostBlocks = uint64_t{1} << 31;

Dim3 BlockAt(const Dim3& grid, uint64_t i) {
  return {static_cast<uint32_t>(i % grid.x), static_cast<uint32_t>(i / grid.x % grid.y),
          static_cast<uint32_t>(i / grid.x / grid.y)};
}

absl::Status CheckLaunch(const Launch& l) {
  const Program& p = *l.program;
  if (l.threads.count() == 0 || l.threads.count() > kMostThreads)
    return InvalidArgument("{}: a block of {} threads", p.name, l.threads.count());
  if (p.max_threads != 0 && l.threads.count() > static_cast<uint64_t>(p.max_threads))
    return InvalidArgument("{}: a block of {} threads, compiled for {}", p.name, l.threads.count(),
                           p.max_threads);
  if (l.grid.count() == 0 || l.grid.x > kMostBlocks || l.grid.y > 65535 || l.grid.z > 65535)
    return InvalidArgument("{}: a grid of {} x {} x {}", p.name, l.grid.x, l.grid.y, l.grid.z);
  if (l.params.size() < p.param_bytes)
    return InvalidArgument("{}: {} bytes of parameters, not {}", p.name, l.params.size(),
                           p.param_bytes);
  return absl::OkStatus();
}

// The position of the i-th block to run. A random order steps by a stride that divides no part of
// the grid.
uint64_t BlockInOrder(const Launch& l, uint64_t i, uint64_t count) {
  if (l.order == Order::kForward) return i;
  if (l.order == Order::kReversed) return count - 1 - i;
  uint64_t stride = (l.seed * 2654435761u + 40503) % count | 1;
  while (std::gcd(stride, count) != 1) stride += 2;
  return (i * (stride % count) + l.seed % count) % count;
}

}  // namespace

std::string_view Program::Line(int line) const {
  std::string_view rest = *text;
  for (int i = 1; i < line; ++i) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  const size_t first = rest.find_first_not_of(" \t\r"), last = rest.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : rest.substr(first, last - first + 1);
}

absl::Status RunLaunch(const Launch& launch, int host_threads, Statistics* statistics) {
  FORGE_RETURN_IF_ERROR(CheckLaunch(launch));
  const uint64_t blocks = launch.grid.count();
  const auto table = launch.memory->Table();
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  absl::Status result;
  const auto work = [&] {
    Block block(launch, table);
    for (uint64_t i = next++; i < blocks && !stop; i = next++) {
      const absl::Status status = block.Run(BlockAt(launch.grid, BlockInOrder(launch, i, blocks)));
      if (status.ok()) continue;
      stop = true;
      std::lock_guard lock(mutex);
      if (result.ok()) result = status;
    }
    std::lock_guard lock(mutex);
    if (statistics != nullptr) statistics->Add(block.statistics);
  };
  const uint64_t workers = std::clamp<uint64_t>(blocks, 1, std::max(host_threads, 1));
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  return result;
}

absl::StatusOr<std::unique_ptr<LoadedModule>> LoadedModule::Load(std::string text, Memory& memory) {
  FORGE_ASSIGN_OR_RETURN(Module module, ParseModule(std::move(text)));
  std::unique_ptr<LoadedModule> loaded(new LoadedModule(std::move(module), memory));
  FORGE_RETURN_IF_ERROR(loaded->AllocateVariables());
  for (const Function& f : loaded->module_.functions)
    if (f.entry) FORGE_RETURN_IF_ERROR(loaded->Kernel(f.name).status());
  return loaded;
}

LoadedModule::~LoadedModule() {
  for (const auto& [name, global] : globals_) memory_.Free(global.first).IgnoreError();
}

absl::Status LoadedModule::AllocateVariables() {
  for (const Variable& v : module_.variables) {
    if (v.space != Space::kGlobal && v.space != Space::kConst) continue;
    if (globals_.contains(v.name))
      return InvalidArgument("the variable {} is defined twice", v.name);
    FORGE_ASSIGN_OR_RETURN(const uint64_t base,
                           memory_.Allocate(v.bytes, v.space == Space::kConst));
    globals_[v.name] = {base, v.bytes};
    uint8_t* const host = memory_.Find(base, v.bytes).host.get();
    std::fill(host, host + v.bytes, uint8_t{0});
    std::copy(v.initial.begin(), v.initial.end(), host);
  }
  for (const Variable& v : module_.variables) {
    for (const Variable::Address& a : v.addresses) {
      const auto found = globals_.find(a.symbol);
      if (found == globals_.end()) return InvalidArgument("there is no variable {}", a.symbol);
      const uint64_t value = found->second.first + a.offset;
      std::memcpy(memory_.Find(globals_[v.name].first, v.bytes).host.get() + a.at, &value,
                  sizeof(value));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const Program*> LoadedModule::Kernel(std::string_view name) {
  std::lock_guard lock(mutex_);
  if (const auto known = programs_.find(name); known != programs_.end()) return known->second.get();
  for (const Function& f : module_.functions) {
    if (!f.entry || f.name != name) continue;
    FORGE_ASSIGN_OR_RETURN(Program program, DecodeKernel(module_, f, globals_));
    auto owned = std::make_unique<Program>(std::move(program));
    const Program* const result = owned.get();
    programs_[f.name] = std::move(owned);
    return result;
  }
  return NotFound("the module has no kernel {}", name);
}

absl::StatusOr<std::pair<uint64_t, uint64_t>> LoadedModule::Global(std::string_view name) const {
  const auto found = globals_.find(name);
  if (found == globals_.end()) return NotFound("the module has no variable {}", name);
  return found->second;
}

}  // namespace forge::ptx
