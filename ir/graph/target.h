// SPDX-License-Identifier: Apache-2.0
// The interface between passes and a device: supported nodes, fusion, encodings and estimated
// times.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// A node with its types, independent of a function.
struct Candidate {
  const AnyOp& op;
  TypeSpan in, out;
};

// One way to lay out a node's operands and results; null entries are dense.
struct EncodingChoice {
  std::vector<EncodingRef> in, out;
  double seconds = 0;  // estimated; relayouts are priced by the same target
};

// When fusing an operand into the loads of a kernel, which recomputes it, is faster than storing
// it.
struct Recomputation {
  int64_t reads = 64;  // most loads of each element: the rows of a tile of a matrix product
  int ops = 2;         // most ops that compute an element, of one or two instructions each
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;  // "vulkan: llvmpipe"
  // Whether the node can run without decomposition, for every binding: Yes(name of the kernel) or
  // No(missing feature).
  virtual Verdict Supports(const Candidate& node) const = 0;
  // Whether `body`, one anchor with element-wise and movement ops around it, can be one program
  // that is not slower than its parts: Yes(name of the kernel) or No(reason).
  virtual Verdict Fuses(const Function& body) const = 0;
  // The same for two anchors, of which the second is the only user of the first.
  virtual Verdict FusesAnchors(const Function&) const {
    return Verdict::No("kernels have one anchor");
  }
  virtual Recomputation Recomputes() const { return {}; }
  // Whether products of 8-bit integers are faster than products of f32.
  virtual bool MultipliesBytes() const { return false; }
  // Encodings of operands and results, best first; empty: dense only. Types are bound.
  virtual std::vector<EncodingChoice> Encodings(const Candidate& node) const = 0;
  // Estimated seconds of a node or region; used to choose encodings, submissions and threads.
  virtual double Seconds(const Candidate& node) const = 0;
};

}  // namespace forge::ir
