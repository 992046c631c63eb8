// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/host/host_step.h"

namespace forge::ir {

enum class TermWeight : uint8_t { kCount, kPresence, kProduct };

struct TfIdf {
  TermWeight mode = TermWeight::kCount;
  int64_t shortest = 1, longest = 1, skips = 0;
  std::vector<int64_t> starts = {}, columns = {};
  std::vector<double> weights = {};

  static constexpr OpInfo kInfo{
      .name = "tf_idf",
      .formula =
          "y[..., columns[g]] = how often n-gram g of the pool occurs in x, with up to "
          "`skips` tokens between two of its own",
      .inputs = "x: value; pool: value",
      .outputs = "y: value",
      .source = "ONNX TfIdfVectorizer-9",
      .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&TfIdf::mode>("mode", "The count; the weight where it is not 0; their product.",
                            "count|presence|product"),
      FieldOf<&TfIdf::shortest>("shortest", "Tokens of the shortest n-grams counted."),
      FieldOf<&TfIdf::longest>("longest", "Of the longest."),
      FieldOf<&TfIdf::skips>("skips", "The most tokens left out between two."),
      FieldOf<&TfIdf::starts>("starts", "Where the n-grams of 1, 2 ... tokens begin in the pool."),
      FieldOf<&TfIdf::columns>("columns", "The column of each n-gram of the pool."),
      FieldOf<&TfIdf::weights>("weights", "Of each n-gram; none: all 1.")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const TfIdf*);

}  // namespace forge::ir
