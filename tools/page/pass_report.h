// SPDX-License-Identifier: Apache-2.0
// What each pass did to a function: its text before and after as a diff, and its ops counted.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "ir/graph/module.h"
#include "tools/page/line_diff.h"

namespace forge::tools {

// Follows a function through the passes. A pass numbers unnamed values anew, so numbers are carried
// over where lines correspond: a line differs only where the node does.
class PassReport {
 public:
  // Where the passes start; functions not begun start empty.
  void Begin(const ir::Function& f);

  struct Change {
    std::string diff;  // unified; empty when the pass changed nothing
    size_t nodes_before = 0, nodes_after = 0;
    std::map<std::string, std::pair<int, int>> ops;  // before and after, those that differ
  };
  // The function as a pass left it; the next call compares with this.
  Change After(const ir::Function& f);

 private:
  struct Known {
    Lines lines;
    std::map<std::string, int> ops;
    int next_number = 0;
  };
  std::map<std::string, Known> known_;  // by the function's name
};

// One line: "fold: 243 -> 180 nodes; add 24 -> 12, batch_norm 35 -> 0".
std::string SummaryOf(std::string_view pass, std::string_view function,
                      const PassReport::Change& c);

}  // namespace forge::tools
