// SPDX-License-Identifier: Apache-2.0
// What a Builder knows of the kernel it is making. Private to the builder's sources.
#pragma once
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

struct Builder::State {
  using Key = absl::InlinedVector<uint32_t, 8>;  // everything that makes two instructions equal
  // A block whose end is not reached. Pure instructions move out of loops, never out of an If,
  // whose condition may be there to save their price.
  struct Open {
    BlockId block = 0;
    bool loop = false;
    absl::flat_hash_map<Key, Id> seen;
  };
  // Where a value is made; block arguments and results of If, For and While have no instruction.
  struct Def {
    uint32_t level = 0;  // into `open`
    BlockId block = 0;
    uint32_t inst = UINT32_MAX;
  };

  explicit State(Builder& builder) : b(builder), k(builder.kernel()) {}

  Id NewValue(const Type& type, uint32_t level);
  const Inst* DefOf(Val v) const;  // null: an argument or the result of control
  uint32_t level() const { return static_cast<uint32_t>(open.size()) - 1; }

  void SetArgs(Inst& i, std::span<const Val> args);
  // Appends to the block open at `level`; the instruction's value gets its uniformity.
  Id Append(Inst i, const Type& type, std::span<const Val> args, uint32_t level);
  // Appends to the innermost block what has no value, or an If, For or While whose blocks are
  // complete; its results have the types of `like`.
  Vals Close(Inst i, std::span<const Val> args, std::span<const Val> like = {});
  // The value of an equal instruction in an open block, or a new one made as far out as may be.
  Id Share(Inst i, const Type& type, std::span<const Val> args, uint32_t level);
  uint32_t OutermostLevel(std::span<const Val> args) const;
  Val AddPure(const Inst& i, const Type& type, std::span<const Val> list);

  // What the pure `i` of `args` is equal to without it; nothing when it is needed.  (simplify.cc)
  Val Simplify(const Inst& i, const Type& type, std::span<const Val> args) const;

  // Control flow.
  BlockId NewBlocks(int n);
  // All of a block: `body` gives what it yields.
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
