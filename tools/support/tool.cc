// SPDX-License-Identifier: Apache-2.0
#include "tools/support/tool.h"

#include <cstdio>
#include <iostream>

namespace forge::tools {

Tool::Tool(std::string name, std::string purpose, std::vector<std::string> examples)
    : name_(std::move(name)), app_(std::move(purpose), name_) {
  std::string footer = examples.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& e : examples) footer += "\n  " + e;
  app_.footer(footer);
  app_.set_version_flag("--version", name_ + " " FORGE_VERSION);
  app_.add_flag("-v,--verbose", verbose_, "Say more about what is done");
}

void Tool::AddJson() {
  app_.add_flag("--json", json_, "Print one JSON value on stdout and nothing else there");
}

int Tool::Run(int argc, char** argv, const std::function<absl::Status()>& work) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app_.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string message = e.what();
    for (char& c : message)
      if (c == '\n') c = ' ';
    return Fail(InvalidArgument("{}; see {} --help", message, name_));
  }
  const absl::Status s = work();
  std::cout.flush();
  if (s.ok() && std::cout.fail()) return Fail(Internal("the output could not be written"));
  return s.ok() ? 0 : Fail(s);
}

int Tool::Fail(const absl::Status& s) const {
  const std::string message(Message(s));
  if (json_) {
    const nlohmann::json error = {
        {"error", {{"code", std::string(CodeName(s))}, {"message", message}, {"where", name_}}}};
    std::cout << error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  std::fprintf(stderr, "%s: error: %s\n", name_.c_str(), message.c_str());
  return ExitStatus(s);
}

int ExitStatus(const absl::Status& s) {
  switch (s.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return 2;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kNotFound:
      return 3;
    case absl::StatusCode::kUnavailable:
      return 4;
    case absl::StatusCode::kUnimplemented:
      return 5;
    default:
      return 1;
  }
}

std::string_view CodeName(const absl::Status& s) {
  switch (ExitStatus(s)) {
    case 0:
      return "ok";
    case 2:
      return "usage";
    case 3:
      return "file";
    case 4:
      return "device";
    case 5:
      return "refused";
    default:
      return "failed";
  }
}

}  // namespace forge::tools
