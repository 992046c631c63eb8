// SPDX-License-Identifier: Apache-2.0
// A model as one self-contained HTML file: graph, attributes, provenance, weights.
#pragma once
#include <map>
#include <span>
#include <string>

#include "ir/graph/module.h"

namespace forge::tools {

// The step of a plan that executes a node.
struct PageStep {
  int number = 0;
  std::string kernel;
  double ms = -1;  // negative: unknown
};
using PageSteps = std::map<const ir::Node*, PageStep>;

// What the page shows besides the functions.
struct ModelPage {
  std::string title;  // "fashion.bin", "fashion.bin after fuse on vulkan:0"
  std::span<const std::pair<std::string, std::string>> metadata;
  PageSteps steps;  // the steps of nodes, where there is a plan
};

// Returns the page. Strings of the model are embedded as data, never as markup or script; long ones
// are truncated. Functions are laid out here, so the browser only draws. Nodes beyond 20,000, and
// statistics of weights beyond 4 MiB, are omitted, and the page says so.
//   functions: the first is shown first; bodies of their nodes are added
std::string ModelPageHtml(const ModelPage& page, std::span<const ir::Function* const> functions);

}  // namespace forge::tools
