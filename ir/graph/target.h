// SPDX-License-Identifier: Apache-2.0
// What a pass may ask of a device. Devices implement it; passes see nothing else of them.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// A node with its types: enough to judge it, without the function it stands in.
struct Candidate {
  const AnyOp& op;
  TypeSpan in, out;
};

// One way to lay out a node's operands and results; null entries are dense.
struct EncodingChoice {
  std::vector<EncodingRef> in, out;
  double seconds = 0;  // estimated; relayouts are priced by the same target
};

// When an operand of a kernel is better computed again in each load than stored and loaded.
struct Recomputation {
  int64_t reads = 64;  // of each element, at most: rows of a tile of a matrix product
  int ops = 2;         // that make an element, at most: each an instruction or two
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;  // "vulkan: llvmpipe"
  // Can the node run as it is, for every binding? Yes(the kernel's name) or No(the missing
  // feature).
  virtual Verdict Supports(const Candidate& node) const = 0;
  // May `body`, one anchor with element-wise and movement ops around it, be one program, and is it
  // no slower than its parts? Yes(the kernel's name) or No(why).
  virtual Verdict Fuses(const Function& body) const = 0;
  // The same of two anchors, of which the second alone reads what is made of the first.
  virtual Verdict FusesAnchors(const Function&) const {
    return Verdict::No("kernels have one anchor");
  }
  virtual Recomputation Recomputes() const { return {}; }
  // Ways to lay out operands and results, best first; empty: dense only. Types are bound.
  virtual std::vector<EncodingChoice> Encodings(const Candidate& node) const = 0;
  // Estimated seconds of a node or region; for layouts, cutting submissions and dividing threads.
  virtual double Seconds(const Candidate& node) const = 0;
};

}  // namespace forge::ir
