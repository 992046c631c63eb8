// SPDX-License-Identifier: Apache-2.0
// Ops on tensors of strings in UTF-8.
#pragma once
#include "ir/ops/host/host_step.h"

namespace forge::ir {

struct StringConcat {
  static constexpr OpInfo kInfo{.name = "string_concat",
                                .formula = "y = a followed by b, broadcast",
                                .inputs = "a: value; b: value",
                                .outputs = "y: value",
                                .source = "ONNX StringConcat-20",
                                .host = true};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const StringConcat*);

struct StringEqual {
  static constexpr OpInfo kInfo{.name = "string_equal",
                                .formula = "a = b, broadcast, as bool",
                                .inputs = "a: value; b: value",
                                .outputs = "y: value",
                                .source = "ONNX Equal-19",
                                .host = true};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const StringEqual*);

struct StringSplit {
  std::string delimiter;
  int64_t max_splits = INT64_MAX;

  static constexpr OpInfo kInfo{
      .name = "string_split",
      .formula = "parts[..., k] = the k-th part of x, empty beyond count = how many x has",
      .inputs = "x: value",
      .outputs = "parts: value; count: value",
      .source = "ONNX StringSplit-20; str.split",
      .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&StringSplit::delimiter>("delimiter", "Empty: any run of white space."),
      FieldOf<&StringSplit::max_splits>("max_splits", "The rest stays in the last part.")};
  FORGE_HOST_STEP(2)
};
const OpDef& DefOf(const StringSplit*);

enum class LetterCase : uint8_t { kAsIs, kLower, kUpper };

struct StringNormalize {
  LetterCase letters = LetterCase::kAsIs;
  bool match_case = false;

  static constexpr OpInfo kInfo{
      .name = "string_normalize",
      .formula = "y = x without stop words, in one case; one empty string where none is left",
      .inputs = "x: value; stop: value?",
      .outputs = "y: value",
      .source = "ONNX StringNormalizer-10",
      .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&StringNormalize::letters>("letters", "Of ASCII, Latin, Greek and Cyrillic.",
                                         "as_is|lower|upper"),
      FieldOf<&StringNormalize::match_case>("match_case", "Stop words differ by case.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const StringNormalize*);

struct RegexFullMatch {
  std::string pattern;

  static constexpr OpInfo kInfo{.name = "regex_full_match",
                                .formula = "whether all of x matches the pattern, as bool",
                                .inputs = "x: value",
                                .outputs = "y: value",
                                .source = "ONNX RegexFullMatch-20; RE2",
                                .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&RegexFullMatch::pattern>("pattern", "In the syntax of RE2.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const RegexFullMatch*);

// Numbers as strings, and strings as numbers.
struct StringCast {
  DType to = DType::kString;

  static constexpr OpInfo kInfo{
      .name = "string_cast",
      .formula = "numbers as their shortest decimals that give them back, or such as numbers",
      .inputs = "x: value",
      .outputs = "y: value",
      .source = "ONNX Cast-24",
      .host = true};
  static constexpr Field kFields[] = {FieldOf<&StringCast::to>("to", "Of the result.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const StringCast*);

struct MapLabels {
  static constexpr OpInfo kInfo{
      .name = "map_labels",
      .formula = "values[k] for the first k with keys[k] = x, NaN equal to NaN; else otherwise",
      .inputs = "x: value; keys: value; values: value; otherwise: value",
      .outputs = "y: value",
      .source = "ONNX ai.onnx.ml LabelEncoder-4",
      .host = true};
  absl::StatusOr<Types> infer(TypeSpan in) const;
  FORGE_HOST_STEP_OF_TYPES
};
const OpDef& DefOf(const MapLabels*);

}  // namespace forge::ir
