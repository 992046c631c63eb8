// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/host/select_boxes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op/define.h"

namespace forge::ir {
namespace {

struct Corners {
  float y0, x0, y1, x1;
  float area() const { return (y1 - y0) * (x1 - x0); }
};

Corners CornersOf(const HostValue& boxes, int64_t box, bool centers) {
  const auto at = [&](int64_t k) { return static_cast<float>(boxes.f64(box * 4 + k)); };
  if (centers) {
    const float w = at(2) / 2, h = at(3) / 2;
    return {at(1) - h, at(0) - w, at(1) + h, at(0) + w};
  }
  return {std::min(at(0), at(2)), std::min(at(1), at(3)), std::max(at(0), at(2)),
          std::max(at(1), at(3))};
}

// In f32, as the boxes are: whether two overlap by just the limit depends on it.
bool Overlap(const Corners& a, const Corners& b, float limit) {
  const float h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(h > 0) || !(w > 0)) return false;
  const float both = h * w, either = a.area() + b.area() - both;
  return either > 0 && both / either > limit;
}

struct Limits {
  int64_t most = 0;
  float overlap = 0, least = -std::numeric_limits<float>::infinity();
};

absl::StatusOr<Limits> LimitsOf(const Eval& e) {
  Limits out;
  for (size_t i = 2; i < 5; ++i)
    if (e.in(i) != nullptr) FORGE_RETURN_IF_ERROR(ScalarOperand(e, i, "a limit").status());
  if (e.in(2) != nullptr) out.most = e.in(2)->i64(0);
  if (e.in(3) != nullptr) out.overlap = static_cast<float>(e.in(3)->f64(0));
  if (e.in(4) != nullptr) out.least = static_cast<float>(e.in(4)->f64(0));
  return out;
}

// The boxes of one class that are kept, by falling score; of equal ones the first.
std::vector<int64_t> Kept(std::span<const Corners> boxes, std::span<const float> scores,
                          const Limits& limits) {
  std::vector<int64_t> order, kept;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > limits.least) order.push_back(static_cast<int64_t>(i));
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](int64_t i) { return scores[static_cast<size_t>(i)]; });
  for (const int64_t i : order) {
    if (static_cast<int64_t>(kept.size()) >= limits.most) break;
    const Corners& box = boxes[static_cast<size_t>(i)];
    if (std::ranges::none_of(kept, [&](int64_t k) {
          return Overlap(box, boxes[static_cast<size_t>(k)], limits.overlap);
        }))
      kept.push_back(i);
  }
  return kept;
}

}  // namespace

absl::StatusOr<Types> SelectBoxes::infer(TypeSpan) const {
  if (count == Dim(-1)) return Types{Type::Unknown()};
  return Types{Type::Tensor(DType::kI64, {count, 3})};
}

absl::Status SelectBoxes::evaluate(Eval& e) const {
  const HostValue &boxes = *e.in(0), &scores = *e.in(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(2) != 4 ||
      boxes.dim(0) != scores.dim(0) || boxes.dim(1) != scores.dim(2))
    return InvalidArgument("boxes {} do not fit scores {}", boxes.type().ToText(),
                           scores.type().ToText());
  FORGE_ASSIGN_OR_RETURN(const Limits limits, LimitsOf(e));
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  std::vector<int64_t> rows;
  std::vector<Corners> corners(static_cast<size_t>(count));
  std::vector<float> of_class(static_cast<size_t>(count));
  for (int64_t b = 0; b < boxes.dim(0); ++b) {
    for (int64_t i = 0; i < count; ++i)
      corners[static_cast<size_t>(i)] = CornersOf(boxes, b * count + i, centers);
    for (int64_t c = 0; c < classes; ++c) {
      for (int64_t i = 0; i < count; ++i)
        of_class[static_cast<size_t>(i)] =
            static_cast<float>(scores.f64((b * classes + c) * count + i));
      for (const int64_t i : Kept(corners, of_class, limits)) rows.insert(rows.end(), {b, c, i});
    }
  }
  const std::vector<int64_t> shape = {static_cast<int64_t>(rows.size() / 3), 3};
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(DType::kI64, shape));
  for (size_t i = 0; i < rows.size(); ++i) out.SetI64(static_cast<int64_t>(i), rows[i]);
  e.out(0) = std::move(out);
  return absl::OkStatus();
}

FORGE_DEFINE_OP(SelectBoxes)

}  // namespace forge::ir
