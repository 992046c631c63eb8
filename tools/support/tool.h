// SPDX-License-Identifier: Apache-2.0
// The common frame of all tools: options, errors and exit statuses of the command-line contract.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::tools {

// A command-line tool: declare arguments and options, then call Run. Variables hold the defaults,
// which the help shows, and must outlive the tool. (The parser library is used in tool.cc only: its
// header takes ten seconds to compile.)
class Tool {
 public:
  // Creates a tool.
  //   examples: complete command lines, shown at the end of --help
  Tool(std::string name, std::string purpose, const std::vector<std::string>& examples);
  ~Tool();
  // Declares the required positional argument.
  void Argument(const std::string& name, std::string& value, const std::string& help);
  // Declares an option.
  //   names: "-o,--out OUT.bin"; the last word names the value in the help
  void Option(const std::string& names, std::string& value, const std::string& help);
  struct Range {
    int least, most;
  };
  // Declares an integer option. A default below the range means that there is none.
  void Option(const std::string& names, int& value, Range range, const std::string& help);
  // Declares an option whose value is finite and not negative. A negative default means that there
  // is none.
  void Option(const std::string& names, double& value, const std::string& help);
  // Declares an option with an optional value; `given` is set when the option is present.
  void OptionalValue(const std::string& names, bool& given, std::string& value,
                     const std::string& help);
  // Declares an option that may be repeated.
  void List(const std::string& names, std::vector<std::string>& values, const std::string& help);
  void Flag(const std::string& names, bool& value, const std::string& help);
  // Declare --device, and --devices as another spelling: one device, or several by repetition or
  // commas.
  void Device(std::string& name, const std::string& help);
  void Devices(std::vector<std::string>& names, const std::string& help);
  void AddJson();  // --json

  // Options that would have no effect are errors: `option` without any of `others`, and `option`
  // together with one of `others`.
  void Needs(const std::string& option, const std::vector<std::string>& others);
  void Excludes(const std::string& option, const std::vector<std::string>& others);
  // For tools with several modes: checks that only options of this mode were given.
  //   what: the mode, in words     errors: InvalidArgument
  absl::Status Only(std::string_view what, const std::vector<std::string>& options) const;
  bool Given(const std::string& option) const;

  bool json() const { return json_; }
  bool verbose() const { return verbose_; }

  // Sets the value that Run prints with --json. When the work fails, Run adds `error` to it
  // (wrapping a value that is not an object in the member `results`).
  void SetResult(nlohmann::json result);

  // Parses the command line and calls `work`. A failure is printed as one sentence on stderr and,
  // with --json, as an object on stdout. Returns the exit status: 0, or the code of the failure
  // (see ExitStatus).
  int Run(int argc, char** argv, const std::function<absl::Status()>& work);

 private:
  absl::Status CheckRules() const;
  int Fail(const absl::Status& s) const;
  std::string name_;
  struct Parser;
  std::unique_ptr<Parser> parser_;
  bool json_ = false, verbose_ = false;
};

// The name of a failure in --json: "usage", "file", "device", "refused", "failed".
std::string_view CodeName(const absl::Status& s);

}  // namespace forge::tools
