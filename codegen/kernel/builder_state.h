// SPDX-License-Identifier: Apache-2.0
// The state of a Builder. Private to its sources.
#pragma once
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

struct Builder::State {
  using Key = absl::InlinedVector<uint32_t, 8>;  // equal for equal instructions
  // A block under construction. Pure instructions are hoisted out of loops, but not out of an If,
  // whose condition may exist to avoid their cost.
  struct Open {
    BlockId block = 0;
    bool loop = false;
    absl::flat_hash_map<Key, Id> seen;
  };
  // The place where a value is defined. Block arguments and results of If, For and While have no
  // instruction.
  struct Def {
    uint32_t level = 0;  // into `open`
    BlockId block = 0;
    uint32_t inst = UINT32_MAX;
  };

  explicit State(Builder& builder) : b(builder), k(builder.kernel()) {}

  Id NewValue(const Type& type, uint32_t level);
  const Inst* DefOf(Val v) const;  // null: a block argument, or a result of control flow
  uint32_t level() const { return static_cast<uint32_t>(open.size()) - 1; }

  void SetArgs(Inst& i, std::span<const Val> args);
  // Appends to the block open at `level` and computes the uniformity of the result.
  Id Append(Inst i, const Type& type, std::span<const Val> args, uint32_t level);
  // Appends to the innermost block an instruction without a value, or an If, For or While whose
  // blocks are complete; its results have the types of `like`.
  Vals Close(const Inst& i, std::span<const Val> args, std::span<const Val> like = {});
  // The same with results of these types.
  Vals CloseAs(Inst i, std::span<const Val> args, std::span<const Type> results);
  // Returns the value of an equal instruction of an open block, or appends the instruction to the
  // outermost possible block.
  Id Share(Inst i, const Type& type, std::span<const Val> args, uint32_t level);
  uint32_t OutermostLevel(std::span<const Val> args) const;
  Val AddPure(const Inst& i, const Type& type, std::span<const Val> list);

  // Returns an existing value or simpler expression that the pure `i` equals; null otherwise.
  // (simplify.cc)
  Val Simplify(const Inst& i, const Type& type, std::span<const Val> args) const;

  // Control flow.
  BlockId NewBlocks(int n);
  // Fills a block; `body` returns the values that it yields.
  Vals Fill(BlockId block, bool loop, absl::FunctionRef<Vals()> body);
  Val Argument(BlockId block, const Type& type, Uniform uniform);
  Vals Arguments(BlockId block, std::span<const Val> like);

  Builder& b;
  Kernel& k;
  std::vector<Open> open;
  std::vector<Def> defs;  // by value
  bool precise = true;
};

}  // namespace forge::codegen
