// SPDX-License-Identifier: Apache-2.0
// A model as one HTML file that needs nothing else: graph, attributes, provenance, weights.
#pragma once
#include <map>
#include <span>
#include <string>

#include "ir/graph/module.h"

namespace forge::tools {

// What runs a node.
struct PageStep {
  int number = 0;
  std::string kernel;
  double ms = -1;  // negative: not known
};
using PageSteps = std::map<const ir::Node*, PageStep>;

struct ModelPage {
  std::string title;  // "fashion.bin", "fashion.bin after fuse on vulkan:0"
  std::span<const std::pair<std::string, std::string>> metadata;
  PageSteps steps;  // of nodes that are steps of a plan
};

// The page. Every string of the model is data in it, never markup or script; long ones are cut.
// Functions are laid out here, so that a browser only draws. Of more than 20,000 nodes the rest is
// left out, and of more than 4 MiB of weights' statistics too, and the page says so.
//   functions: the first is shown first; bodies of their nodes are added
std::string ModelPageHtml(const ModelPage& page, std::span<const ir::Function* const> functions);

}  // namespace forge::tools
