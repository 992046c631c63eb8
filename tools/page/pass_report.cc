// SPDX-License-Identifier: Apache-2.0
#include "tools/page/pass_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/copier.h"

namespace forge::tools {
namespace {

// Calls number(text) for each "%12" of a line outside quotes, and copies the rest.
template <class F>
std::string MapNumbers(std::string_view line, F number) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') quoted = !quoted;
    if (c == '\\' && quoted && i + 1 < line.size()) {
      out += c;
      out += line[++i];
      continue;
    }
    out += c;
    if (c != '%' || quoted) continue;
    const size_t begin = i + 1;
    while (i + 1 < line.size() && line[i + 1] >= '0' && line[i + 1] <= '9') ++i;
    if (i + 1 > begin) out += number(std::string(line.substr(begin, i + 1 - begin)));
  }
  return out;
}

std::vector<std::string> NumbersOf(std::string_view line) {
  std::vector<std::string> numbers;
  MapNumbers(line, [&](std::string n) {
    numbers.push_back(n);
    return n;
  });
  return numbers;
}

Lines WithoutNumbers(const Lines& lines) {
  Lines out;
  for (const std::string& l : lines)
    out.push_back(MapNumbers(l, [](const std::string&) { return "_"; }));
  return out;
}

// How many of a line's numbers are results: those before the first " = ".
size_t ResultsOf(std::string_view line) {
  const size_t equals = line.find(" = ");
  return equals == line.npos ? 0 : NumbersOf(line.substr(0, equals)).size();
}

// The text of `after` with the numbers that lines of `before` gave to the same results.
Lines Renumber(const Lines& before, const Lines& after, int& next) {
  std::map<std::string, std::string> carried;
  for (const auto& [i, j] : MatchLines(WithoutNumbers(before), WithoutNumbers(after))) {
    const std::vector<std::string> old_numbers = NumbersOf(before[i]),
                                   new_numbers = NumbersOf(after[j]);
    for (size_t k = 0; k < std::min(ResultsOf(after[j]), old_numbers.size()); ++k)
      carried[new_numbers[k]] = old_numbers[k];
  }
  Lines out;
  for (const std::string& l : after)
    out.push_back(MapNumbers(l, [&](const std::string& n) {
      const auto [at, fresh] = carried.emplace(n, "");
      if (fresh) at->second = std::to_string(next++);
      return at->second;
    }));
  return out;
}

// The function and its bodies, one line a node.
Lines TextOf(const ir::Function& f) {
  Lines lines = SplitLines(ir::ToText(f));
  for (const ir::Function* body : BodiesUnder(f)) {
    const Lines more = SplitLines(ir::ToText(*body));
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

std::map<std::string, int> OpsOf(const ir::Function& f) {
  std::map<std::string, int> ops;
  for (const ir::Node& n : f.nodes()) ++ops[std::string(n.op.name())];
  return ops;
}

size_t Sum(const std::map<std::string, int>& ops) {
  size_t n = 0;
  for (const auto& [name, count] : ops) n += count;
  return n;
}

}  // namespace

void PassReport::Begin(const ir::Function& f) { After(f); }

PassReport::Change PassReport::After(const ir::Function& f) {
  Known& known = known_[f.name()];
  Known now{.lines = Renumber(known.lines, TextOf(f), known.next_number),
            .ops = OpsOf(f),
            .next_number = known.next_number};
  Change change{.diff = UnifiedDiff(known.lines, now.lines),
                .nodes_before = Sum(known.ops),
                .nodes_after = Sum(now.ops),
                .ops = {}};
  for (const auto& [name, n] : known.ops) change.ops[name].first = n;
  for (const auto& [name, n] : now.ops) change.ops[name].second = n;
  std::erase_if(change.ops, [](const auto& o) { return o.second.first == o.second.second; });
  known = std::move(now);
  return change;
}

std::string SummaryOf(std::string_view pass, std::string_view function,
                      const PassReport::Change& c) {
  std::string out =
      fmt::format("{} ({}): {} -> {} nodes", pass, function, c.nodes_before, c.nodes_after);
  std::string_view separator = "; ";
  for (const auto& [name, n] : c.ops) {
    out += fmt::format("{}{} {} -> {}", separator, name, n.first, n.second);
    separator = ", ";
  }
  return out;
}

}  // namespace forge::tools
