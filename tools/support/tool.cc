// SPDX-License-Identifier: Apache-2.0
#include "tools/support/tool.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"

namespace forge::tools {

struct Tool::Parser {
  CLI::App app;

  template <class T>
  CLI::Option* Add(const std::string& names, T& value, const std::string& help) {
    const size_t space = names.find(' ');
    CLI::Option* option = app.add_option(names.substr(0, space), value, help);
    option->type_name(names.substr(space + 1));
    return option;
  }
};

Tool::Tool(std::string name, std::string purpose, const std::vector<std::string>& examples)
    : name_(std::move(name)), parser_(std::make_unique<Parser>()) {
  CLI::App& app = parser_->app;
  app.name(name_);
  app.description(std::move(purpose));
  std::string footer = examples.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& e : examples) footer += "\n  " + e;
  app.footer(footer);
  app.set_version_flag("--version", name_ + " " FORGE_VERSION);
  Flag("-v,--verbose", verbose_, "Say more about what is done");
}
Tool::~Tool() = default;

void Tool::Argument(const std::string& name, std::string& value, const std::string& help) {
  parser_->app.add_option(name, value, help)->required();
}

void Tool::Option(const std::string& names, std::string& value, const std::string& help) {
  parser_->Add(names, value, help)->capture_default_str();
}

void Tool::Option(const std::string& names, int& value, Range range, const std::string& help) {
  CLI::Option* option = parser_->Add(names, value, help);
  // The bounds stand in the message of whoever leaves them.
  option->check(CLI::Validator(CLI::Range(range.least, range.most)).description(""));
  if (value >= range.least) option->capture_default_str();
}

void Tool::List(const std::string& names, std::vector<std::string>& values,
                const std::string& help) {
  parser_->Add(names, values, help + "; repeatable")->expected(1)->take_all();
}

void Tool::CommaList(const std::string& names, std::vector<std::string>& values,
                     const std::string& help) {
  parser_->Add(names, values, help)->delimiter(',');
}

void Tool::Flag(const std::string& names, bool& value, const std::string& help) {
  parser_->app.add_flag(names, value, help);
}

void Tool::AddJson() {
  Flag("--json", json_, "Print one JSON value on stdout and nothing else there");
}

int Tool::Run(int argc, char** argv, const std::function<absl::Status()>& work) {
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return parser_->app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string message = e.what();
    for (char& c : message)
      if (c == '\n') c = ' ';
    return Fail(InvalidArgument("{}; see {} --help", message, name_));
  }
  RemoveUnfinishedFilesOnSignal();
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
