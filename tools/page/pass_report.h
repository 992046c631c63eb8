// SPDX-License-Identifier: Apache-2.0
// The effect of each pass on a function: a diff of its text and the change in op counts.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "ir/graph/module.h"
#include "tools/page/line_diff.h"

namespace forge::tools {

// Follows a function through the passes. A pass renumbers unnamed values, so corresponding lines
// keep the numbers of the previous text and differ only where the node does.
class PassReport {
 public:
  // Sets the initial state of a function; others start empty.
  void Begin(const ir::Function& f);

  struct Change {
    std::string diff;  // unified; empty when nothing changed
    size_t nodes_before = 0, nodes_after = 0;
    // Counts before and after, for ops where they differ.
    std::map<std::string, std::pair<int, int>> ops;
  };
  // Compares the function with its state at the previous call.
  Change After(const ir::Function& f);

 private:
  struct Known {
    Lines lines;
    std::map<std::string, int> ops;
    int next_number = 0;
  };
  std::map<std::string, Known> known_;  // by the function's name
};

// A summary in one line: "fold: 243 -> 180 nodes; add 24 -> 12, batch_norm 35 -> 0".
std::string SummaryOf(std::string_view pass, std::string_view function,
                      const PassReport::Change& c);

}  // namespace forge::tools
