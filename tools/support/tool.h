// SPDX-License-Identifier: Apache-2.0
// What every tool shares: options, errors and exit statuses of the command-line contract.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::tools {

// A program in the making: add what it takes, then Run. Values hold their defaults and must outlive
// the tool; help shows the defaults. (The library behind this stays in tool.cc: its header costs
// each source that includes it ten seconds.)
class Tool {
 public:
  // `examples`: whole command lines, one each, shown at the end of --help.
  Tool(std::string name, std::string purpose, const std::vector<std::string>& examples);
  ~Tool();
  // The argument without a dash, which must be given.
  void Argument(const std::string& name, std::string& value, const std::string& help);
  // names: "-o,--out OUT.bin", the last word standing for the value in the help.
  void Option(const std::string& names, std::string& value, const std::string& help);
  struct Range {
    int least, most;
  };
  // A default below the range stands for none.
  void Option(const std::string& names, int& value, Range range, const std::string& help);
  // Not negative and finite. A negative default stands for none.
  void Option(const std::string& names, double& value, const std::string& help);
  // With or without a value: `given` tells whether the option was there.
  void OptionalValue(const std::string& names, bool& given, std::string& value,
                     const std::string& help);
  // May be given again and again.
  void List(const std::string& names, std::vector<std::string>& values, const std::string& help);
  void Flag(const std::string& names, bool& value, const std::string& help);
  // --device, with --devices as another spelling: one, or several by repetition or commas.
  void Device(std::string& name, const std::string& help);
  void Devices(std::vector<std::string>& names, const std::string& help);
  void AddJson();  // --json

  // Refused, rather than ignored: `option` without any of `others`; two that contradict each other.
  void Needs(const std::string& option, const std::vector<std::string>& others);
  void Excludes(const std::string& option, const std::vector<std::string>& others);
  // For programs that do several things: refuses every option that was given and has no part in
  // this one, `what` in words.  errors: InvalidArgument
  absl::Status Only(std::string_view what, const std::vector<std::string>& options) const;
  bool Given(const std::string& option) const;

  bool json() const { return json_; }
  bool verbose() const { return verbose_; }

  // With --json: what Run prints at its end, `error` added to it when the work failed (to an object
  // with the member `results` where it is no object).
  void SetResult(nlohmann::json result);

  // Parses and calls `work`; a failure becomes one sentence on stderr, with --json an object on
  // stdout too. Returns the exit status: 0, or by the code of the failure (see ExitStatus).
  int Run(int argc, char** argv, const std::function<absl::Status()>& work);

 private:
  absl::Status CheckRules() const;
  int Fail(const absl::Status& s) const;
  std::string name_;
  struct Parser;
  std::unique_ptr<Parser> parser_;
  bool json_ = false, verbose_ = false;
};

// The word for a failure's exit status in --json: "usage", "file", "device", "refused", "failed".
std::string_view CodeName(const absl::Status& s);

}  // namespace forge::tools
