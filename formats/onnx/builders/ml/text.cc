// SPDX-License-Identifier: Apache-2.0
// Operators on strings: host steps.
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/host/strings.h"
#include "ir/ops/host/tf_idf.h"

namespace forge::formats {
namespace {

ir::Values BuildStringConcat(OnnxNode& n) {
  return n.fn().Add(ir::StringConcat{}, std::array{n.in(0), n.in(1)});
}

ir::Values BuildStringSplit(OnnxNode& n) {
  const ir::StringSplit op{.delimiter = n.String("delimiter", ""),
                           .max_splits = n.Int64("maxsplit", INT64_MAX)};
  return n.fn().Add(op, std::array{n.in(0)});
}

ir::Values BuildStringNormalizer(OnnxNode& n) {
  n.Ignore("locale");  // letters have one case mapping here
  ir::StringNormalize op{.match_case = n.Flag("is_case_sensitive")};
  const std::string action = n.String("case_change_action", "NONE");
  if (action == "LOWER")
    op.letters = ir::LetterCase::kLower;
  else if (action == "UPPER")
    op.letters = ir::LetterCase::kUpper;
  else if (action != "NONE")
    n.Fail("case_change_action is '{}'", action);
  return n.fn().Add(op, std::array{n.in(0), StringsConstant(n, n.Strings("stopwords"))});
}

ir::Values BuildRegexFullMatch(OnnxNode& n) {
  if (!n.Has("pattern")) n.Fail("attribute 'pattern' is missing");
  return n.fn().Add(ir::RegexFullMatch{n.String("pattern", "")}, std::array{n.in(0)});
}

ir::Values BuildTfIdfVectorizer(OnnxNode& n) {
  ir::TfIdf op{.shortest = n.Int("min_gram_length", 1),
               .longest = n.Int("max_gram_length", 1),
               .skips = n.Int("max_skip_count", 0),
               .starts = n.Ints("ngram_counts"),
               .columns = n.Ints("ngram_indexes"),
               .weights = n.Floats("weights")};
  const std::string mode = n.String("mode", "");
  if (mode == "IDF")
    op.mode = ir::TermWeight::kPresence;
  else if (mode == "TFIDF")
    op.mode = ir::TermWeight::kProduct;
  else if (mode != "TF")
    n.Fail("mode is '{}'", mode);
  const std::vector<std::string> strings = n.Strings("pool_strings");
  const std::vector<int64_t> ints = n.Ints("pool_int64s");
  if (strings.empty() == ints.empty()) n.Fail("one of pool_strings and pool_int64s is needed");
  if (!n.status().ok()) return {};
  const ir::Value pool = strings.empty() ? IntsConstant(n, ints) : StringsConstant(n, strings);
  return n.fn().Add(op, std::array{n.in(0), pool});
}

constexpr OnnxOp kTextOps[] = {
    {"", "RegexFullMatch", 20, 1, 1, BuildRegexFullMatch},
    {"", "StringConcat", 20, 2, 2, BuildStringConcat},
    {"", "StringNormalizer", 10, 1, 1, BuildStringNormalizer},
    {"", "StringSplit", 20, 1, 1, BuildStringSplit},
    {"", "TfIdfVectorizer", 9, 1, 1, BuildTfIdfVectorizer},
};

}  // namespace

ir::Value StringsConstant(OnnxNode& n, const std::vector<std::string>& list) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(list.size())};
  return n.MakeConstant(*ir::HostValue::Strings(shape, list));
}

ir::Value IntsConstant(OnnxNode& n, const std::vector<int64_t>& list) {
  ir::HostValue value =
      *ir::HostValue::Zeros(DType::kI64, std::array{static_cast<int64_t>(list.size())});
  for (size_t i = 0; i < list.size(); ++i) value.SetI64(static_cast<int64_t>(i), list[i]);
  return n.MakeConstant(value);
}

std::span<const OnnxOp> TextOps() { return kTextOps; }

}  // namespace forge::formats
