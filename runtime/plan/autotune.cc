// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/autotune.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/hash.h"
#include "base/narrow_float.h"
#include "base/platform.h"
#include "runtime/plan/compare.h"
#include "runtime/plan/op_runner.h"

namespace forge {
namespace {

constexpr int kRuns = 5;
// A choice that takes this much longer than the best so far is not timed again.
constexpr double kHopeless = 1.5;
// Less is noise.
constexpr double kLeastGain = 1.03;

// In [-1, 1) for floats, any byte for integers of 8 bits. Other integers may be indices: in [-4, 4)
// most of them name an element, and ops say what the rest give.
absl::StatusOr<ir::HostValue> MadeUp(const ir::Type& type, uint64_t seed) {
  FORGE_ASSIGN_OR_RETURN(ir::HostValue v,
                         ir::HostValue::Zeros(type.dtype(), ir::Constants(type.shape())));
  const DType t = type.dtype();
  const bool is_float = Has(kFloatTypes, t) || IsNarrowFloat(t);
  const bool is_byte = t == DType::kI8 || t == DType::kU8;
  for (int64_t i = 0; i < v.elements(); ++i) {
    const auto drawn = static_cast<int64_t>(HashMix(seed, static_cast<uint64_t>(i)) >> 40);
    if (is_float)
      v.Set(i, static_cast<double>(drawn) * 0x1p-23 - 1);
    else if (Has(kIntTypes, t))
      v.SetI64(i, is_byte ? drawn : drawn % 8 - (Has(kSignedTypes, t) ? 4 : 0));
    else if (t == DType::kBool)
      v.SetI64(i, drawn % 2);
  }
  return v;
}

// One request compiled in one way.
struct Timed {
  double seconds = std::numeric_limits<double>::infinity();
  std::vector<NamedTensor> results;
};

class Search {
 public:
  Search(const DeviceRef& device, const CompileRequest& request)
      : device_(device), request_(request) {}

  absl::Status MakeOperands() {
    for (const ir::Type& t : request_.in) {
      operands_.emplace_back();
      if (!t) continue;
      FORGE_ASSIGN_OR_RETURN(operands_.back(), MadeUp(t, operands_.size()));
    }
    return absl::OkStatus();
  }

  // The median of kRuns after the first; only the first one when that is beyond `hopeless`.
  absl::StatusOr<Timed> Time(const std::string& choice, double hopeless) const {
    FORGE_ASSIGN_OR_RETURN(
        std::unique_ptr<OpRunner> runner,
        OpRunner::Create(
            device_, *request_.op, request_.in,
            {.timestamps = true, .compile = {.choice = choice, .fast = request_.fast}}));
    std::vector<const ir::HostValue*> in;
    for (const ir::HostValue& v : operands_) in.push_back(&v);
    Timed timed;
    std::vector<double> seconds;
    for (int run = 0; run <= kRuns; ++run) {
      FORGE_ASSIGN_OR_RETURN(std::vector<ir::HostValue> results, runner->Run(in));
      FORGE_ASSIGN_OR_RETURN(const double s, SecondsOf(runner->executable()));
      if (run == 0 && s > 2 * hopeless) return timed;
      if (run == 1)
        for (ir::HostValue& v : results)
          timed.results.push_back({std::to_string(timed.results.size()), std::move(v)});
      if (run > 0) seconds.push_back(s);
      if (run == 1 && s > hopeless) break;
    }
    std::sort(seconds.begin(), seconds.end());
    timed.seconds = seconds[seconds.size() / 2];
    return timed;
  }

 private:
  // Of the steps that compute.
  static absl::StatusOr<double> SecondsOf(const Executable& e) {
    FORGE_ASSIGN_OR_RETURN(const std::vector<StepTime> times, e.Timestamps());
    double sum = 0;
    for (size_t i = 0; i < times.size(); ++i)
      if (e.steps()[i].op != "copy") sum += static_cast<double>(times[i].end - times[i].begin);
    return sum * 1e-9;
  }

  const DeviceRef& device_;
  const CompileRequest& request_;
  std::vector<ir::HostValue> operands_;
};

absl::StatusOr<Autotuned> TuneOne(const DeviceRef& device, const CompileRequest& request,
                                  std::span<const std::string> choices, int64_t deadline) {
  Search search(device, request);
  FORGE_RETURN_IF_ERROR(search.MakeOperands());
  FORGE_ASSIGN_OR_RETURN(const Timed standing,
                         search.Time(choices[0], std::numeric_limits<double>::infinity()));
  Autotuned found{.name = request.name,
                  .choice_before = choices[0],
                  .choice = choices[0],
                  .seconds_before = standing.seconds,
                  .seconds = standing.seconds,
                  .tried = 1};
  for (const std::string& choice : choices.subspan(1)) {
    if (NowNanoseconds() >= deadline) break;
    ++found.tried;
    const absl::StatusOr<Timed> timed = search.Time(choice, kHopeless * found.seconds);
    if (!timed.ok()) {
      FORGE_RETURN_IF_ERROR(device->Health());
      continue;
    }
    if (timed->seconds * kLeastGain >= found.seconds) continue;
    FORGE_ASSIGN_OR_RETURN(const Comparison same,
                           Compare(timed->results, standing.results, Against::kDevice));
    if (!same.within()) {
      ++found.wrong;
      continue;
    }
    found.choice = choice;
    found.seconds = timed->seconds;
  }
  if (found.choice == choices[0]) return found;
  CompileRequest preferred = request;
  preferred.choice = found.choice;
  FORGE_RETURN_IF_ERROR(device->Prefer(preferred));
  return found;
}

// No operands can be made up for types that step values leave open.
bool HasNumbers(const CompileRequest& request) {
  return std::all_of(request.in.begin(), request.in.end(),
                     [](const ir::Type& t) { return !t || t.is_constant(); });
}

}  // namespace

absl::StatusOr<std::vector<Autotuned>> Autotune(const DeviceRef& device,
                                                std::span<const CompileRequest> requests,
                                                const AutotuneLimits& limits,
                                                absl::FunctionRef<void(size_t, size_t)> progress) {
  const int64_t deadline = NowNanoseconds() + static_cast<int64_t>(limits.seconds * 1e9);
  std::vector<double> cost;
  for (const auto& program : device->Compile(requests, [](size_t) { return true; }))
    cost.push_back(program.ok() ? (*program)->seconds() : 0);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return cost[a] > cost[b]; });
  std::vector<Autotuned> all;
  for (size_t done = 0; done < order.size() && NowNanoseconds() < deadline; ++done) {
    const CompileRequest& request = requests[order[done]];
    if (!HasNumbers(request)) continue;
    const std::vector<std::string> choices = device->Choices(request, limits.candidates);
    if (choices.size() > 1) {
      FORGE_ASSIGN_OR_RETURN(Autotuned found, TuneOne(device, request, choices, deadline));
      all.push_back(std::move(found));
    }
    progress(done + 1, order.size());
  }
  return all;
}

}  // namespace forge
