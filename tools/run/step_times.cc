// SPDX-License-Identifier: Apache-2.0
#include "tools/run/step_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/page/fused_ops.h"
#include "tools/support/terminal.h"

namespace forge::tools {
namespace {

constexpr size_t kSlowest = 10;  // steps that Text lists

std::string Percent(double share) { return fmt::format("{:.1f} %", share * 100); }

}  // namespace

absl::Status StepTimes::Add(const Executable& e) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<StepTime> times, e.Timestamps());
  if (runs_ == 0) {
    steps_.assign(e.steps().begin(), e.steps().end());
    for (const ir::Node* node : e.step_nodes())
      ops_.push_back(node == nullptr ? "copy" : OpsOf(*node));
    nanoseconds_.assign(steps_.size(), 0);
  }
  if (times.size() != steps_.size())
    return Internal("{} steps were timed, but the plan has {}", times.size(), steps_.size());
  for (size_t i = 0; i < times.size(); ++i)
    nanoseconds_[i] += static_cast<double>(times[i].end - times[i].begin);
  ++runs_;
  return absl::OkStatus();
}

std::vector<StepTimes::Row> StepTimes::Rows() const {
  std::map<std::string, Row> rows;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Row& row = rows[ops_[i]];
    row.op = ops_[i];
    ++row.steps;
    row.ms += StepMs(i);
  }
  std::vector<Row> out;
  for (auto& [op, row] : rows) out.push_back(std::move(row));
  std::stable_sort(out.begin(), out.end(), [](const Row& a, const Row& b) { return a.ms > b.ms; });
  return out;
}

std::string StepTimes::Text() const {
  const std::vector<Row> rows = Rows();
  const double total = std::accumulate(rows.begin(), rows.end(), 0.0,
                                       [](double sum, const Row& r) { return sum + r.ms; });
  Table by_op({"op", "steps", "ms", "share"});
  for (const Row& r : rows)
    by_op.Add({r.op, std::to_string(r.steps), fmt::format("{:.3f}", r.ms), Percent(r.ms / total)});
  by_op.Add({"all", std::to_string(steps_.size()), fmt::format("{:.3f}", total), Percent(1)});
  std::vector<size_t> order(steps_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return nanoseconds_[a] > nanoseconds_[b]; });
  Table slowest({"step", "ms", "share", "kernel", "node"});
  for (size_t i = 0; i < std::min(kSlowest, order.size()); ++i) {
    const StepInfo& s = steps_[order[i]];
    slowest.Add({s.number < 0 ? "" : std::to_string(s.number),
                 fmt::format("{:.3f}", StepMs(order[i])), Percent(StepMs(order[i]) / total),
                 s.kernel, s.label});
  }
  return by_op.Text() + "the slowest steps:\n" + slowest.Text();
}

nlohmann::json StepTimes::ByOp() const {
  const std::vector<Row> rows = Rows();
  double total = 0;
  for (const Row& r : rows) total += r.ms;
  nlohmann::json out = nlohmann::json::array();
  for (const Row& r : rows)
    out.push_back({{"op", r.op}, {"steps", r.steps}, {"ms", r.ms}, {"share", r.ms / total}});
  return out;
}

nlohmann::json StepTimes::BySteps() const {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const StepInfo& s = steps_[i];
    out.push_back({{"number", s.number < 0 ? nlohmann::json() : nlohmann::json(s.number)},
                   {"label", s.label},
                   {"op", ops_[i]},
                   {"kernel", s.kernel},
                   {"types", s.types},
                   {"ms", StepMs(i)}});
  }
  return out;
}

}  // namespace forge::tools
