// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/host/tf_idf.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/op/define.h"

namespace forge::ir {
namespace {

constexpr int64_t kMaxColumns = 1 << 24, kMaxLength = 1 << 10;

using Gram = std::vector<int64_t>;  // of token numbers

// Tokens by number: equal tokens of x and the pool have one.
class Tokens {
 public:
  std::vector<int64_t> NumbersOf(const HostValue& v) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < v.elements(); ++i) {
      if (v.dtype() != DType::kString)
        out.push_back(v.i64(i));
      else
        out.push_back(
            numbers_.emplace(v.string(i), static_cast<int64_t>(numbers_.size())).first->second);
    }
    return out;
  }

 private:
  absl::flat_hash_map<std::string, int64_t> numbers_;
};

absl::Status Check(const TfIdf& op, const HostValue& x, const HostValue& pool) {
  if (x.rank() < 1 || x.rank() > 2)
    return InvalidArgument("{} is neither [n] nor [batch, n]", x.type().ToText());
  if ((x.dtype() == DType::kString) != (pool.dtype() == DType::kString))
    return InvalidArgument("x is {}, the pool {}", x.type().ToText(), pool.type().ToText());
  if (op.shortest < 1 || op.longest < op.shortest || op.longest > kMaxLength || op.skips < 0)
    return InvalidArgument("n-grams of {} to {} tokens with {} skips", op.shortest, op.longest,
                           op.skips);
  for (size_t i = 0; i < op.starts.size(); ++i)
    if (op.starts[i] < (i == 0 ? 0 : op.starts[i - 1]) || op.starts[i] > pool.elements())
      return InvalidArgument("entry {} of ngram_counts is {}", i, op.starts[i]);
  for (const int64_t column : op.columns)
    if (column < 0 || column >= kMaxColumns) return InvalidArgument("column {}", column);
  if (!op.weights.empty() && op.weights.size() != op.columns.size())
    return InvalidArgument("{} weights for {} n-grams", op.weights.size(), op.columns.size());
  return absl::OkStatus();
}

absl::StatusOr<absl::flat_hash_map<Gram, int64_t>> GramsOf(const TfIdf& op,
                                                           std::span<const int64_t> pool) {
  absl::flat_hash_map<Gram, int64_t> grams;
  int64_t number = 0;
  for (size_t n = 1; n <= op.starts.size(); ++n) {
    const auto begin = static_cast<size_t>(op.starts[n - 1]);
    const size_t end = n < op.starts.size() ? static_cast<size_t>(op.starts[n]) : pool.size();
    if ((end - begin) % n != 0)
      return InvalidArgument("{} tokens are no n-grams of {}", end - begin, n);
    for (size_t at = begin; at < end; at += n)
      grams.emplace(Gram(pool.begin() + static_cast<ptrdiff_t>(at),
                         pool.begin() + static_cast<ptrdiff_t>(at + n)),
                    number++);
  }
  if (number != static_cast<int64_t>(op.columns.size()))
    return InvalidArgument("{} n-grams, but {} columns", number, op.columns.size());
  return grams;
}

// Calls `found` with the number of each n-gram that occurs in a row.
template <class Found>
void Count(const TfIdf& op, const absl::flat_hash_map<Gram, int64_t>& grams,
           std::span<const int64_t> row, Found found) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t step = 1; step <= std::min(op.skips + 1, size); ++step) {
    // Skips mean nothing to single tokens.
    for (int64_t n = step == 1 ? op.shortest : std::max<int64_t>(op.shortest, 2); n <= op.longest;
         ++n) {
      for (int64_t begin = 0; begin + step * (n - 1) < size; ++begin) {
        Gram gram;
        for (int64_t k = 0; k < n; ++k) gram.push_back(row[static_cast<size_t>(begin + k * step)]);
        if (const auto at = grams.find(gram); at != grams.end())
          found(static_cast<size_t>(at->second));
      }
    }
  }
}

}  // namespace

absl::Status TfIdf::evaluate(Eval& e) const {
  const HostValue &x = *e.in(0), &pool = *e.in(1);
  FORGE_RETURN_IF_ERROR(Check(*this, x, pool));
  Tokens tokens;
  FORGE_ASSIGN_OR_RETURN(const auto grams, GramsOf(*this, tokens.NumbersOf(pool)));
  const std::vector<int64_t> all = tokens.NumbersOf(x);
  const int64_t columns_out =
      columns.empty() ? 0 : *std::max_element(columns.begin(), columns.end()) + 1;
  const int64_t rows = x.rank() == 2 ? x.dim(0) : 1, size = x.dim(x.rank() - 1);
  std::vector<int64_t> shape = {columns_out};
  if (x.rank() == 2) shape.insert(shape.begin(), rows);
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(DType::kF32, shape));
  for (int64_t r = 0; r < rows; ++r) {
    const auto row =
        std::span(all).subspan(static_cast<size_t>(r * size), static_cast<size_t>(size));
    Count(*this, grams, row, [&](size_t gram) {
      const int64_t at = r * columns_out + columns[gram];
      const double weight = weights.empty() ? 1 : weights[gram];
      if (mode == TermWeight::kPresence)
        out.Set(at, weight);
      else
        out.Set(at, out.f64(at) + (mode == TermWeight::kProduct ? weight : 1));
    });
  }
  e.out(0) = std::move(out);
  return absl::OkStatus();
}

FORGE_DEFINE_OP(TfIdf)

}  // namespace forge::ir
