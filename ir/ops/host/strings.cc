// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/host/strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "ir/op/define.h"
#include "ir/ops/host/letters.h"

namespace forge::ir {
namespace {

constexpr int64_t kMaxParts = 1 << 24;  // of all strings that are split

absl::Status CheckStrings(const HostValue& v) {
  if (v.is_tensor() && v.dtype() == DType::kString) return absl::OkStatus();
  return InvalidArgument("{} where strings are needed", v.type().ToText());
}

// Two tensors under one shape.
struct Broadcasting {
  std::vector<int64_t> shape;

  // The element of `v` at an index of the shape.
  static int64_t Flat(const HostValue& v, const Index& at) {
    int64_t flat = 0;
    for (int a = 0; a < v.rank(); ++a) {
      const int64_t i = at[at.size() - static_cast<size_t>(v.rank() - a)];
      flat = flat * v.dim(a) + (v.dim(a) == 1 ? 0 : i);
    }
    return flat;
  }
};

absl::StatusOr<Broadcasting> Broadcast(const HostValue& a, const HostValue& b) {
  Broadcasting out;
  out.shape.resize(static_cast<size_t>(std::max(a.rank(), b.rank())));
  for (int i = 1; i <= static_cast<int>(out.shape.size()); ++i) {
    const int64_t m = i <= a.rank() ? a.dim(a.rank() - i) : 1;
    const int64_t n = i <= b.rank() ? b.dim(b.rank() - i) : 1;
    if (m != n && m != 1 && n != 1)
      return InvalidArgument("{} and {} do not broadcast", a.type().ToText(), b.type().ToText());
    out.shape[out.shape.size() - static_cast<size_t>(i)] = m == 1 ? n : m;
  }
  return out;
}

// Calls `each` with the pairs of strings under one shape, in order, and returns that shape.
absl::StatusOr<std::vector<int64_t>> ForPairs(
    const Eval& e, const std::function<void(std::string_view, std::string_view)>& each) {
  const HostValue &a = *e.in(0), &b = *e.in(1);
  FORGE_RETURN_IF_ERROR(CheckStrings(a));
  FORGE_RETURN_IF_ERROR(CheckStrings(b));
  FORGE_ASSIGN_OR_RETURN(Broadcasting common, Broadcast(a, b));
  for (Box at(common.shape); at; at.Next())
    each(a.string(Broadcasting::Flat(a, *at)), b.string(Broadcasting::Flat(b, *at)));
  return std::move(common.shape);
}

constexpr std::string_view kSpace = " \t\n\r\f\v";

std::string_view FromFirstLetter(std::string_view text, size_t begin = 0) {
  const size_t at = text.find_first_not_of(kSpace, begin);
  return at == std::string_view::npos ? "" : text.substr(at);
}

std::vector<std::string> SplitAtSpace(std::string_view text, int64_t most) {
  std::vector<std::string> parts;
  text = FromFirstLetter(text);
  while (!text.empty()) {
    const size_t end = text.find_first_of(kSpace);
    if (end == std::string_view::npos || static_cast<int64_t>(parts.size()) == most) {
      parts.emplace_back(text);
      return parts;
    }
    parts.emplace_back(text.substr(0, end));
    text = FromFirstLetter(text, end);
  }
  return parts;
}

std::vector<std::string> SplitAt(std::string_view text, const std::string& delimiter,
                                 int64_t most) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t end = 0; static_cast<int64_t>(parts.size()) < most;) {
    end = text.find(delimiter);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(0, end));
    text = text.substr(end + delimiter.size());
  }
  parts.emplace_back(text);
  return parts;
}

// The shortest decimal of a float that gives it back.
std::string TextOf(const HostValue& v, int64_t i) {
  const Number n = v.number(i);
  if (v.dtype() == DType::kBool) return n != 0 ? "True" : "False";
  if (n.is_integer()) return n.ToText();
  const double d = n.f64();
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d < 0 ? "-INF" : "INF";
  return v.dtype() == DType::kF64 ? fmt::format("{}", d) : fmt::format("{}", n.f32());
}

absl::Status ParseInto(HostValue& out, int64_t i, std::string_view text) {
  text = FromFirstLetter(text);
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, whole);
      Has(kIntTypes, out.dtype()) && error == std::errc() && at == end) {
    out.SetNumber(i, whole);
    return absl::OkStatus();
  }
  double number = 0;
  if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &number))
    return InvalidArgument("'{}' is no number", text);
  out.SetNumber(i, number);
  return absl::OkStatus();
}

}  // namespace

absl::Status StringConcat::evaluate(Eval& e) const {
  std::vector<std::string> all;
  FORGE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                         ForPairs(e, [&](std::string_view a, std::string_view b) {
                           all.push_back(std::string(a) + std::string(b));
                         }));
  FORGE_ASSIGN_OR_RETURN(e.out(0), HostValue::Strings(shape, all));
  return absl::OkStatus();
}

absl::Status StringEqual::evaluate(Eval& e) const {
  std::vector<uint8_t> all;
  FORGE_ASSIGN_OR_RETURN(
      const std::vector<int64_t> shape,
      ForPairs(e, [&](std::string_view a, std::string_view b) { all.push_back(a == b); }));
  FORGE_ASSIGN_OR_RETURN(e.out(0), HostValue::Of(DType::kBool, shape, Bytes(std::move(all))));
  return absl::OkStatus();
}

absl::Status StringSplit::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  FORGE_RETURN_IF_ERROR(CheckStrings(x));
  std::vector<std::vector<std::string>> rows;
  size_t most = 0;
  FORGE_ASSIGN_OR_RETURN(HostValue count, HostValue::Zeros(DType::kI64, x.shape()));
  for (int64_t i = 0; i < x.elements(); ++i) {
    rows.push_back(delimiter.empty() ? SplitAtSpace(x.string(i), max_splits)
                                     : SplitAt(x.string(i), delimiter, max_splits));
    count.SetI64(i, static_cast<int64_t>(rows.back().size()));
    most = std::max(most, rows.back().size());
  }
  if (static_cast<int64_t>(most) > kMaxParts / std::max<int64_t>(x.elements(), 1))
    return ResourceExhausted("{} strings of up to {} parts are more than {} strings", x.elements(),
                             most, kMaxParts);
  std::vector<std::string> parts;
  for (std::vector<std::string>& row : rows) {
    row.resize(most);
    std::ranges::move(row, std::back_inserter(parts));
  }
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.push_back(static_cast<int64_t>(most));
  FORGE_ASSIGN_OR_RETURN(e.out(0), HostValue::Strings(shape, parts));
  e.out(1) = std::move(count);
  return absl::OkStatus();
}

absl::Status StringNormalize::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  FORGE_RETURN_IF_ERROR(CheckStrings(x));
  if (x.rank() != 1 && (x.rank() != 2 || x.dim(0) != 1))
    return InvalidArgument("{} is neither [n] nor [1, n]", x.type().ToText());
  const auto key = [&](std::string_view s) {
    return match_case ? std::string(s) : WithLetters(s, LetterCase::kLower);
  };
  absl::flat_hash_set<std::string> stop;
  for (int64_t i = 0; e.in(1) != nullptr && i < e.in(1)->elements(); ++i)
    stop.insert(key(e.in(1)->string(i)));
  std::vector<std::string> kept;
  for (int64_t i = 0; i < x.elements(); ++i)
    if (!stop.contains(key(x.string(i)))) kept.push_back(WithLetters(x.string(i), letters));
  if (kept.empty()) kept.emplace_back();
  std::vector<int64_t> shape(static_cast<size_t>(x.rank()), 1);
  shape.back() = static_cast<int64_t>(kept.size());
  FORGE_ASSIGN_OR_RETURN(e.out(0), HostValue::Strings(shape, kept));
  return absl::OkStatus();
}

absl::Status StringCast::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  if (!x.is_tensor()) return InvalidArgument("{} is no tensor", x.type().ToText());
  if (to == DType::kString) {
    std::vector<std::string> all;
    for (int64_t i = 0; i < x.elements(); ++i)
      all.push_back(x.dtype() == DType::kString ? std::string(x.string(i)) : TextOf(x, i));
    FORGE_ASSIGN_OR_RETURN(e.out(0), HostValue::Strings(x.shape(), all));
    return absl::OkStatus();
  }
  FORGE_RETURN_IF_ERROR(CheckStrings(x));
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(to, x.shape()));
  for (int64_t i = 0; i < x.elements(); ++i) FORGE_RETURN_IF_ERROR(ParseInto(out, i, x.string(i)));
  e.out(0) = std::move(out);
  return absl::OkStatus();
}

absl::StatusOr<Types> MapLabels::infer(TypeSpan in) const {
  if (!in[0].is_tensor() || !in[2].is_tensor()) return Types{Type::Unknown()};
  return Types{in[0].With(in[2].dtype())};
}

absl::Status MapLabels::evaluate(Eval& e) const {
  const HostValue &x = *e.in(0), &keys = *e.in(1), &values = *e.in(2), &otherwise = *e.in(3);
  if (keys.dtype() != x.dtype())
    return InvalidArgument("the keys are {}, x is {}", Name(keys.dtype()), x.type().ToText());
  if (keys.elements() != values.elements() || otherwise.elements() != 1 ||
      otherwise.dtype() != values.dtype())
    return InvalidArgument("{} keys, {} values, {} otherwise", keys.elements(), values.elements(),
                           otherwise.type().ToText());
  // Bits tell numbers apart, but for NaN and the zeros.
  const auto key = [](const HostValue& v, int64_t i) {
    if (v.dtype() == DType::kString) return std::string(v.string(i));
    const Number n = v.number(i);
    if (n.is_integer()) return n.ToText();
    return std::isnan(n.f64()) ? "nan" : fmt::format("{}", n.f64() + 0.0);
  };
  absl::flat_hash_map<std::string, int64_t> places;
  for (int64_t i = 0; i < keys.elements(); ++i) places.emplace(key(keys, i), i);
  std::vector<std::string> strings;
  const bool to_strings = values.dtype() == DType::kString;
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(values.dtype(), x.shape()));
  for (int64_t i = 0; i < x.elements(); ++i) {
    const auto at = places.find(key(x, i));
    const HostValue& from = at == places.end() ? otherwise : values;
    const int64_t place = at == places.end() ? 0 : at->second;
    if (to_strings)
      strings.emplace_back(from.string(place));
    else
      out.SetNumber(i, from.number(place));
  }
  if (to_strings) {
    FORGE_ASSIGN_OR_RETURN(out, HostValue::Strings(x.shape(), strings));
  }
  e.out(0) = std::move(out);
  return absl::OkStatus();
}

FORGE_DEFINE_OP(StringConcat)
FORGE_DEFINE_OP(StringEqual)
FORGE_DEFINE_OP(StringSplit)
FORGE_DEFINE_OP(StringNormalize)
FORGE_DEFINE_OP(StringCast)
FORGE_DEFINE_OP(MapLabels)

}  // namespace forge::ir
