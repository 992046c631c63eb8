// SPDX-License-Identifier: Apache-2.0
// Products of one value with several weights, as one product with the weights side by side: the
// value is read once, and a device sees one large matrix in place of several small ones.
#include "absl/container/flat_hash_set.h"
#include "ir/graph/copier.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/product/matmul.h"
#include "ir/passes/passes.h"
#include "ir/passes/patterns.h"

namespace forge::ir {
namespace {

// x * weight + bias. Its result is split off by a slice, which whoever reads it must be able to
// take in: one reader, that moves elements or is an anchor.
struct Member {
  const Node* product = nullptr;
  const Node* sum = nullptr;  // null: no bias
  uint32_t bias = kAbsent;
  const Node& last() const { return sum ? *sum : *product; }
};

class Joiner {
 public:
  Joiner(const Function& in, Function& out)
      : in_(in),
        uses_(in.UseCounts()),
        readers_(in.value_count()),
        static_(StaticValuesOf(in)),
        copy_(in, out),
        out_(out) {
    for (const Node& node : in.nodes())
      for (uint32_t v : node.in)
        if (v != kAbsent) readers_[v].push_back(&node);
  }

  absl::Status Run() {
    copy_.CopyArguments();
    for (const Node& node : in_.nodes()) {
      if (copied_.contains(&node)) continue;
      const std::vector<Member> siblings = SiblingsOf(node);
      if (siblings.size() > 1)
        Join(siblings);
      else
        Copy(node);
    }
    return copy_.Finish();
  }

 private:
  void Copy(const Node& node) {
    copied_.insert(&node);
    copy_.CopyNode(node);
  }

  // All that depends on constants alone, and the literals among it, ahead of their turn: weights of
  // products further on.
  void CopyStatic() {
    for (const Node& node : in_.nodes()) {
      const bool literal = node.in.empty() && node.runtime_attributes.empty();
      if (!HasEffects(node) && (literal || static_[node.first_out]) && !copied_.contains(&node))
        Copy(node);
    }
  }

  const Node* OnlyReader(uint32_t value) const {
    return uses_[value] == 1 && readers_[value].size() == 1 ? readers_[value][0] : nullptr;
  }

  std::optional<Member> MemberOf(const Node& node) const {
    const MatMul* op = node.op.As<MatMul>();
    if (op == nullptr || op->transpose_a || !static_[node.in[1]]) return std::nullopt;
    const Type &weight = in_.type(node.in[1]), &result = in_.type(node.first_out);
    if (weight.rank() != 2 || !weight.is_constant() || weight.encoding() || !result.is_tensor())
      return std::nullopt;
    Member m{.product = &node};
    const Node* reader = OnlyReader(node.first_out);
    if (reader == nullptr) return std::nullopt;
    if (reader->op.Is<Add>()) {
      m.bias = reader->in[reader->in[0] == node.first_out ? 1 : 0];
      const Type& bias = in_.type(m.bias);
      if (!static_[m.bias] || bias.rank() != 1 || bias.dtype() != weight.dtype() ||
          !(bias.shape()[0] == result.shape().back()))
        return std::nullopt;
      m.sum = reader;
      reader = OnlyReader(reader->first_out);
    }
    if (reader == nullptr || reader->op.def().scalar) return std::nullopt;
    return m;
  }

  // The products of node's operand that are like it, node first; alone where it is none.
  std::vector<Member> SiblingsOf(const Node& node) const {
    std::vector<Member> out;
    const std::optional<Member> first = MemberOf(node);
    if (!first) return out;
    for (const Node* other : readers_[node.in[0]]) {
      if (other->in[0] != node.in[0] || copied_.contains(other) || !(other->op == node.op))
        continue;
      const std::optional<Member> m = MemberOf(*other);
      if (m && (m->sum == nullptr) == (first->sum == nullptr)) out.push_back(*m);
    }
    return out;
  }

  void Join(const std::vector<Member>& siblings) {
    CopyStatic();
    Values weights, biases;
    std::vector<ProvenanceRef> parts;
    for (const Member& m : siblings) {
      weights.push_back(copy_[m.product->in[1]]);
      if (m.sum) biases.push_back(copy_[m.bias]);
      parts.push_back(m.product->from);
      if (m.sum) parts.push_back(m.sum->from);
    }
    Function::Scope scope(out_, MadeBy("join", parts));
    const MatMul& op = *siblings[0].product->op.As<MatMul>();
    const Value weight = out_.Add(Concat{.axis = op.transpose_b ? 0 : 1}, weights)[0];
    Value all = out_.Add(op, std::array{copy_[siblings[0].product->in[0]], weight})[0];
    if (!biases.empty())
      all = out_.Add(Add{}, std::array{all, out_.Add(Concat{.axis = 0}, biases)[0]})[0];
    int64_t at = 0;
    for (const Member& m : siblings) {
      const int64_t end = at + in_.type(m.product->first_out).shape().back().constant();
      const Slice part{.begin = {at}, .end = {end}, .axes = {-1}};
      copy_.Map(m.last().first_out, out_.Add(part, std::array{all})[0]);
      copied_.insert({m.product, &m.last()});
      at = end;
    }
  }

  const Function& in_;
  const std::vector<int> uses_;
  std::vector<std::vector<const Node*>> readers_;
  const std::vector<bool> static_;
  absl::flat_hash_set<const Node*> copied_;
  Copier copy_;
  Function& out_;
};

}  // namespace

absl::Status Join(const Function& in, Function& out) { return Joiner(in, out).Run(); }

}  // namespace forge::ir
