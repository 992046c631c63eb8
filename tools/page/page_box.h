// SPDX-License-Identifier: Apache-2.0
// What a box of the model page says, and how large it is.
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

// Large enough for the text, up to a limit, where the viewer cuts it.
//   label: letters of the longest text beside the lines that leave the box
LayoutBox SizeOf(const BoxText& text, size_t label);

// "1×16×28×28", "i64 10", "f32 scalar": the element type where it is not f32, and of scalars. A
// long expression is a question mark.
std::string ShapeText(const ir::Type& type);

// The number of a constant of one element, as text; empty for everything else.
std::string ScalarText(const ir::Variable& v);
// The number that a `fill` is made of, with its shape unless it has one element; empty for
// everything else.
std::string FillText(const ir::Function& f, const ir::Node& node);

// A line for each weight that the node reads ("w 16×1×3×3", "bias 0.5") and for each operand that
// FillText describes, and one for the attributes that are not defaults.
//   fills: by value, FillText of what makes it
std::vector<BoxLine> LinesOf(const ir::Function& f, const ir::Node& node,
                             const std::vector<std::string>& fills);

size_t Letters(std::string_view utf8);

}  // namespace forge::tools
