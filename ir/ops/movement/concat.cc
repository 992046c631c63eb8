// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/concat.h"

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/movement/slice.h"

namespace forge::ir {

absl::StatusOr<Types> Concat::infer(TypeSpan in) const {
  if (in.empty()) return InvalidArgument("needs at least one operand");
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, in[0].rank()));
  Dims shape = in[0].shape();
  for (const Type& t : in.subspan(1)) {
    if (t.dtype() != in[0].dtype() || t.rank() != in[0].rank())
      return InvalidArgument("{} and {} do not concatenate", in[0].ToText(), t.ToText());
    for (size_t a = 0; a < shape.size(); ++a) {
      if (static_cast<int64_t>(a) == along) {
        shape[a] = shape[a] + t.shape()[a];
        continue;
      }
      const auto same = Unify(shape[a], t.shape()[a]);
      if (!same.ok())
        return InvalidArgument("{} and {} differ along axis {}", in[0].ToText(), t.ToText(), a);
      shape[a] = *same;
    }
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap Concat::map(TypeSpan in, const Dims& at) const {
  const auto along = NormalAxis(axis, static_cast<int64_t>(at.size()));
  FORGE_CHECK(along.ok());
  const size_t a = static_cast<size_t>(*along);
  IndexMap map;
  Dim begin = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const Dim end = begin + in[i].shape()[a];
    Dims index = at;
    index[a] = at[a] - begin;
    map.pieces.push_back({.operand = static_cast<int>(i),
                          .index = std::move(index),
                          .when = {{.value = at[a], .low = begin, .high = end}}});
    begin = end;
  }
  return map;
}

Values Concat::decompose(Function& f, ValueSpan in) const {
  if (in.size() < 3) return {};
  const auto joined = [&](ValueSpan part) {
    return part.size() == 1 ? part[0] : f.Add(*this, part)[0];
  };
  const Value first = joined(in.first(in.size() / 2));
  return {f(*this, {first, joined(in.subspan(in.size() / 2))})};
}

Values Concat::gradient(const GradArgs& g) const {
  Values out;
  const auto along = NormalAxis(axis, g.dout[0].type().rank());
  if (!along.ok()) return Values(g.in.size());
  Dim begin = 0;
  for (Value x : g.in) {
    const Dim end = begin + x.type().shape()[static_cast<size_t>(*along)];
    out.push_back(g.fn(Slice{{begin}, {end}, {*along}}, {g.dout[0]}));
    begin = end;
  }
  return out;
}

Cases Concat::cases() {
  return {{Concat{0}, {"any[2,3]", "any[4,3]"}},
          {Concat{-1}, {"any[2,3]", "any[2,1]", "any[2,5]"}},
          {Concat{1}, {"f32[2,0,3]", "f32[2,2,3]"}},
          {Concat{1}, {"f32[3,7,5]"}},
          {Concat{0}, {"f32[1]", "f32[2]", "f32[3]", "f32[4]", "f32[5]", "f32[6]", "f32[7]"}},
          {.op = Concat{1}, .in = {"f32[8,64,56,56]", "f32[8,64,56,56]"}, .bench = true},
          {Concat{2}, {"f32[2,3]", "f32[2,3]"}, "axis 2 is outside rank 2"},
          {Concat{0}, {"f32[2,3]", "f32[2,4]"}, "differ along axis 1"},
          {Concat{0}, {"f32[2,3]", "i32[2,3]"}, "do not concatenate"},
          {Concat{0}, {}, "at least one"}};
}

FORGE_DEFINE_OP(Concat)

}  // namespace forge::ir
