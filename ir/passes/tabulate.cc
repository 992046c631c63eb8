// SPDX-License-Identifier: Apache-2.0
// What is computed element by element of one 8-bit number has at most 256 values: between
// QuantizeLinear operators an activation is a table.
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "ir/graph/copier.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/lookup.h"
#include "ir/passes/passes.h"
#include "ir/passes/patterns.h"

namespace forge::ir {
namespace {

// From so many ops on, reading a table is faster than computing.
constexpr int kFewestOps = 6;
// How many one table may stand for: they are copied by recursion.
constexpr int kMostOps = 1000;

// A value as a function of the elements of `source`, computed by so many ops.
struct OfByte {
  uint32_t source = kAbsent;
  int ops = 0;
};

bool IsByte(const Type& t) {
  return t.is_tensor() && (t.dtype() == DType::kU8 || t.dtype() == DType::kI8);
}

class Tabulation {
 public:
  Tabulation(const Function& in, Function& out) : in_(in), out_(out), copy_(in, out) {}

  absl::Status Run(const Target& target) {
    for (uint32_t v = 0; v < in_.value_count(); ++v)
      of_.push_back({IsByte(in_.type(v)) ? v : kAbsent});
    for (const auto& read : in_.reads()) of_[read.value] = {};  // constants are folded
    for (const Node& node : in_.nodes())
      if (const OfByte of = FunctionOf(node); of.source != kAbsent) of_[node.first_out] = of;
    MarkRoots();
    copy_.CopyArguments();
    for (const Node& node : in_.nodes()) {
      if (node.outs == 1 && roots_.contains(node.first_out) && Supports(target, node.first_out))
        copy_.Map(node.first_out, TableOf(node));
      else
        copy_.CopyNode(node);
    }
    return copy_.Finish();
  }

 private:
  OfByte FunctionOf(const Node& node) const {
    if (node.op.def().scalar == nullptr || node.outs != 1 || !node.runtime_attributes.empty())
      return {};
    OfByte y{.source = kAbsent, .ops = 1};
    for (const uint32_t v : node.in) {
      if (v == kAbsent) return {};
      if (NumberOf(in_, v)) continue;
      const OfByte& x = of_[v];
      if (x.source == kAbsent || (y.source != kAbsent && y.source != x.source)) return {};
      y.source = x.source;
      y.ops += x.ops;
    }
    if (y.source == kAbsent || y.ops > kMostOps ||
        !(in_.type(node.first_out).shape() == in_.type(y.source).shape()))
      return {};
    return y;
  }

  // Values that something else than a function of the same bytes reads.
  void MarkRoots() {
    const auto mark = [&](uint32_t v, uint32_t source) {
      if (v != kAbsent && of_[v].ops >= kFewestOps && of_[v].source != source) roots_.insert(v);
    };
    for (const Node& node : in_.nodes()) {
      const uint32_t source = node.outs == 0 ? kAbsent : of_[node.first_out].source;
      for (const uint32_t v : node.in) mark(v, source);
      for (const RuntimeAttribute& a : node.runtime_attributes) mark(a.value, kAbsent);
    }
    for (const auto& r : in_.results()) mark(r.value, kAbsent);
    for (const auto& u : in_.updates()) mark(u.value, kAbsent);
  }

  bool Supports(const Target& target, uint32_t root) const {
    const AnyOp op(Lookup{});
    const Type& y = in_.type(root);
    const Types in{in_.type(of_[root].source), Type::Tensor(y.dtype(), {Lookup::kCodes})};
    return bool(target.Supports({op, in, std::array{y}}));
  }

  // The bytes in the order in which a table has them.
  Value Codes(DType t) {
    Variable*& codes = codes_[t];
    if (codes == nullptr) {
      std::vector<uint8_t> bytes(Lookup::kCodes);
      std::iota(bytes.begin(), bytes.end(), 0);
      Variable made{.name = fmt::format("codes.{}", Name(t)),
                    .type = Type::Tensor(t, {Lookup::kCodes})};
      made.init = Variable::Storage{Bytes(std::move(bytes)), made.type, {}};
      codes = out_.module()->AddVariable(std::move(made));
    }
    return out_.Read(codes);
  }

  // The value computed of all codes, and looked up.
  Value TableOf(const Node& root) {
    const uint32_t source = of_[root.first_out].source;
    const Function::Scope scope(out_, root.from);
    absl::flat_hash_map<uint32_t, Value> made{{source, Codes(in_.type(source).dtype())}};
    return out_(Lookup{}, {copy_[source], Computed(root.first_out, made)});
  }

  Value Computed(uint32_t v, absl::flat_hash_map<uint32_t, Value>& made) {
    if (const auto at = made.find(v); at != made.end()) return at->second;
    const Node& node = *DefiningNode(in_, v);
    Value y;
    if (NumberOf(in_, v)) {
      const Fill& fill = *node.op.As<Fill>();
      y = out_(Fill{fill.value, in_.type(v).dtype(), {}}, {});
    } else {
      Values operands;
      for (const uint32_t x : node.in) operands.push_back(Computed(x, made));
      y = out_.Add(node.op, operands)[0];
    }
    return made[v] = y;
  }

  const Function& in_;
  Function& out_;
  Copier copy_;
  std::vector<OfByte> of_;  // by value
  absl::flat_hash_set<uint32_t> roots_;
  absl::flat_hash_map<DType, Variable*> codes_;
};

}  // namespace

absl::Status Tabulate(const Function& in, Function& out, const Target& target) {
  Function made(in.name(), in.module());
  FORGE_RETURN_IF_ERROR(Tabulation(in, made).Run(target));
  // What a table replaces is now read by nobody.
  return Rewriter{.pass = "tabulate"}.Run(made, out);
}

}  // namespace forge::ir
