// SPDX-License-Identifier: Apache-2.0
#include "tools/run/plan_report.h"

#include <nlohmann/json.hpp>

#include "ir/passes/passes.h"
#include "runtime/plan/executable.h"
#include "tools/page/fused_ops.h"
#include "tools/page/tensor_summary.h"

namespace forge::tools {

nlohmann::json PlanJson(const Session& session, bool gaps) {
  if (session.runs_in_parts()) {
    nlohmann::json parts = nlohmann::json::array();
    for (const SessionPart& part : session.parts())
      parts.push_back(
          {{"then", part.then},
           {"plan", part.session != nullptr ? PlanJson(*part.session, gaps) : nullptr}});
    return {{"parts", std::move(parts)}};
  }
  const Executable* e = session.executable();
  if (e == nullptr) return nullptr;
  nlohmann::json steps = nlohmann::json::array();
  for (size_t i = 0; i < e->steps().size(); ++i) {
    const StepInfo& s = e->steps()[i];
    const ir::Node* node = e->step_nodes()[i];
    steps.push_back({{"number", s.number < 0 ? nlohmann::json() : nlohmann::json(s.number)},
                     {"label", s.label},
                     {"op", node == nullptr ? s.op : OpsOf(*node)},
                     {"kernel", s.kernel},
                     {"types", s.types},
                     {"dispatches", s.dispatches},
                     {"bytes_written", s.bytes_written}});
  }
  const SessionStatistics n = session.statistics();
  nlohmann::json out = {{"device", session.device().info().id},
                        {"steps", steps},
                        {"memory",
                         {{"arena_bytes", n.arena_bytes},
                          {"largest_live_set_bytes", n.largest_live_set},
                          {"weight_bytes", n.weight_bytes},
                          {"staging_bytes", n.staging_bytes}}}};
  if (!gaps) return out;
  out["gaps"] = nlohmann::json::array();
  for (const ir::FusionGap& g : session.gaps())
    out["gaps"].push_back({{"from", g.from}, {"to", g.to}, {"why", g.why}});
  return out;
}

nlohmann::json OutputsJson(const std::vector<NamedTensor>& outputs,
                           const std::vector<std::filesystem::path>& files, bool values) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::HostValue& v = outputs[i].value;
    nlohmann::json one = {
        {"name", outputs[i].name},
        {"dtype", std::string(Name(v.dtype()))},
        {"shape", std::vector<int64_t>(v.shape().begin(), v.shape().end())},
        {"file", i < files.size() ? nlohmann::json(files[i].string()) : nlohmann::json()}};
    if (values && Has(kRealTypes | Bit(DType::kBool), v.dtype()))
      one["summary"] = ToJson(Summarise(v));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace forge::tools
