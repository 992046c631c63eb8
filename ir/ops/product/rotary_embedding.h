// SPDX-License-Identifier: Apache-2.0
// Positions as rotations of pairs of elements.
#pragma once
#include <cmath>

#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/norm/affine.h"

namespace forge::ir {

struct RotaryEmbedding {
  static constexpr OpInfo kInfo{
      .name = "rotary_embedding",
      .formula =
          "y[.., i] = x[.., i] cos[.., i] - x[.., n + i] sin[.., i] and y[.., n + i] = "
          "x[.., n + i] cos[.., i] + x[.., i] sin[.., i] for i < n; from 2 n on y is x",
      .inputs = "x: float[*d, h]; cos: =x[*e, n]; sin: =x[*e, n]",
      .outputs = "y: =x",
      .source = "J. Su and others, \"RoFormer\", 2021; halves as GPT-NeoX pairs them"};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims shape = in[0].type().shape();
    const Dim n = in[1].type().shape().back();
    const Dim& head = shape.back();
    if ((head - n * 2).max() < 0)
      return f.Fail(
                 InvalidArgument("pairs of {} angles in {} elements", n.ToText(), head.ToText())),
             Values{in[0]};
    const auto part = [&](const Dim& begin, const Dim& end) {
      return Widened(f(Slice{.begin = {begin}, .end = {end}, .axes = {-1}}, {in[0]}));
    };
    const Value a = part(0, n), b = part(n, n * 2);
    const Value cosine = Widened(in[1]), sine = Widened(in[2]);
    if (!f.status().ok()) return {in[0]};
    CheckBroadcasts(cosine, a.type().shape());
    const Value ac = a * cosine, bs = b * sine, bc = b * cosine, as = a * sine;
    const Value re = ac - bs, im = bc + as;
    Values parts{re, im};
    if (head != n * 2) parts.push_back(part(n * 2, head));
    return {Narrowed(f.Add(Concat{.axis = -1}, parts)[0], in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{RotaryEmbedding{}, {"float[2,5,3,6]", "float[5,1,3]", "float[5,1,3]"}},
            {RotaryEmbedding{}, {"float[3,5,11]", "float[5,3]", "float[5,3]"}},
            {RotaryEmbedding{}, {"f32[6]", "f32[1]", "f32[1]"}},
            {RotaryEmbedding{}, {"f32[2,0,4]", "f32[2]", "f32[2]"}},
            {RotaryEmbedding{}, {"f32[3,5]", "f32[0]", "f32[0]"}},
            {.op = RotaryEmbedding{},
             .in = {"f32[32,512,128]", "f32[512,64]", "f32[512,64]"},
             .bench = true},
            {RotaryEmbedding{}, {"f32[2,3]", "f32[2]", "f32[2]"}, "pairs of 2 angles in 3"},
            {RotaryEmbedding{}, {"f32[2,4]", "f32[3,2]", "f32[3,2]"}, "does not broadcast"},
            {RotaryEmbedding{}, {"f32[2,4]", "f32[2]", "f32[1]"}, "sin"}};
  }
};
const OpDef& DefOf(const RotaryEmbedding*);

struct AxialRotaryEmbedding {
  int64_t width = 1, heads = 1, repeats = 1;
  double theta = 10000;

  static constexpr OpInfo kInfo{
      .name = "axial_rotary_embedding",
      .formula =
          "the first half of the pairs (2 j, 2 j + 1) of each head turns by column * r(j), "
          "the second by row * r(j), r(j) = theta^(-4 j / h); token t is at column t % "
          "width and row t / width of the grid that the tokens are, `repeats` times",
      .inputs = "x: float[*d, s, c]",
      .outputs = "y: =x",
      .source = "SAM 2, compute_axial_cis and apply_rotary_enc"};
  static constexpr Field kFields[] = {
      FieldOf<&AxialRotaryEmbedding::width>("width", "Columns of the grid."),
      FieldOf<&AxialRotaryEmbedding::heads>("heads", "Divides c into heads of h, a multiple of 4."),
      FieldOf<&AxialRotaryEmbedding::repeats>("repeats", "Divides s."),
      FieldOf<&AxialRotaryEmbedding::theta>("theta", "Above 0.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims shape = in[0].type().shape();
    const Dim &s = shape[shape.size() - 2], &c = shape.back();
    if (const absl::Status valid = Check(s, c); !valid.ok()) return f.Fail(valid), Values{in[0]};
    const Dim tokens = FloorDiv(s, repeats), head = FloorDiv(c, heads), pairs = FloorDiv(head, 4);
    Dims apart(shape.begin(), shape.end() - 2);
    apart.insert(apart.end(), {repeats, tokens, heads, 2, pairs, 2});
    const Value x = f(Reshape{apart}, {Widened(in[0])});
    const Value angles = Angles(f, tokens, pairs, x.type().dtype());
    const auto part = [&](int64_t i) {
      return f(Slice{.begin = {i}, .end = {i + 1}, .axes = {-1}}, {x});
    };
    const Value a = part(0), b = part(1), cosine = cos(angles), sine = sin(angles);
    const Value ac = a * cosine, bs = b * sine, bc = b * cosine, as = a * sine;
    const Value re = ac - bs, im = bc + as;
    const Value y = f(Reshape{shape}, {f(Concat{.axis = -1}, {re, im})});
    return {Narrowed(y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = AxialRotaryEmbedding;
    return {{Op{.width = 3}, {"float[2,6,8]"}},
            {Op{.width = 2, .heads = 2, .repeats = 3, .theta = 100}, {"float[1,12,16]"}},
            {Op{.width = 4}, {"f32[4,4]"}},
            {Op{}, {"f32[0,3,4]"}},
            {Op{.width = 2, .heads = 3}, {"f32[4,8]"}, "3 heads of 8 elements"},
            {Op{.width = 2, .repeats = 3}, {"f32[4,8]"}, "4 tokens are not 3 grids"},
            {Op{.theta = 0}, {"f32[4,8]"}, "theta 0 is not above 0"},
            {Op{.heads = 0}, {"f32[4,8]"}, "heads"}};
  }

 private:
  absl::Status Check(const Dim& s, const Dim& c) const {
    if (width < 1 || heads < 1 || repeats < 1)
      return InvalidArgument("a width of {}, {} heads and {} repeats are not all above 0", width,
                             heads, repeats);
    if (!(theta > 0) || !std::isfinite(theta))
      return InvalidArgument("theta {} is not above 0", theta);
    if (c.is_constant() && (c.constant() % heads != 0 || c.constant() / heads % 4 != 0))
      return InvalidArgument("{} heads of {} elements are not multiples of 4", heads, c.ToText());
    if (s.is_constant() && s.constant() % repeats != 0)
      return InvalidArgument("{} tokens are not {} grids", s.constant(), repeats);
    return absl::OkStatus();
  }
  // [tokens, 1, 2, pairs, 1]
  Value Angles(Function& f, const Dim& tokens, const Dim& pairs, DType t) const {
    const Value place = f(Iota{.dtype = DType::kI64, .count = tokens}, {});
    const Value row = f(Div{}, {place, ScalarOf(f, width, DType::kI64)});
    const Value column = place - row * static_cast<double>(width);
    const Dims each{tokens, 1, 1, 1, 1};
    const Value at = f(Concat{.axis = 2}, {f(Reshape{each}, {column}), f(Reshape{each}, {row})});
    const Value j = f(Reshape{{pairs, 1}}, {f(Iota{.dtype = t, .count = pairs}, {})});
    const Value share = j / ScalarOf(f, Max(pairs, 1), t);
    return convert(at, t) * exp(share * -std::log(theta));
  }
};
const OpDef& DefOf(const AxialRotaryEmbedding*);

}  // namespace forge::ir
