// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/host/sequence.h"

#include <algorithm>

#include "ir/graph/interpreter.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"

namespace forge::ir {
namespace {

constexpr int64_t kMaxItems = 1 << 24;

absl::StatusOr<std::vector<HostValue>> ItemsOf(const HostValue& v) {
  if (v.kind() != Type::Kind::kSequence)
    return InvalidArgument("{} is no sequence", v.type().ToText());
  return std::vector<HostValue>(v.items().begin(), v.items().end());
}

// Where `position` stands among `count` places; `otherwise` where it is not given.
absl::StatusOr<int64_t> PlaceOf(const Eval& e, size_t operand, int64_t count, int64_t otherwise) {
  if (e.in(operand) == nullptr) {
    if (otherwise < 0) return InvalidArgument("the sequence is empty");
    return otherwise;
  }
  FORGE_ASSIGN_OR_RETURN(const int64_t at, ScalarOperand(e, operand, "the position"));
  if (at < -count || at >= count)
    return InvalidArgument("position {} is outside of a sequence with {} places", at, count);
  return at < 0 ? at + count : at;
}

Type ItemType(const HostValue& sequence) { return sequence.type().element(); }

// Items are tensors of one element type.
absl::Status CheckItem(const Type& element, const HostValue& item) {
  if (!item.is_tensor()) return InvalidArgument("an item is {}", item.type().ToText());
  if (element.kind() == Type::Kind::kUnknown || element.dtype() == item.dtype())
    return absl::OkStatus();
  return InvalidArgument("an item is {} in a sequence of {}", item.type().ToText(),
                         element.ToText());
}

absl::StatusOr<HostValue> Part(const HostValue& x, int64_t axis, int64_t begin, int64_t size) {
  Dims from(static_cast<size_t>(x.rank()), 0), to;
  for (const int64_t d : x.shape()) to.emplace_back(d);
  from[static_cast<size_t>(axis)] = begin;
  to[static_cast<size_t>(axis)] = begin + size;
  const HostValue* const in[] = {&x};
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> out, Evaluate(Slice{from, to}, in));
  return std::move(out[0]);
}

// The same elements without, or with, an axis of one.
absl::StatusOr<HostValue> Reshaped(const HostValue& x, std::vector<int64_t> shape) {
  return HostValue::Of(x.dtype(), shape, x.shared_bytes());
}

// The sizes of the parts.
absl::StatusOr<std::vector<int64_t>> SizesOf(const HostValue* split, int64_t extent) {
  std::vector<int64_t> sizes;
  if (split != nullptr && split->rank() > 0) {
    int64_t sum = 0;
    for (int64_t i = 0; i < split->elements(); ++i) {
      const int64_t size = sizes.emplace_back(split->i64(i));
      if (size < 0 || size > extent - sum)
        return InvalidArgument("split {} does not fit an extent of {}", size, extent);
      sum += size;
    }
    if (sum != extent) return InvalidArgument("the splits sum to {}, not to {}", sum, extent);
    return sizes;
  }
  const int64_t size = split == nullptr ? 1 : split->i64(0);
  if (size < 1) return InvalidArgument("parts of {} elements", size);
  if (extent / size >= kMaxItems)
    return ResourceExhausted("a sequence of more than {} items", kMaxItems);
  for (int64_t at = 0; at < extent; at += size) sizes.push_back(std::min(size, extent - at));
  return sizes;
}

}  // namespace

absl::Status SequenceConstruct::evaluate(Eval& e) const {
  std::vector<HostValue> items;
  const DType of = e.inputs() > 0 && e.in(0) != nullptr ? e.in(0)->dtype() : dtype;
  for (size_t i = 0; i < e.inputs(); ++i) {
    if (e.in(i) == nullptr) return InvalidArgument("item {} is missing", i);
    FORGE_RETURN_IF_ERROR(CheckItem(Type::Unranked(of), *e.in(i)));
    items.push_back(*e.in(i));
  }
  e.out(0) = HostValue::Sequence(Type::Unranked(of), std::move(items));
  return absl::OkStatus();
}

absl::Status SequenceInsert::evaluate(Eval& e) const {
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> items, ItemsOf(*e.in(0)));
  FORGE_RETURN_IF_ERROR(CheckItem(ItemType(*e.in(0)), *e.in(1)));
  const auto count = static_cast<int64_t>(items.size());
  if (count >= kMaxItems) return ResourceExhausted("a sequence of more than {} items", kMaxItems);
  // A negative position counts from the end of the items, not of the places.
  int64_t at = count;
  if (e.in(2) != nullptr) {
    FORGE_ASSIGN_OR_RETURN(at, ScalarOperand(e, 2, "the position"));
    if (at < -count || at > count)
      return InvalidArgument("position {} is outside of a sequence of {} items", at, count);
    if (at < 0) at += count;
  }
  items.insert(items.begin() + at, *e.in(1));
  e.out(0) = HostValue::Sequence(ItemType(*e.in(0)), std::move(items));
  return absl::OkStatus();
}

absl::Status SequenceErase::evaluate(Eval& e) const {
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> items, ItemsOf(*e.in(0)));
  const auto count = static_cast<int64_t>(items.size());
  FORGE_ASSIGN_OR_RETURN(const int64_t at, PlaceOf(e, 1, count, count - 1));
  items.erase(items.begin() + at);
  e.out(0) = HostValue::Sequence(ItemType(*e.in(0)), std::move(items));
  return absl::OkStatus();
}

absl::Status SequenceAt::evaluate(Eval& e) const {
  if (whole_tensors && e.in(0)->is_tensor()) {
    e.out(0) = *e.in(0);
    return absl::OkStatus();
  }
  FORGE_ASSIGN_OR_RETURN(const std::vector<HostValue> items, ItemsOf(*e.in(0)));
  FORGE_ASSIGN_OR_RETURN(const int64_t at, PlaceOf(e, 1, static_cast<int64_t>(items.size()), -1));
  e.out(0) = items[static_cast<size_t>(at)];
  return absl::OkStatus();
}

absl::Status SequenceLength::evaluate(Eval& e) const {
  FORGE_ASSIGN_OR_RETURN(const std::vector<HostValue> items, ItemsOf(*e.in(0)));
  e.out(0) = HostValue::Scalar(DType::kI64, static_cast<int64_t>(items.size()));
  return absl::OkStatus();
}

absl::Status SplitToSequence::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  const HostValue* split = e.in(1);
  if (!x.is_tensor()) return InvalidArgument("{} is no tensor", x.type().ToText());
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, x.rank()));
  if (split != nullptr && (split->rank() > 1 || (split->rank() == 0 && split->elements() != 1)))
    return InvalidArgument("split is {}", split->type().ToText());
  FORGE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                         SizesOf(split, x.dim(static_cast<int>(along))));
  std::vector<HostValue> items;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    FORGE_ASSIGN_OR_RETURN(HostValue part, Part(x, along, begin, size));
    if (split == nullptr && !keep_dims) {
      std::vector<int64_t> shape(part.shape().begin(), part.shape().end());
      shape.erase(shape.begin() + along);
      FORGE_ASSIGN_OR_RETURN(part, Reshaped(part, std::move(shape)));
    }
    items.push_back(std::move(part));
    begin += size;
  }
  e.out(0) = HostValue::Sequence(Type::Unranked(x.dtype()), std::move(items));
  return absl::OkStatus();
}

absl::Status ConcatFromSequence::evaluate(Eval& e) const {
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> items, ItemsOf(*e.in(0)));
  if (items.empty()) return InvalidArgument("the sequence is empty");
  const int64_t rank = items[0].rank() + (new_axis ? 1 : 0);
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, rank));
  std::vector<const HostValue*> in;
  for (HostValue& item : items) {
    if (new_axis && item.rank() == rank - 1) {
      std::vector<int64_t> shape(item.shape().begin(), item.shape().end());
      shape.insert(shape.begin() + along, 1);
      FORGE_ASSIGN_OR_RETURN(item, Reshaped(item, std::move(shape)));
    }
    in.push_back(&item);
  }
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> out, Evaluate(Concat{.axis = along}, in));
  e.out(0) = std::move(out[0]);
  return absl::OkStatus();
}

absl::Status NoValue::evaluate(Eval& e) const {
  e.out(0) = HostValue::Nothing(of);
  return absl::OkStatus();
}

FORGE_DEFINE_OP(SequenceConstruct)
FORGE_DEFINE_OP(SequenceInsert)
FORGE_DEFINE_OP(SequenceErase)
FORGE_DEFINE_OP(SequenceAt)
FORGE_DEFINE_OP(SequenceLength)
FORGE_DEFINE_OP(SplitToSequence)
FORGE_DEFINE_OP(ConcatFromSequence)
FORGE_DEFINE_OP(NoValue)

}  // namespace forge::ir
