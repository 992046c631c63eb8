// SPDX-License-Identifier: Apache-2.0
#include "tools/page/line_diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace forge::tools {
namespace {

using Match = std::pair<size_t, size_t>;

// Lines between anchors are paired by dynamic programming up to this many cells.
constexpr size_t kMostCells = 1u << 20;

struct Range {
  size_t begin_a, end_a, begin_b, end_b;
};

class Matcher {
 public:
  Matcher(std::span<const std::string> a, std::span<const std::string> b) : a_(a), b_(b) {}

  std::vector<Match> Run() {
    std::vector<Range> work = {{0, a_.size(), 0, b_.size()}};
    while (!work.empty()) {
      Range r = work.back();
      work.pop_back();
      TakeEnds(r);
      if (r.begin_a == r.end_a || r.begin_b == r.end_b) continue;
      const std::vector<Match> anchors = Anchors(r);
      if (anchors.empty()) {
        TakeLongestCommon(r);
        continue;
      }
      for (const Match& m : anchors) {
        matches_.push_back(m);
        work.push_back({r.begin_a, m.first, r.begin_b, m.second});
        r.begin_a = m.first + 1;
        r.begin_b = m.second + 1;
      }
      work.push_back(r);
    }
    std::sort(matches_.begin(), matches_.end());
    return std::move(matches_);
  }

 private:
  void TakeEnds(Range& r) {
    for (; r.begin_a < r.end_a && r.begin_b < r.end_b && a_[r.begin_a] == b_[r.begin_b];
         ++r.begin_a, ++r.begin_b)
      matches_.emplace_back(r.begin_a, r.begin_b);
    for (; r.begin_a < r.end_a && r.begin_b < r.end_b && a_[r.end_a - 1] == b_[r.end_b - 1];
         --r.end_a, --r.end_b)
      matches_.emplace_back(r.end_a - 1, r.end_b - 1);
  }

  // The longest rising run of lines that are unique on both sides.
  std::vector<Match> Anchors(const Range& r) const {
    struct Seen {
      size_t in_a = 0, in_b = 0, at_a = 0, at_b = 0;
    };
    absl::flat_hash_map<std::string_view, Seen> seen;
    for (size_t i = r.begin_a; i < r.end_a; ++i) {
      Seen& s = seen[a_[i]];
      ++s.in_a;
      s.at_a = i;
    }
    for (size_t i = r.begin_b; i < r.end_b; ++i) {
      Seen& s = seen[b_[i]];
      ++s.in_b;
      s.at_b = i;
    }
    std::vector<Match> unique;
    for (const auto& [line, s] : seen)
      if (s.in_a == 1 && s.in_b == 1) unique.emplace_back(s.at_a, s.at_b);
    std::sort(unique.begin(), unique.end());
    return LongestRising(unique);
  }

  // By patience sorting: `tops[k]` ends the best run of length k + 1.
  static std::vector<Match> LongestRising(const std::vector<Match>& matches) {
    std::vector<size_t> tops, before(matches.size());
    for (size_t i = 0; i < matches.size(); ++i) {
      const auto at = std::lower_bound(tops.begin(), tops.end(), i, [&](size_t t, size_t n) {
        return matches[t].second < matches[n].second;
      });
      before[i] = at == tops.begin() ? matches.size() : *(at - 1);
      if (at == tops.end())
        tops.push_back(i);
      else
        *at = i;
    }
    std::vector<Match> out(tops.size());
    size_t i = tops.empty() ? 0 : tops.back();
    for (size_t k = tops.size(); k-- > 0; i = before[i]) out[k] = matches[i];
    return out;
  }

  // Repeated lines only: small gaps are worth the exact answer, large ones stay unpaired.
  void TakeLongestCommon(const Range& r) {
    const size_t n = r.end_a - r.begin_a, m = r.end_b - r.begin_b;
    if (n > kMostCells / m) return;
    std::vector<uint32_t> best((n + 1) * (m + 1), 0);
    const auto at = [&](size_t i, size_t j) -> uint32_t& { return best[i * (m + 1) + j]; };
    const auto same = [&](size_t i, size_t j) { return a_[r.begin_a + i] == b_[r.begin_b + j]; };
    for (size_t i = n; i-- > 0;)
      for (size_t j = m; j-- > 0;)
        at(i, j) = same(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    for (size_t i = 0, j = 0; i < n && j < m;) {
      if (same(i, j))
        matches_.emplace_back(r.begin_a + i++, r.begin_b + j++);
      else if (at(i + 1, j) >= at(i, j + 1))
        ++i;
      else
        ++j;
    }
  }

  std::span<const std::string> a_, b_;
  std::vector<Match> matches_;
};

// A line of a diff: where it stands before and after, and how it begins.
struct Edit {
  char sign;
  size_t at_a, at_b;
};

std::vector<Edit> EditsOf(std::span<const std::string> a, std::span<const std::string> b) {
  std::vector<Match> matches = MatchLines(a, b);
  matches.emplace_back(a.size(), b.size());
  std::vector<Edit> edits;
  size_t i = 0, j = 0;
  for (const auto& [to_a, to_b] : matches) {
    for (; i < to_a; ++i) edits.push_back({'-', i, j});
    for (; j < to_b; ++j) edits.push_back({'+', i, j});
    if (i < a.size() && j < b.size()) edits.push_back({' ', i++, j++});
  }
  return edits;
}

// "begin,count" as diff writes a range: from 1, and the line before where there is none.
std::string RangeText(size_t begin, size_t count) {
  if (count == 1) return std::to_string(begin + 1);
  return fmt::format("{},{}", count == 0 ? begin : begin + 1, count);
}

}  // namespace

std::vector<Match> MatchLines(std::span<const std::string> a, std::span<const std::string> b) {
  return Matcher(a, b).Run();
}

std::string UnifiedDiff(std::span<const std::string> a, std::span<const std::string> b) {
  constexpr size_t kAround = 3;
  const std::vector<Edit> edits = EditsOf(a, b);
  std::string out;
  for (size_t i = 0; i < edits.size();) {
    if (edits[i].sign == ' ') {
      ++i;
      continue;
    }
    // A hunk goes on while changes are near enough for their surroundings to touch.
    const size_t begin = i > kAround ? i - kAround : 0;
    size_t last = i;
    for (size_t k = i; k < edits.size() && k <= last + 2 * kAround + 1; ++k)
      if (edits[k].sign != ' ') last = k;
    const size_t end = std::min(edits.size(), last + kAround + 1);
    size_t count_a = 0, count_b = 0;
    std::string lines;
    for (size_t k = begin; k < end; ++k) {
      count_a += edits[k].sign != '+';
      count_b += edits[k].sign != '-';
      lines += fmt::format("{}{}\n", edits[k].sign,
                           edits[k].sign == '+' ? b[edits[k].at_b] : a[edits[k].at_a]);
    }
    out += fmt::format("@@ -{} +{} @@\n", RangeText(edits[begin].at_a, count_a),
                       RangeText(edits[begin].at_b, count_b)) +
           lines;
    i = end;
  }
  return out;
}

Lines SplitLines(std::string_view text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace forge::tools
