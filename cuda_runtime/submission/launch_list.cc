// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/submission/launch_list.h"

#include <algorithm>
#include <cstring>

namespace forge::cuda {
namespace {

// Bytes that a step touches: an operand with its numbers filled in.
struct Range {
  CuAddress address = 0;  // 0: absent or empty
  uint64_t bytes = 0;
};

absl::StatusOr<uint64_t> Size(const ir::Dim& d, const ir::Bindings& values, const char* what) {
  FORGE_ASSIGN_OR_RETURN(const int64_t v, d.Evaluate(values));
  if (v < 0) return OutOfRange("its {} is {}", what, v);
  return static_cast<uint64_t>(v);
}

absl::StatusOr<Range> Bind(const LaunchListInput& in, const Operand& o) {
  if (o.slot == Operand::kNoSlot) return Range{};
  FORGE_ASSIGN_OR_RETURN(const uint64_t offset, Size(o.offset, in.values, "offset"));
  FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, Size(o.bytes, in.values, "size"));
  if (bytes == 0) return Range{};
  const CudaBuffer* b = in.slots[o.slot].get();
  if (b == nullptr) return InvalidArgument("slot {} is empty", o.slot);
  if (offset % kAlignment != 0)
    return InvalidArgument("its offset {} is not a multiple of {}", offset, kAlignment);
  if (offset > b->size() || bytes > b->size() - offset)
    return OutOfRange("bytes {} to {} lie outside a buffer of {}", offset, offset + bytes,
                      b->size());
  return Range{b->address() + offset, bytes};
}

absl::StatusOr<std::optional<BoundCopy>> CopyOf(std::span<const Range> operands) {
  if (operands.size() != 2)
    return InvalidArgument("a copy has 2 operands, not {}", operands.size());
  const Range &from = operands[0], &to = operands[1];
  if (from.bytes != to.bytes)
    return InvalidArgument("it copies {} bytes to {}", from.bytes, to.bytes);
  if (from.bytes == 0 || from.address == to.address) return std::optional<BoundCopy>();
  if (from.address < to.address + to.bytes && to.address < from.address + from.bytes)
    return InvalidArgument("it copies between overlapping ranges");
  return std::optional(BoundCopy{from.address, to.address, from.bytes});
}

// The numbers of a launch.
class LaunchBinder {
 public:
  LaunchBinder(const LaunchListInput& in, const Step& step, std::span<const Range> operands)
      : in_(in), step_(step), operands_(operands) {}

  absl::StatusOr<BoundLaunch> Bound(const PlannedLaunch& launch) const {
    return launch.product ? BoundProduct(launch) : BoundKernel(launch);
  }

 private:
  absl::StatusOr<BoundLaunch> BoundProduct(const PlannedLaunch& launch) const {
    BoundLaunch out;
    out.product = launch.product.get();
    out.grid = out.block = {1, 1, 1};
    std::vector<CuAddress*> places = {&out.operands.a, &out.operands.b, &out.operands.c};
    if (out.product->form().bias) places.push_back(&out.operands.bias);
    if (out.product->workspace_bytes() > 0) places.push_back(&out.operands.workspace);
    if (launch.operands.size() != places.size())
      return Internal("'{}' takes {} operands, not {}", launch.name, places.size(),
                      launch.operands.size());
    for (size_t n = 0; n < places.size(); ++n) {
      FORGE_ASSIGN_OR_RETURN(*places[n], AddressOf(launch.operands[n]));
    }
    return out;
  }

  absl::StatusOr<BoundLaunch> BoundKernel(const PlannedLaunch& launch) const {
    BoundLaunch out;
    out.function = launch.loaded->function;
    out.shared_bytes = launch.loaded->shared_bytes;
    const codegen::Kernel& kernel = *launch.loaded->kernel;
    std::copy(kernel.workgroup.begin(), kernel.workgroup.end(), out.block.begin());
    const auto pointers = static_cast<size_t>(launch.loaded->operands);
    if (pointers > launch.operands.size())
      return Internal("kernel '{}' takes {} operands of {}", launch.name, pointers,
                      launch.operands.size());
    for (size_t n = 0; n < pointers; ++n) {
      FORGE_ASSIGN_OR_RETURN(const CuAddress address, AddressOf(launch.operands[n]));
      out.arguments.push_back(address);
    }
    for (const codegen::LaunchNumber& n : launch.scalars) {
      FORGE_ASSIGN_OR_RETURN(const int64_t v, NumberOf(n));
      if (v < INT32_MIN || v > INT32_MAX)
        return OutOfRange("kernel '{}' is given {}, which is not an i32", launch.name, v);
      const auto word = static_cast<int32_t>(v);
      std::memcpy(&out.arguments.emplace_back(0), &word, sizeof(word));
    }
    const std::array<int64_t, 3> most = in_.context->caps().max_grid();
    for (size_t axis = 0; axis < out.grid.size(); ++axis) {
      FORGE_ASSIGN_OR_RETURN(const int64_t n, NumberOf(launch.grid[axis]));
      if (n < 0 || n > most[axis])
        return OutOfRange("kernel '{}' needs {} workgroups along {}, but the device allows {}",
                          launch.name, n, "xyz"[axis], most[axis]);
      out.grid[axis] = static_cast<uint32_t>(n);
    }
    return out;
  }

  absl::StatusOr<int64_t> NumberOf(const codegen::LaunchNumber& n) const {
    if (n.index < 0) return n.constant;
    return step_.scalars[static_cast<size_t>(n.index)].Evaluate(in_.values);
  }

  absl::StatusOr<CuAddress> AddressOf(const codegen::LaunchOperand& o) const {
    if (o.step_operand >= operands_.size())
      return InvalidArgument("its program binds operand {}, but there are {}", o.step_operand,
                             operands_.size());
    const Range& r = operands_[o.step_operand];
    if (r.address == 0) return CuAddress{0};
    const uint64_t bytes = o.bytes == 0 && o.offset <= r.bytes ? r.bytes - o.offset : o.bytes;
    if (o.offset > r.bytes || bytes > r.bytes - o.offset)
      return OutOfRange("its program needs bytes {} to {} of operand {}, which has {}", o.offset,
                        o.offset + bytes, o.step_operand, r.bytes);
    return r.address + o.offset;
  }

  const LaunchListInput& in_;
  const Step& step_;
  std::span<const Range> operands_;
};

absl::StatusOr<BoundStep> BindStep(const LaunchListInput& in, const Step& step) {
  std::vector<Range> operands;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    absl::StatusOr<Range> bound = Bind(in, step.operands[i]);
    if (!bound.ok()) return Annotate(bound.status(), fmt::format("operand {}", i));
    operands.push_back(*bound);
  }
  BoundStep out;
  if (step.program == nullptr) {
    FORGE_ASSIGN_OR_RETURN(out.copy, CopyOf(operands));
    return out;
  }
  // Which CudaDevice::Record has made sure of.
  const auto& program = static_cast<const CudaProgram&>(*step.program);
  if (step.scalars.size() != program.scalars().size())
    return InvalidArgument("it has {} scalars, but its program needs {}", step.scalars.size(),
                           program.scalars().size());
  const LaunchBinder binder(in, step, operands);
  for (const PlannedLaunch& launch : program.launches()) {
    FORGE_ASSIGN_OR_RETURN(BoundLaunch bound, binder.Bound(launch));
    // A grid without blocks has no work, and the driver refuses it.
    if (std::find(bound.grid.begin(), bound.grid.end(), 0u) == bound.grid.end())
      out.launches.push_back(std::move(bound));
  }
  return out;
}

}  // namespace

absl::StatusOr<LaunchListRef> LaunchList::Make(const LaunchListInput& input) {
  auto list = std::make_shared<LaunchList>();
  for (const Step& step : input.steps) {
    absl::StatusOr<BoundStep> bound = BindStep(input, step);
    if (!bound.ok()) return Annotate(bound.status(), step.label);
    bound->label = step.label;
    list->steps_.push_back(*std::move(bound));
    if (step.program) list->programs_.push_back(step.program);
  }
  return LaunchListRef(std::move(list));
}

absl::StatusOr<LaunchListRef> LaunchList::OfCopy(const Device::CopyRange& r, const CudaBuffer& from,
                                                 const CudaBuffer& to) {
  const auto inside = [&](const CudaBuffer& b, uint64_t at) {
    return at <= b.size() && r.bytes <= b.size() - at;
  };
  if (!inside(from, r.at) || !inside(to, r.to_at))
    return OutOfRange("a copy of {} bytes from {} of {} to {} of {} exceeds its buffers", r.bytes,
                      r.at, from.size(), r.to_at, to.size());
  const uint64_t distance = r.at > r.to_at ? r.at - r.to_at : r.to_at - r.at;
  if (&from == &to && distance < r.bytes)
    return InvalidArgument("a copy of {} bytes overlaps itself", r.bytes);
  auto list = std::make_shared<LaunchList>();
  BoundStep step;
  step.label = "copy";
  if (r.bytes > 0) step.copy = BoundCopy{from.address() + r.at, to.address() + r.to_at, r.bytes};
  list->steps_.push_back(std::move(step));
  return LaunchListRef(std::move(list));
}

size_t LaunchList::launches() const {
  size_t n = 0;
  for (const BoundStep& s : steps_) n += s.launches.size() + (s.copy ? 1 : 0);
  return n;
}

absl::Status LaunchList::Launch(Context& context, CuStream stream, const BoundStep& step) {
  const DriverApi& api = context.api();
  if (step.copy)
    return Annotate(
        context.Check(api.copy(step.copy->to, step.copy->from, step.copy->bytes, stream),
                      "cuMemcpyAsync"),
        step.label);
  for (const BoundLaunch& l : step.launches) {
    if (l.product != nullptr) {
      FORGE_RETURN_IF_ERROR(Annotate(l.product->Launch(stream, l.operands), step.label));
      continue;
    }
    std::vector<void*> arguments;
    for (const uint64_t& word : l.arguments) arguments.push_back(const_cast<uint64_t*>(&word));
    const CuResult r =
        api.launch(l.function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
                   l.shared_bytes, stream, arguments.data(), nullptr);
    if (r != kCuSuccess) return Annotate(context.Check(r, "cuLaunchKernel"), step.label);
  }
  return absl::OkStatus();
}

}  // namespace forge::cuda
