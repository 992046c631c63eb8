// SPDX-License-Identifier: Apache-2.0
#include "codegen/target/planner.h"

#include <algorithm>

#include "codegen/region/storage.h"

namespace forge::codegen {

absl::StatusOr<Program> Planner::Make(const Region& region, const PlanOptions& options) const {
  if (!options.choice.empty()) {
    FORGE_ASSIGN_OR_RETURN(const Choice chosen, ParseChoice(region, options.choice));
    return Generate(region, chosen);
  }
  // With an anchor the difference may be one in the order of work, not of bandwidth.
  if (options.once && region.anchor() == nullptr) {
    FORGE_ASSIGN_OR_RETURN(const Choice simplest, SimplestChoice(region));
    return Generate(region, simplest);
  }
  const std::optional<Choice> preferred = tuned_->Preferred(region);
  return preferred ? Generate(region, *preferred) : Generate(region);
}

absl::StatusOr<PlannedNode> Planner::Plan(const ir::Candidate& node,
                                          const PlanOptions& options) const {
  FORGE_ASSIGN_OR_RETURN(NodeBody body, BodyOf(node, caps_));
  return Plan(node, std::move(body), options);
}

absl::StatusOr<PlannedNode> Planner::Plan(const ir::Candidate& node, NodeBody body,
                                          const PlanOptions& options) const {
  // What is compiled open must serve all values.
  for (const ir::TypeSpan types : {node.in, node.out})
    for (const ir::Type& t : types)
      if (t && t.is_tensor())
        if (const Verdict v = CanNumber(t); !v) return Unimplemented("{}", v.text());
  PlannedNode planned;
  planned.body = std::move(body);
  planned.body.region->set_approximate(options.approximate);
  FORGE_ASSIGN_OR_RETURN(planned.made, Make(*planned.body.region, options));
  return planned;
}

std::vector<std::string> Planner::Choices(const ir::Candidate& node, size_t most) const {
  std::vector<std::string> words;
  const absl::StatusOr<NodeBody> body = BodyOf(node, caps_);
  if (!body.ok() || most == 0) return words;
  if (const std::optional<Choice> preferred = tuned_->Preferred(*body->region))
    words.push_back(preferred->ToText());
  for (const Choice& c : ChoicesFor(*body->region, most))
    if (std::string text = c.ToText();
        words.size() < most && std::find(words.begin(), words.end(), text) == words.end())
      words.push_back(std::move(text));
  return words;
}

absl::Status Planner::Prefer(const ir::Candidate& node, const std::string& choice) const {
  FORGE_ASSIGN_OR_RETURN(const NodeBody body, BodyOf(node, caps_));
  FORGE_RETURN_IF_ERROR(ParseChoice(*body.region, choice).status());
  FORGE_ASSIGN_OR_RETURN(const uint64_t key, TuningKey(*body.region));
  // A file that cannot be written costs later runs time and this one nothing.
  tuned_->Put(key, choice).IgnoreError();
  return absl::OkStatus();
}

}  // namespace forge::codegen
