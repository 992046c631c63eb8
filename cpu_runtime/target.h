// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cpu_runtime/program.h"
#include "ir/graph/target.h"

namespace forge::cpu {

// The target of the CPU: supported nodes and regions, preferred layouts, estimated times. See
// ir/graph/target.h.
class CpuTarget final : public ir::Target {
 public:
  CpuTarget(std::string name, Settings settings) : name_(std::move(name)), settings_(settings) {}
  std::string_view name() const override { return name_; }
  Verdict Supports(const ir::Candidate& node) const override;
  Verdict Fuses(const ir::Function& body) const override;
  bool MultipliesBytes() const override { return true; }
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate& node) const override;
  double Seconds(const ir::Candidate& node) const override;

 private:
  std::string name_;
  Settings settings_;
};

}  // namespace forge::cpu
