// SPDX-License-Identifier: Apache-2.0
// Random numbers without hidden state.
#pragma once
#include <array>

#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/concat.h"

namespace forge::ir {

struct RandomUniform {
  DType dtype = DType::kF32;
  Dims shape = {};

  static constexpr OpInfo kInfo{
      .name = "random_uniform",
      .formula =
          "y[i] = (w >> 8) / 2^24, w word i % 4 of Philox4x32-10 with key seed and counter "
          "offset + i / 4, i in row-major order; the upper half of the counter is 0",
      .inputs = "seed: i64[]; offset: i64[]",
      .outputs = "y: =dtype[*r]",
      .source = "J. K. Salmon and others, \"Parallel Random Numbers: As Easy as 1, 2, 3\", 2011"};
  static constexpr Field kFields[] = {
      FieldOf<&RandomUniform::dtype>("dtype", "Of the result: f32 or f64, with 24 random bits."),
      FieldOf<&RandomUniform::shape>("shape", "Of the result.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (dtype != DType::kF32 && dtype != DType::kF64)
      return f.Fail(InvalidArgument("random numbers of {}", Name(dtype))), Values{in[0]};
    const Dim count = Product(shape), groups = CeilDiv(count, 4);
    const Value counter = f(Iota{.dtype = DType::kI64, .count = groups}, {}) + in[1];
    if (!f.status().ok()) return {counter};
    const Value zero = f(Fill{0, DType::kU32, {groups}}, {});
    const Words words =
        Rounds({Half(counter, 0), Half(counter, 1), zero, zero}, {Half(in[0], 0), Half(in[0], 1)});
    Values columns;
    for (const Value& w : words) columns.push_back(f(Reshape{{groups, 1}}, {Number24(w)}));
    const Value all = f(Reshape{{groups * 4}}, {f.Add(Concat{.axis = 1}, columns)[0]});
    const Value y = f(Reshape{shape}, {f(Slice{.begin = {0}, .end = {count}}, {all})});
    return {dtype == DType::kF32 ? y : convert(y, dtype)};
  }
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases() {
    using Op = RandomUniform;
    return {{Op{.shape = {4}}, {"i64[] in 0..0", "i64[] in 0..0"}},
            {Op{.shape = {3, 7}}, {"i64[] edges", "i64[] in 0..1000"}},
            {Op{DType::kF64, {5, 3}}, {"i64[] in 0..1000", "i64[] in 0..1000"}},
            {Op{DType::kF64, {2, 1, 5}}, {"i64[] in 0..1e18", "i64[] edges"}},
            {Op{.shape = {0, 3}}, {"i64[]", "i64[]"}},
            {Op{}, {"i64[]", "i64[]"}},
            {.op = Op{.shape = {1024, 1024}}, .in = {"i64[]", "i64[]"}, .bench = true},
            {Op{.dtype = DType::kI32}, {"i64[]", "i64[]"}, "random numbers of i32"},
            {Op{.shape = {4}}, {"i32[]", "i64[]"}, "seed"},
            {Op{.shape = {4}}, {"i64[]", "i64[1]"}, "offset"}};
  }

 private:
  using Words = std::array<Value, 4>;

  // The lower (0) or upper 32 bits.
  static Value Half(Value v, int half) {
    Function& f = *v.fn;
    const auto number = [&](int64_t n) { return f(Fill{n, DType::kI64, {}}, {}); };
    const Value shifted = half == 0 ? v : f(ShiftRight{}, {v, number(32)});
    return convert(f(And{}, {shifted, number(0xffffffff)}), DType::kU32);
  }
  static Value Number24(Value word) {
    Function& f = *word.fn;
    const Value upper = f(ShiftRight{}, {word, f(Fill{8, DType::kU32, {}}, {})});
    return convert(upper, DType::kF32) * 0x1p-24;
  }
  static Words Rounds(Words c, std::array<Value, 2> key) {
    constexpr uint32_t kMultipliers[] = {0xd2511f53, 0xcd9e8d57},
                       kSteps[] = {0x9e3779b9, 0xbb67ae85};
    constexpr int kRounds = 10;
    Function& f = *c[0].fn;
    for (int round = 0; round < kRounds; ++round) {
      std::array<Value, 2> high, low;
      for (size_t i = 0; i < 2; ++i) {
        const Value m = f(Fill{Number(uint64_t{kMultipliers[i]}), DType::kU32, {}}, {});
        high[i] = f(MulHigh{}, {c[2 * i], m});
        low[i] = c[2 * i] * m;
      }
      const Value mixed = f(Xor{}, {f(Xor{}, {high[1], c[1]}), key[0]});
      c = {mixed, low[1], f(Xor{}, {f(Xor{}, {high[0], c[3]}), key[1]}), low[0]};
      for (size_t i = 0; i < 2; ++i)
        key[i] = key[i] + f(Fill{Number(uint64_t{kSteps[i]}), DType::kU32, {}}, {});
    }
    return c;
  }
};
const OpDef& DefOf(const RandomUniform*);

}  // namespace forge::ir
