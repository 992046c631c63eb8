// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "absl/strings/str_split.h"
#include "ir/ops/movement/diagonal.h"
#include "ir/ops/product/contract.h"

namespace forge::ir {
namespace {

using Labels = std::vector<int>;

// What stands for "..." until the number of its axes is known.
constexpr int kEllipsis = 0;

// Letters as their codes. The axes of "..." are -1 for the last, -2 for the one before.
absl::StatusOr<Labels> ParseTerm(std::string_view term) {
  Labels out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i).starts_with("...")) {
      if (std::find(out.begin(), out.end(), kEllipsis) != out.end())
        return InvalidArgument("einsum: '{}' has two ellipses", term);
      out.push_back(kEllipsis);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      out.push_back(term[i]);
    } else {
      return InvalidArgument("einsum: '{}' in '{}' is no letter", term[i], term);
    }
  }
  return out;
}

Labels WithAxes(const Labels& term, int64_t ellipsis) {
  Labels out;
  for (const int label : term) {
    if (label != kEllipsis) out.push_back(label);
    for (int64_t i = ellipsis; label == kEllipsis && i > 0; --i)
      out.push_back(static_cast<int>(-i));
  }
  return out;
}

struct Equation {
  std::vector<Labels> operands;  // one label for each axis
  Labels result;
};

Labels ImplicitResult(const Equation& e, int64_t ellipsis) {
  std::map<int, int> count;
  for (const Labels& labels : e.operands)
    for (const int label : labels) ++count[label];
  Labels out = WithAxes({kEllipsis}, ellipsis);
  for (const auto& [label, times] : count)
    if (label > 0 && times == 1) out.push_back(label);
  return out;
}

absl::Status CheckResult(const Equation& e) {
  for (size_t i = 0; i < e.result.size(); ++i) {
    const int label = e.result[i];
    const char letter = label > 0 ? static_cast<char>(label) : '.';
    const auto has = [&](const Labels& all) {
      return std::find(all.begin(), all.end(), label) != all.end();
    };
    if (!std::any_of(e.operands.begin(), e.operands.end(), has))
      return InvalidArgument("einsum: no operand has '{}' of the result", letter);
    if (std::count(e.result.begin(), e.result.end(), label) > 1)
      return InvalidArgument("einsum: the result has '{}' twice", letter);
  }
  return absl::OkStatus();
}

absl::StatusOr<Equation> Parse(std::string_view text, TypeSpan in) {
  std::string packed(text);
  std::erase(packed, ' ');
  const std::vector<std::string> sides = absl::StrSplit(packed, "->");
  if (sides.size() > 2) return InvalidArgument("einsum: '{}' has two arrows", text);
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != in.size())
    return InvalidArgument("einsum: '{}' has {} terms for {} operands", text, terms.size(),
                           in.size());
  Equation e;
  int64_t most = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    FORGE_ASSIGN_OR_RETURN(const Labels term, ParseTerm(terms[i]));
    const bool open = std::find(term.begin(), term.end(), kEllipsis) != term.end();
    const int64_t others = in[i].rank() - static_cast<int64_t>(term.size()) + (open ? 1 : 0);
    if (others < 0 || (!open && others != 0))
      return InvalidArgument("einsum: '{}' does not fit {}", terms[i], in[i].ToText());
    most = std::max(most, open ? others : 0);
    e.operands.push_back(WithAxes(term, others));
  }
  if (sides.size() == 1) {
    e.result = ImplicitResult(e, most);
  } else {
    FORGE_ASSIGN_OR_RETURN(const Labels result, ParseTerm(sides[1]));
    e.result = WithAxes(result, most);
  }
  FORGE_RETURN_IF_ERROR(CheckResult(e));
  return e;
}

// Equal letters have equal extents, or 1.
absl::Status CheckExtents(const Equation& e, TypeSpan in) {
  std::map<int, Dim> extents;
  for (size_t i = 0; i < in.size(); ++i)
    for (size_t a = 0; a < e.operands[i].size(); ++a) {
      const auto [at, added] = extents.emplace(e.operands[i][a], in[i].shape()[a]);
      if (added) continue;
      const absl::StatusOr<Dim> both = Broadcast(at->second, in[i].shape()[a]);
      if (!both.ok())
        return InvalidArgument("einsum: axis {} of {} has not the extent {} of its letter", a,
                               in[i].ToText(), at->second.ToText());
      at->second = *both;
    }
  return absl::OkStatus();
}

// Takes the diagonal where a label stands twice.
Labelled WithoutRepeats(Function& f, Labelled x) {
  for (size_t a = 0; a < x.labels.size() && f.status().ok(); ++a) {
    const auto twin =
        std::find(x.labels.begin() + static_cast<int64_t>(a) + 1, x.labels.end(), x.labels[a]);
    if (twin == x.labels.end()) continue;
    const int label = x.labels[a];
    const int64_t b = twin - x.labels.begin();
    x.value = f(Diagonal{.axis1 = static_cast<int64_t>(a), .axis2 = b}, {x.value});
    x.labels.erase(twin);
    x.labels.erase(x.labels.begin() + static_cast<int64_t>(a));
    x.labels.push_back(label);
    --a;
  }
  return x;
}

// True when one product, or one sum, gives the result: then nothing is rounded before.
bool IsOneStep(const Equation& e) {
  const auto known = [&](int label, const Labels& labels) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  if (e.operands.size() != 2) return e.operands.size() == 1;
  for (size_t i : {0, 1})
    for (const int label : e.operands[i])
      if (!known(label, e.result) && !known(label, e.operands[1 - i])) return false;
  return true;
}

// What the operands from `first` on and the result need.
Labels NeededFrom(const Equation& e, size_t first) {
  Labels out = e.result;
  for (size_t i = first; i < e.operands.size(); ++i)
    out.insert(out.end(), e.operands[i].begin(), e.operands[i].end());
  return out;
}

}  // namespace

Values Einsum::decompose(Function& f, ValueSpan in) const {
  Types types;
  for (const Value& v : in) types.push_back(v.type());
  if (in.empty()) return f.Fail(InvalidArgument("einsum of no operand")), Values{};
  const absl::StatusOr<Equation> e = Parse(equation, types);
  if (!e.ok()) return f.Fail(e.status()), Values{in[0]};
  const absl::Status extents = CheckExtents(*e, types);
  if (!extents.ok()) return f.Fail(extents), Values{in[0]};
  const bool one = IsOneStep(*e);
  const auto operand = [&](size_t i) {
    return WithoutRepeats(f, {one ? in[i] : Widened(in[i]), e->operands[i]});
  };
  Labelled y = operand(0);
  for (size_t i = 1; i < in.size(); ++i) y = Contract(y, operand(i), NeededFrom(*e, i + 1));
  if (!f.status().ok()) return {in[0]};
  y = SumOverOthers(y, e->result);
  return {Narrowed(InOrder(y, e->result), in[0].type().dtype())};
}

Cases Einsum::cases() {
  const auto of = [](const char* equation) { return Einsum{equation}; };
  return {
      {of("bij,bjk->bik"), {"float[2,3,4]", "float[2,4,5]"}},
      {of("ij, jk"), {"float|complex[3,4]", "float|complex[4,5]"}},
      {of("...ij,...jk->...ik"), {"float[2,1,3,4]", "float[5,4,2]"}},
      {of("bhqd,bhkd->bhqk"), {"float[2,2,3,4]", "float[2,2,5,4]"}},
      {of("i,j->ji"), {"float[3]", "float[4]"}},
      {of("i,i->"), {"float[7]", "float[7]"}},
      {of("ii->i"), {"float[4,4]"}},
      {of("ii"), {"f32[5,5]"}},
      {of("ijk->ki"), {"float[2,3,4]"}},
      {of("ij->ji"), {"real[2,3]"}},
      {of("ij,jk->ik"), {"int[3,4]", "int[4,2]"}},
      {of("ij,kj,k->i"), {"float[2,3]", "float[4,3]", "float[4]"}},
      {of("ijk,j->i"), {"float[2,3,4]", "float[3]"}},
      {of("ij,jk->ik"), {"f32[3,1]", "f32[4,2]"}},
      {of("b...,b...->b"), {"f32[2,3,4]", "f32[2,3,4]"}},
      {of("...,...->..."), {"f32[3,1]", "f32[4]"}},
      {of("iji,jk->ik"), {"f32[3,2,3]", "f32[2,4]"}},
      {of("ij,jk->ik"), {"f32[3,0]", "f32[0,2]"}},
      {of(",->"), {"f32[]", "f32[]"}},
      {.op = of("bhqd,bhkd->bhqk"), .in = {"f32[4,8,256,64]", "f32[4,8,256,64]"}, .bench = true},
      {of("ij,jk"), {"f32[2,3]"}, "'ij,jk' has 2 terms for 1 operands"},
      {of("ij->ik"), {"f32[2,3]"}, "no operand has 'k' of the result"},
      {of("ijk->i"), {"f32[2,3]"}, "'ijk' does not fit f32[2, 3]"},
      {of("ij,jk->ik"), {"f32[2,3]", "f32[4,5]"}, "has not the extent 3 of its letter"},
      {of("i1->i"), {"f32[2,3]"}, "'1' in 'i1' is no letter"},
      {of("ij->ii"), {"f32[2,3]"}, "the result has 'i' twice"},
      {of("......i->i"), {"f32[2]"}, "has two ellipses"}};
}

}  // namespace forge::ir
