// SPDX-License-Identifier: Apache-2.0
// What every tool shares: options, errors and exit statuses of the command-line contract.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace forge::tools {

// A program in the making: add options to `app`, then Run.
class Tool {
 public:
  // `examples`: whole command lines, one each, shown at the end of --help.
  Tool(std::string name, std::string purpose, std::vector<std::string> examples);
  CLI::App& app() { return app_; }
  void AddJson();  // --json
  bool json() const { return json_; }
  bool verbose() const { return verbose_; }

  // Parses and calls `work`; a failure becomes one sentence on stderr, with --json an object on
  // stdout too. Returns the exit status: 0, or by the code of the failure (see ExitStatus).
  int Run(int argc, char** argv, const std::function<absl::Status()>& work);

 private:
  int Fail(const absl::Status& s) const;
  std::string name_;
  CLI::App app_;
  bool json_ = false, verbose_ = false;
};

// 1 the work failed, 2 bad usage, 3 bad input file, 4 no such device, 5 a refusal.
int ExitStatus(const absl::Status& s);
std::string_view CodeName(const absl::Status& s);

}  // namespace forge::tools
