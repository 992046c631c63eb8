// SPDX-License-Identifier: Apache-2.0
// If, For, While and ForElements: blocks are opened, filled by callbacks and closed by what they
// yield.
#include "codegen/kernel/builder_state.h"
#include "codegen/kernel/literal.h"
#include "codegen/kernel/scalar.h"

namespace forge::codegen {
namespace {

void CheckLike(std::span<const Val> a, std::span<const Val> b) {
  FORGE_CHECK(a.size() == b.size());
  for (size_t n = 0; n < a.size(); ++n) FORGE_CHECK(a[n].type() == b[n].type());
}

// Emitting a body in place is for short loops: beyond this, code grows and nothing is won.
constexpr int64_t kMostUnrolled = 1024;

}  // namespace

BlockId Builder::State::NewBlocks(int n) {
  k.blocks.resize(k.blocks.size() + n);
  return static_cast<BlockId>(k.blocks.size()) - n;
}

Vals Builder::State::Fill(BlockId block, bool loop, absl::FunctionRef<Vals()> body) {
  open.push_back({block, loop, {}});
  Vals yields = body();
  Close({.code = Code::kYield}, yields);
  open.pop_back();
  return yields;
}

Val Builder::State::Argument(BlockId block, const Type& type, Uniform uniform) {
  const Id id = NewValue(type, level());
  k.values[id].uniform = uniform;
  k.blocks[block].arguments.push_back(id);
  return {&b, id};
}

// Their uniformity is corrected when the loop is closed.
Vals Builder::State::Arguments(BlockId block, std::span<const Val> like) {
  Vals out;
  for (Val v : like) out.push_back(Argument(block, v.type(), v.uniform()));
  return out;
}

Vals Builder::If(Val condition, absl::FunctionRef<Vals()> yes, absl::FunctionRef<Vals()> no) {
  State& s = *state_;
  if (const auto known = LiteralOf(condition)) return *known ? yes() : no();
  const BlockId blocks = s.NewBlocks(2);
  const Vals a = s.Fill(blocks, false, yes);
  const Vals b = s.Fill(blocks + 1, false, no);
  CheckLike(a, b);
  const Inst i{.code = Code::kIf, .block_count = 2, .block = blocks};
  return s.Close(i, {&condition, 1}, a);
}

void Builder::If(Val condition, absl::FunctionRef<void()> yes) {
  If(
      condition,
      [&] {
        yes();
        return Vals{};
      },
      [] { return Vals{}; });
}

Vals Builder::For(const Range& r, Vals carried, absl::FunctionRef<Vals(Val, Vals)> body) {
  State& s = *state_;
  if (r.begin.id == r.end.id) return carried;
  const auto begin = LiteralOf(r.begin), end = LiteralOf(r.end), step = LiteralOf(r.step);
  if (begin && end && step) {
    const int64_t from = IntegerOf(DType::kI32, *begin), to = IntegerOf(DType::kI32, *end);
    const int64_t by = IntegerOf(DType::kI32, *step);
    FORGE_CHECK(by > 0);
    const int64_t trips = to > from ? (to - from + by - 1) / by : 0;
    if (trips <= 1 || (r.unroll == Range::kWhole && trips <= kMostUnrolled)) {
      for (int64_t i = from; i < to; i += by) carried = body(Int(i), std::move(carried));
      return carried;
    }
  }
  const BlockId block = s.NewBlocks(1);
  const Vals next = s.Fill(block, true, [&] {
    const Val counter = s.Argument(block, kI32, r.begin.uniform());
    return body(counter, s.Arguments(block, carried));
  });
  CheckLike(next, carried);
  Vals args{r.begin, r.end, r.step};
  args.insert(args.end(), carried.begin(), carried.end());
  const uint8_t flags = r.unroll == Range::kNot ? kRolled : 0;
  return s.Close({.code = Code::kFor, .aux = flags, .block_count = 1, .block = block}, args,
                 carried);
}

Vals Builder::While(Vals carried, absl::FunctionRef<Val(Vals)> test,
                    absl::FunctionRef<Vals(Vals)> body) {
  State& s = *state_;
  const BlockId blocks = s.NewBlocks(2);
  s.Fill(blocks, true, [&] { return Vals{test(s.Arguments(blocks, carried))}; });
  const Vals next =
      s.Fill(blocks + 1, true, [&] { return body(s.Arguments(blocks + 1, carried)); });
  CheckLike(next, carried);
  return s.Close({.code = Code::kWhile, .block_count = 2, .block = blocks}, carried, carried);
}

void Builder::ForElements(Val matrix, int lanes, ElementBody body) {
  ForElements({matrix}, lanes, [&](Val row, Val column, const Vals& elements) {
    body(row, column, elements[0]);
    return Vals{};
  });
}

Vals Builder::ForElements(absl::Span<const Val> matrices, int lanes, ElementsBody body) {
  State& s = *state_;
  const BlockId block = s.NewBlocks(1);
  const auto argument = [&](const Type& t) { return s.Argument(block, t, Uniform::kInvocation); };
  const Vals made = s.Fill(block, true, [&] {
    const Val row = argument(kI32), column = argument(kI32);
    Vals elements;
    for (const Val m : matrices) elements.push_back(argument(Type{m.type().elem}.Lanes(lanes)));
    return body(row, column, elements);
  });
  std::vector<Type> types;
  for (const Val v : made) types.push_back(matrices[0].type().With(v.type().elem));
  return s.CloseAs({.code = Code::kForElements,
                    .aux = static_cast<uint8_t>(lanes),
                    .block_count = 1,
                    .block = block},
                   matrices, types);
}

}  // namespace forge::codegen
