// SPDX-License-Identifier: Apache-2.0
#include "ir/cases/case_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/narrow_float.h"
#include "ir/op/elements.h"
#include "ir/op/signature.h"

namespace forge::ir {
namespace {

constexpr DTypes kCaseTypes = kNumberTypes | Bit(DType::kBool);

// An operand whose element type may still be a class.
struct Pattern {
  std::string word;  // as written; empty: absent
  DTypes dtypes = 0;
  Dims shape;
  double low = -4, high = 4;
  bool edges = false;
};

std::optional<double> ParseNumber(std::string_view text) {
  double v;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

absl::Status ParseRange(std::string_view text, Pattern& p) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return InvalidArgument("'{}' is no range", text);
  const auto low = ParseNumber(text.substr(0, dots)), high = ParseNumber(text.substr(dots + 2));
  if (!low || !high || !(*low <= *high)) return InvalidArgument("'{}' is no range", text);
  p.low = *low;
  p.high = *high;
  return absl::OkStatus();
}

// What follows TYPE[DIMS].
absl::Status ParseTail(std::string_view text, Pattern& p) {
  while (!text.empty()) {
    text.remove_prefix(1);  // the blank
    const bool range = text.starts_with("in ");
    if (range) text.remove_prefix(3);
    const std::string_view word = text.substr(0, text.find(' '));
    if (range)
      FORGE_RETURN_IF_ERROR(ParseRange(word, p));
    else if (word == "edges")
      p.edges = true;
    else
      return InvalidArgument("'{}' is not understood", word);
    text.remove_prefix(word.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<Pattern> ParseOperand(std::string_view text) {
  Pattern p;
  if (text.empty()) return p;
  const size_t close = text.find(']');
  if (close == std::string_view::npos) return InvalidArgument("'{}' has no shape", text);
  const std::string type = "x: " + std::string(text.substr(0, close + 1));
  FORGE_ASSIGN_OR_RETURN(const Signature s, ParseSignature(type, ""));
  const Parameter& x = s.inputs[0];
  p.word = x.dtype_text;
  p.dtypes = x.dtypes == kAnyTypes ? kCaseTypes : x.dtypes;
  for (const Parameter::Axis& axis : *x.axes) {
    if (axis.kind != Parameter::Axis::kNumber)
      return InvalidArgument("'{}' has a dimension that is no number", text);
    p.shape.push_back(axis.number);
  }
  FORGE_RETURN_IF_ERROR(ParseTail(text.substr(close + 1), p));
  return p;
}

// The k-th element type of each pattern: equal words take the same.
ConcreteCase Choose(const Case& c, std::span<const Pattern> patterns, DType chosen) {
  ConcreteCase out{.op = c.op, .in = {}, .refuse = c.refuse, .bench = c.bench};
  for (const Pattern& p : patterns) {
    CaseOperand operand{.type = {}, .low = p.low, .high = p.high, .edges = p.edges};
    const DType t =
        std::has_single_bit(p.dtypes) ? static_cast<DType>(std::countr_zero(p.dtypes)) : chosen;
    if (!p.word.empty()) operand.type = Type::Tensor(t, p.shape);
    out.in.push_back(std::move(operand));
  }
  return out;
}

// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
uint64_t SplitMix64(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Uniform(uint64_t& state) { return static_cast<double>(SplitMix64(state) >> 11) * 0x1p-53; }

// A number of the operand's range, which may be one number: an infinity, too.
double Drawn(const CaseOperand& o, uint64_t& state) {
  const double share = Uniform(state);
  return o.low == o.high ? o.low : o.low + share * (o.high - o.low);
}

// Least normal and greatest finite number.
std::pair<double, double> LimitsOf(DType t) {
  switch (t) {
    case DType::kF16:
      return {0x1p-14, 65504};
    case DType::kBF16:
      return {0x1p-126, 0x1.fep127};
    case DType::kF32:
      return {0x1p-126, 0x1.fffffep127};
    case DType::kF8E4M3:
      return {0x1p-6, 448};
    case DType::kF8E5M2:
      return {0x1p-14, 57344};
    case DType::kF8E4M3Fnuz:
      return {0x1p-7, 240};
    case DType::kF8E5M2Fnuz:
      return {0x1p-15, 57344};
    case DType::kF4E2M1:
      return {1, 6};
    default:
      return {0x1p-1022, std::numeric_limits<double>::max()};
  }
}

std::vector<double> FloatEdges(DType t) {
  const auto [least, most] = LimitsOf(t);
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {0.0,   -0.0,  1,      -1,  0.5, -0.5, inf,     -inf, nan, most,
          -most, least, -least, 2.5, 3.5, -2.5, 1.0 / 3, 100,  -3};
}

std::vector<int64_t> IntegerEdges(DType t) {
  if (t == DType::kBool) return {0, 1, 1, 0};
  if (t == DType::kU64) return {0, 1, -1, -2, 2, INT64_MAX, INT64_MIN, 3, 100};
  const auto [low, high] = RangeOf(t);
  const int64_t least = SaturatedI64(low), most = SaturatedI64(high);
  if (least == 0) return {0, 1, most, most - 1, 2, 3, 7, most / 2, 100};
  return {0, 1, -1, least, most, least + 1, most - 1, 2, -2, 3, -3, 7, 100, -100};
}

void DrawFloats(const CaseOperand& o, uint64_t& state, HostValue& v) {
  const std::vector<double> edges = o.edges ? FloatEdges(v.dtype()) : std::vector<double>();
  std::vector<double> all(static_cast<size_t>(v.elements()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = i < edges.size() ? edges[i] : Drawn(o, state);
  Store(all, v);
}

// Real parts as of floats; edges meet others in the imaginary parts.
void DrawComplex(const CaseOperand& o, uint64_t& state, HostValue& v) {
  const std::vector<double> edges = o.edges ? FloatEdges(RealOf(v.dtype())) : std::vector<double>();
  const auto part = [&](size_t i, size_t shift) {
    const double drawn = Drawn(o, state);
    return i < edges.size() ? edges[(i + shift) % edges.size()] : drawn;
  };
  for (int64_t i = 0; i < v.elements(); ++i) {
    const double real = part(static_cast<size_t>(i), 0),
                 imaginary = part(static_cast<size_t>(i), 4);
    v.SetC128(i, {real, imaginary});
  }
}

void DrawIntegers(const CaseOperand& o, uint64_t& state, HostValue& v) {
  const std::vector<int64_t> edges = o.edges ? IntegerEdges(v.dtype()) : std::vector<int64_t>();
  const auto [least, most] = v.dtype() == DType::kBool ? std::pair(0.0, 1.0) : RangeOf(v.dtype());
  const int64_t low = SaturatedI64(std::max(std::ceil(o.low), least));
  const int64_t high = SaturatedI64(std::min(std::floor(o.high), most));
  const uint64_t count = high < low ? 1 : static_cast<uint64_t>(high - low) + 1;
  for (int64_t i = 0; i < v.elements(); ++i) {
    const bool edge = static_cast<size_t>(i) < edges.size();
    const int64_t drawn = low + static_cast<int64_t>(SplitMix64(state) % count);
    v.SetI64(i, edge ? edges[static_cast<size_t>(i)] : drawn);
  }
}

}  // namespace

Types ConcreteCase::types() const {
  Types out;
  for (const CaseOperand& o : in) out.push_back(o.type);
  return out;
}

std::string ConcreteCase::ToText() const {
  std::string out = op.ToText() + "(";
  for (size_t i = 0; i < in.size(); ++i) out += (i > 0 ? ", " : "") + in[i].type.ToText();
  return out + ")";
}

absl::StatusOr<std::vector<ConcreteCase>> Concretize(const Case& c) {
  std::vector<Pattern> patterns;
  DTypes classes = 0;  // the element types of the case's one class word
  std::string word;
  for (const std::string& text : c.in) {
    absl::StatusOr<Pattern> p = ParseOperand(text);
    if (!p.ok()) return Annotate(p.status(), fmt::format("case of {}: {}", c.op.name(), text));
    if (std::popcount(p->dtypes) > 1) {
      if (!word.empty() && word != p->word)
        return InvalidArgument("case of {}: both {} and {}", c.op.name(), word, p->word);
      word = p->word;
      classes = p->dtypes;
    }
    patterns.push_back(*std::move(p));
  }
  std::vector<ConcreteCase> out;
  if (classes == 0) out.push_back(Choose(c, patterns, DType::kF32));
  for (int t = 0; t < kDTypeCount; ++t)
    if (Has(classes, static_cast<DType>(t)))
      out.push_back(Choose(c, patterns, static_cast<DType>(t)));
  return out;
}

absl::StatusOr<std::vector<ConcreteCase>> ConcreteCases(const OpDef& def) {
  std::vector<ConcreteCase> out;
  for (const Case& c : def.cases(def)) {
    FORGE_ASSIGN_OR_RETURN(std::vector<ConcreteCase> some, Concretize(c));
    std::move(some.begin(), some.end(), std::back_inserter(out));
  }
  return out;
}

std::vector<const HostValue*> CaseInputs::pointers() const {
  std::vector<const HostValue*> out;
  for (const std::optional<HostValue>& v : values) out.push_back(v ? &*v : nullptr);
  return out;
}

absl::StatusOr<CaseInputs> MakeInputs(const ConcreteCase& c, uint64_t seed) {
  CaseInputs out;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const CaseOperand& o = c.in[i];
    out.values.emplace_back();
    if (!o.type) continue;
    FORGE_ASSIGN_OR_RETURN(HostValue v,
                           HostValue::Zeros(o.type.dtype(), Constants(o.type.shape())));
    uint64_t state = seed * 0x2545f4914f6cdd1d + i;
    SplitMix64(state);
    if (Has(kAllFloatTypes, v.dtype()))
      DrawFloats(o, state, v);
    else if (Has(kComplexTypes, v.dtype()))
      DrawComplex(o, state, v);
    else
      DrawIntegers(o, state, v);
    out.values.back() = std::move(v);
  }
  return out;
}

}  // namespace forge::ir
