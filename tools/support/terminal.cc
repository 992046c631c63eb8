// SPDX-License-Identifier: Apache-2.0
#include "tools/support/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/platform.h"

namespace forge::tools {
namespace {

constexpr int kStdout = 1, kStderr = 2;

// Nanoseconds: what takes less is not worth a word; between lines of a log; between pictures of a
// bar.
constexpr int64_t kPatience = 700'000'000, kBetweenLines = 5'000'000'000,
                  kBetweenFrames = 50'000'000;

}  // namespace

std::string Table::Text(std::string_view indent) const { return forge::Table::Text(indent, &Bold); }

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::operator()(std::string_view what, size_t done, size_t total,
                          std::string_view detail) {
  const std::lock_guard lock(mutex_);
  const int64_t now = NowNanoseconds();
  if (what != what_) {
    what_ = what;
    next_ = now + kPatience;
  }
  const bool finished = done >= total;
  if (now < next_ && !(finished && drawn_)) return;
  if (!IsTerminal(kStderr)) {
    next_ = now + kBetweenLines;
    std::fprintf(stderr, "%s: %zu of %zu%s\n", what_.c_str(), done, total,
                 std::string(detail).c_str());
    return;
  }
  next_ = now + kBetweenFrames;
  drawn_ = !finished;
  const size_t filled = total == 0 ? 0 : done * 24 / total;
  if (finished)
    std::fputs("\r\033[K", stderr);
  else
    std::fprintf(stderr, "\r\033[K%s [%s%s] %zu/%zu%s", what_.c_str(),
                 std::string(filled, '#').c_str(), std::string(24 - filled, ' ').c_str(), done,
                 total, std::string(detail).c_str());
  std::fflush(stderr);
}

std::string Bytes(uint64_t n) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double v = static_cast<double>(n);
  int unit = 0;
  while (v >= 1024 && unit < 4) {
    v /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", n) : fmt::format("{:.1f} {}", v, kUnits[unit]);
}

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  uint64_t n = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string_view unit(rest, text.data() + text.size() - rest);
  constexpr std::string_view kUnits = "KMG";
  const size_t power = unit.size() == 1 ? kUnits.find(unit[0]) + 1 : 0;
  if (error != std::errc() || (!unit.empty() && power == 0) || (n << 10 * power) >> 10 * power != n)
    return InvalidArgument("'{}' is not a number of bytes, such as 800000, 512K, 300M or 2G", text);
  return n << 10 * power;
}

std::string Duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

namespace {

// SGR codes: ECMA-48, 8.3.117.
std::string Styled(std::string_view s, int code) {
  if (code == 0 || !IsTerminal(kStdout) || Environment("NO_COLOR")) return std::string(s);
  return fmt::format("\033[{}m{}\033[0m", code, s);
}

}  // namespace

std::string Bold(std::string_view s) { return Styled(s, 1); }

std::string Coloured(std::string_view diff_line) {
  constexpr int kRed = 31, kGreen = 32, kCyan = 36;
  const char sign = diff_line.empty() ? ' ' : diff_line[0];
  return Styled(diff_line, sign == '-' ? kRed : sign == '+' ? kGreen : sign == '@' ? kCyan : 0);
}

}  // namespace forge::tools
