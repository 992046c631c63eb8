// SPDX-License-Identifier: Apache-2.0
// The text and size of a box on the model page.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "tools/page/layered_layout.h"

namespace forge::tools {

struct BoxLine {
  std::string_view kind;  // a class of viewer.css: "name", "weight", "attribute", "kernel"
  std::string text;
};
struct BoxText {
  std::string head;
  std::vector<BoxLine> lines;
};

// Returns a size that fits the text, up to a limit beyond which the viewer truncates it.
//   label: letters of the longest text beside the edges that leave the box
LayoutBox SizeOf(const BoxText& text, size_t label);

// A shape as text: "1×16×28×28", "i64 10", "f32 scalar". The element type is shown where it is not
// f32, and for scalars. A long expression is shown as a question mark.
std::string ShapeText(const ir::Type& type);

// The value of a one-element constant as text; empty for everything else.
std::string ScalarText(const ir::Variable& v);
// The value of a `fill`, with its shape unless it has one element; empty for everything else.
std::string FillText(const ir::Function& f, const ir::Node& node);

// Returns a line for each weight that the node reads ("w 16×1×3×3", "bias 0.5") and for each
// operand that FillText describes, and one for attributes that differ from their defaults.
//   fills: by value, FillText of its defining op
std::vector<BoxLine> LinesOf(const ir::Function& f, const ir::Node& node,
                             const std::vector<std::string>& fills);

// The number of characters of a UTF-8 string.
size_t Letters(std::string_view utf8);

}  // namespace forge::tools
