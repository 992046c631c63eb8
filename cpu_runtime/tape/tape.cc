// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/tape/tape.h"

#include <algorithm>

#include "cpu_runtime/tape/box_builder.h"

namespace forge::cpu {
namespace {

// Beyond this many boxes, and one more for each operand, conditions are computed element by element
// instead.
constexpr size_t kMaxBoxes = 64;

Box BoxOf(const View& view) {
  Box box;
  for (size_t a : MemoryOrder(view)) box.push_back({a, 1, 0, view.shape[a]});
  return box;
}

std::pair<Box, Box> CutBox(const Box& box, const Cut& cut) {
  std::pair<Box, Box> out{box, box};
  out.first[cut.axis].high = cut.at;
  out.second[cut.axis].low = cut.at;
  return out;
}

Box SplitBox(Box box, const Split& split) {
  const BoxAxis whole = box[split.axis];
  // Inside from `low` on, so that it may begin anywhere.
  box[split.axis] = {whole.axis, whole.step * split.by, 0, whole.extent() / split.by};
  const auto after = box.begin() + static_cast<ptrdiff_t>(split.axis) + 1;
  box.insert(after, {whole.axis, whole.step, whole.low, whole.low + split.by});
  return box;
}

// Builds the boxes of results of one shape.
struct GroupBuilder {
  const TapeSpec& spec;
  std::vector<BoxProgram>& boxes;
  std::vector<ir::AnyOp>& ops;

  absl::Status Run(std::span<const Placed* const> results) {
    const View& view = results[0]->view;
    if (view.elements() == 0) return absl::OkStatus();
    std::vector<Box> left{BoxOf(view)};
    size_t built = 0;
    while (!left.empty()) {
      const Box box = std::move(left.back());
      left.pop_back();
      BoxBuilder builder(spec, box, built + left.size() + 2 <= kMaxBoxes + spec.sources.size());
      FORGE_RETURN_IF_ERROR(builder.Build(results));
      if (builder.cut()) {
        auto [low, high] = CutBox(box, *builder.cut());
        left.push_back(std::move(high));
        left.push_back(std::move(low));
        continue;
      }
      if (builder.split()) {
        left.push_back(SplitBox(box, *builder.split()));
        continue;
      }
      boxes.push_back(builder.Finish());
      for (ir::AnyOp& op : builder.TakeOps()) ops.push_back(std::move(op));
      ++built;
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<Tape> Tape::Compile(const TapeSpec& spec) {
  Tape tape;
  GroupBuilder builder{spec, tape.boxes_, tape.ops_};
  std::vector<const Placed*> left;
  for (const Placed& r : spec.results) left.push_back(&r);
  while (!left.empty()) {
    const auto other = std::stable_partition(left.begin(), left.end(), [&](const Placed* p) {
      return p->view.shape == left[0]->view.shape;
    });
    FORGE_RETURN_IF_ERROR(
        builder.Run(std::span(left.data(), static_cast<size_t>(other - left.begin()))));
    left.erase(left.begin(), other);
  }
  for (const BoxProgram& b : tape.boxes_)
    tape.scratch_ =
        std::max<uint64_t>(tape.scratch_, b.scratch_bytes + (b.rows ? b.rows->scratch_bytes : 0));
  return tape;
}

double Tape::work() const {
  double all = 0;
  for (const BoxProgram& b : boxes_)
    all += static_cast<double>(b.elements) * static_cast<double>(b.body.size());
  return all;
}

int Tape::gathers() const {
  int all = 0;
  for (const BoxProgram& b : boxes_)
    for (const Instruction& i : b.body) all += std::holds_alternative<GatherInstruction>(i);
  return all;
}

Verdict TapeTakes(const ir::Function& body, const ir::Node& node) {
  const ir::OpDef& def = node.op.def();
  if (!def.scalar && !def.map)
    return Verdict::No(fmt::format("{} is neither element-wise nor a movement", node.op.name()));
  for (uint16_t i = 0; i < node.outs; ++i) {
    const ir::Type& t = body.type(node.first_out + i);
    if (!t.is_tensor()) return Verdict::No(fmt::format("{} is no tensor", t.ToText()));
    if (StoredBytes(t.dtype()) == 0)
      return Verdict::No(fmt::format("elements of {} are not whole bytes", Name(t.dtype())));
  }
  if (def.scalar == nullptr) return Verdict::Yes("tape");
  const DType domain = body.type(node.in.back()).dtype();
  const bool cast = def.scalar->info.result == ir::ResultType::kAttribute;
  const bool taken = cast ? FindConvertLoop(domain, body.type(node.first_out).dtype()) != nullptr
                          : FindScalarLoop(*def.scalar, HeldAs(domain)) != nullptr;
  if (!taken)
    return Verdict::No(fmt::format("{} has no loop for {}", node.op.name(), Name(domain)));
  return Verdict::Yes("tape");
}

}  // namespace forge::cpu
