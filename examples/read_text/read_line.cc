// SPDX-License-Identifier: Apache-2.0
#include "read_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace {

constexpr int64_t kHeight = 48;  // of the inputs of both networks, pixels
constexpr int64_t kClassifierWidth = 192;
constexpr int64_t kLongest = 4800;  // of a line; what is longer is squeezed
// Lines are padded to few different widths, since a device compiles anew for each.
constexpr int64_t kWidthStep = 320;
constexpr float kSure = 0.9f;

// The box at the networks' height, its width by aspect up to `widest`.
Picture LineOf(const Picture& picture, const Quad& box, int64_t widest) {
  const Point across = box[1] - box[0], down = box[3] - box[0];
  const double aspect = std::hypot(across.x, across.y) / std::max(std::hypot(down.x, down.y), 1e-3);
  const double width = std::ceil(aspect * static_cast<double>(kHeight));
  return picture.Cut(box, static_cast<int64_t>(std::clamp(width, 1.0, static_cast<double>(widest))),
                     kHeight);
}

}  // namespace

absl::StatusOr<Alphabet> Alphabet::Of(const Network& recogniser) {
  const std::string_view lines = recogniser.Metadata("character");
  if (lines.empty())
    return absl::InvalidArgumentError("the recogniser does not tell its alphabet in 'character'");
  Alphabet a;
  a.letters_.emplace_back();
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    a.letters_.emplace_back(lines.substr(at, end - at));
    at = end + 1;
  }
  a.letters_.emplace_back(" ");
  return a;
}

absl::StatusOr<Quad> Upright(Network& classifier, const Picture& picture, const Quad& box) {
  auto scores = classifier.Run(LineOf(picture, box, kClassifierWidth).AsInput(kClassifierWidth), 2);
  if (!scores.ok()) return scores.status();
  if (scores->elements() != 2)
    return absl::InvalidArgumentError("the classifier does not tell two directions apart");
  if (Floats(*scores)[1] < kSure) return box;
  return Quad{box[2], box[3], box[0], box[1]};
}

absl::StatusOr<Reading> ReadLine(Network& recogniser, const Alphabet& alphabet,
                                 const Picture& picture, const Quad& box) {
  const Picture line = LineOf(picture, box, kLongest);
  const int64_t padded = (line.width() + kWidthStep - 1) / kWidthStep * kWidthStep;
  auto scores = recogniser.Run(line.AsInput(padded), 3);
  if (!scores.ok()) return scores.status();
  const int64_t steps = scores->dim(1), classes = scores->dim(2);
  if (classes != alphabet.classes() || scores->dim(0) != 1)
    return absl::InvalidArgumentError(absl::StrCat("the recogniser has ", classes,
                                                   " classes, its alphabet ", alphabet.classes()));
  Reading reading;
  int64_t before = 0, letters = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const auto row =
        Floats(*scores).subspan(static_cast<size_t>(step * classes), static_cast<size_t>(classes));
    const auto best = std::max_element(row.begin(), row.end());
    const int64_t letter = best - row.begin();
    if (letter != 0 && letter != before) {
      reading.text += alphabet[letter];
      reading.confidence += static_cast<double>(*best);
      ++letters;
    }
    before = letter;
  }
  if (letters > 0) reading.confidence /= static_cast<double>(letters);
  return reading;
}
