// SPDX-License-Identifier: Apache-2.0
#include "tools/support/tool.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"

namespace forge::tools {

struct Tool::Parser {
  CLI::App app;
  struct Rule {
    std::string option;
    std::vector<std::string> others;
    bool needs;  // else excludes
  };
  std::vector<Rule> rules;
  std::vector<std::pair<const CLI::Option*, bool*>> optional_values;
  nlohmann::json result;  // null: none

  void PrintJson(const nlohmann::json& value) const {
    std::cout << value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }

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
  Flag("-v,--verbose", verbose_, "Print more details");
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

void Tool::Option(const std::string& names, double& value, const std::string& help) {
  CLI::Option* option = parser_->Add(names, value, help);
  option->check(CLI::Validator(CLI::Range(0.0, 1e30)).description(""));
  if (value >= 0) option->capture_default_str();
}

void Tool::OptionalValue(const std::string& names, bool& given, std::string& value,
                         const std::string& help) {
  parser_->optional_values.emplace_back(parser_->Add(names, value, help)->expected(0, 1), &given);
}

void Tool::List(const std::string& names, std::vector<std::string>& values,
                const std::string& help) {
  // Extra arguments belong to whoever comes next.
  parser_->Add(names, values, help + "; repeatable")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

void Tool::Flag(const std::string& names, bool& value, const std::string& help) {
  parser_->app.add_flag(names, value, help);
}

void Tool::Device(std::string& name, const std::string& help) {
  Option("--device,--devices NAME", name, help);
}

void Tool::Devices(std::vector<std::string>& names, const std::string& help) {
  parser_->Add("--device,--devices NAME", names, help + "; repeatable, or with commas")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

void Tool::Needs(const std::string& option, const std::vector<std::string>& others) {
  parser_->rules.push_back({option, others, true});
}

void Tool::Excludes(const std::string& option, const std::vector<std::string>& others) {
  parser_->rules.push_back({option, others, false});
}

bool Tool::Given(const std::string& option) const {
  const CLI::Option* found = parser_->app.get_option_no_throw(option);
  FORGE_CHECK(found != nullptr);
  return found->count() > 0;
}

absl::Status Tool::CheckRules() const {
  for (const Parser::Rule& rule : parser_->rules) {
    if (!Given(rule.option)) continue;
    const auto other = std::find_if(rule.others.begin(), rule.others.end(),
                                    [&](const std::string& o) { return Given(o); });
    if (rule.needs && other == rule.others.end())
      return InvalidArgument("{} has no effect without {}", rule.option,
                             fmt::join(rule.others, " or "));
    if (!rule.needs && other != rule.others.end())
      return InvalidArgument("{} and {} cannot be given together", rule.option, *other);
  }
  return absl::OkStatus();
}

absl::Status Tool::Only(std::string_view what, const std::vector<std::string>& options) const {
  std::vector<const CLI::Option*> allowed;
  for (const std::string& o : options) allowed.push_back(parser_->app.get_option(o));
  for (const char* o : {"--json", "--verbose"})
    allowed.push_back(parser_->app.get_option_no_throw(o));
  for (const CLI::Option* o : parser_->app.get_options()) {
    if (o->count() == 0 || o->get_positional()) continue;
    if (std::find(allowed.begin(), allowed.end(), o) == allowed.end())
      return InvalidArgument("{} has no effect on {}", o->get_name(), what);
  }
  return absl::OkStatus();
}

void Tool::AddJson() { Flag("--json", json_, "Print one JSON value, and nothing else, on stdout"); }

void Tool::SetResult(nlohmann::json result) { parser_->result = std::move(result); }

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
  for (const auto& [option, given] : parser_->optional_values) *given = option->count() > 0;
  if (absl::Status s = CheckRules(); !s.ok()) return Fail(s);
  RemoveUnfinishedFilesOnSignal();
  const absl::Status s = work();
  if (s.ok() && json_ && !parser_->result.is_null()) parser_->PrintJson(parser_->result);
  std::cout.flush();
  if (s.ok() && std::cout.fail()) return Fail(Internal("cannot write to stdout"));
  return s.ok() ? 0 : Fail(s);
}

int Tool::Fail(const absl::Status& s) const {
  const std::string message(Message(s));
  if (json_) {
    nlohmann::json out = std::move(parser_->result);
    if (!out.is_object() && !out.is_null()) out = {{"results", std::move(out)}};
    out["error"] = {{"code", std::string(CodeName(s))}, {"message", message}, {"where", name_}};
    parser_->PrintJson(out);
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
