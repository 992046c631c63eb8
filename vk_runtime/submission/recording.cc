// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/submission/recording.h"

#include <algorithm>
#include <cmath>

namespace forge::vk {
namespace {

constexpr VkPipelineStageFlags kWork =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr uint64_t kCopyPiece = 256ull << 20;  // bytes that one submission copies
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
constexpr VkAccessFlags kParameterReads =
    VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
constexpr uint64_t kScalarBytes = sizeof(uint32_t);

absl::StatusOr<uint64_t> Size(const ir::Dim& d, const ir::Bindings& values, const char* what) {
  FORGE_ASSIGN_OR_RETURN(const int64_t v, d.Evaluate(values));
  if (v < 0) return OutOfRange("its {} is {}", what, v);
  return static_cast<uint64_t>(v);
}

// Where the parameters of a launch lie, one launch behind the other: scalars, then the grid.
uint64_t ParameterBytes(const PlannedLaunch& l) {
  return l.pipeline->parameters
             ? AlignUp((l.scalars.size() + l.grid.size()) * kScalarBytes, kAlignment)
             : 0;
}

// Which VulkanDevice::Record has made sure of.
const VulkanProgram* AsVulkan(const Step& step) {
  return static_cast<const VulkanProgram*>(step.program.get());
}

}  // namespace

uint64_t ParameterBytes(std::span<const Step> steps) {
  uint64_t bytes = 0;
  for (const Step& s : steps)
    if (const VulkanProgram* program = AsVulkan(s))
      for (const PlannedLaunch& l : program->launches()) bytes += ParameterBytes(l);
  return bytes;
}

bool ServesAllStepValues(std::span<const Step> steps) {
  const auto serves = [](const Step& s) {
    const auto stays = [](const Operand& o) {
      return o.slot == Operand::kNoSlot || o.offset.is_constant();
    };
    if (!std::all_of(s.operands.begin(), s.operands.end(), stays)) return false;
    const VulkanProgram* program = AsVulkan(s);
    const auto varies = [&](const LaunchNumber& n) {
      const auto at = static_cast<size_t>(n.index);
      return n.index >= 0 && at < s.scalars.size() && !s.scalars[at].is_constant();
    };
    // A copy of as many bytes as a step value says is recorded for each.
    if (program == nullptr)
      return std::all_of(s.operands.begin(), s.operands.end(),
                         [](const Operand& o) { return o.bytes.is_constant(); });
    return std::all_of(program->launches().begin(), program->launches().end(),
                       [&](const PlannedLaunch& l) {
                         return l.pipeline->parameters ||
                                (std::none_of(l.scalars.begin(), l.scalars.end(), varies) &&
                                 std::none_of(l.grid.begin(), l.grid.end(), varies));
                       });
  };
  return std::all_of(steps.begin(), steps.end(), serves);
}

// Writes the command buffers of a Recording.
class Recorder {
 public:
  Recorder(const RecordInput& input, Recording& out)
      : in_(input),
        out_(out),
        context_(*input.context),
        fn_(context_.fn),
        budget_(static_cast<double>(context_.settings().piece_nanoseconds) * 1e-9) {}

  absl::Status Run() {
    FORGE_RETURN_IF_ERROR(MakePools());
    FORGE_RETURN_IF_ERROR(BeginPiece());
    if (out_.queries_)
      fn_.vkCmdResetQueryPool(commands_, out_.queries_.get(), 0,
                              2 * static_cast<uint32_t>(in_.steps.size()));
    for (size_t i = 0; i < in_.steps.size(); ++i) {
      const Step& step = in_.steps[i];
      label_ = step.label;
      label_of_ = &step.label;
      ShowLabel();
      if (out_.queries_) {
        // A step's time is its own only when nothing else runs.
        Barrier();
        if (i > 0) ++out_.barriers_;
        Stamp(2 * static_cast<uint32_t>(i));
      }
      FORGE_RETURN_IF_ERROR(Annotate(RecordStep(step), step.label));
      if (out_.queries_) Stamp(2 * static_cast<uint32_t>(i) + 1);
      HideLabel();
      label_.clear();
    }
    return EndPiece();
  }

  absl::Status RunCopy(const CopyBytes& copy) {
    FORGE_RETURN_IF_ERROR(MakePools());
    FORGE_RETURN_IF_ERROR(BeginPiece());
    FORGE_RETURN_IF_ERROR(
        RecordCopy({&copy.from, copy.at, copy.bytes}, {&copy.to, copy.to_at, copy.bytes}));
    return EndPiece();
  }

 private:
  // Bytes of a buffer that a step touches: an operand with its numbers filled in.
  struct Range {
    const VulkanBuffer* buffer = nullptr;  // null: absent or empty
    uint64_t offset = 0, bytes = 0;
    bool writes = false;

    // Must what makes one of them wait for the other? Two reads never meet.
    bool Conflicts(const Range& o) const {
      return buffer != nullptr && buffer == o.buffer && (writes || o.writes) &&
             offset < o.offset + o.bytes && o.offset < offset + bytes;
    }
  };

  struct Grid {
    std::array<uint32_t, 3> size{};
    bool indirect = false;  // known at each replay
  };

  // The operands of a launch, for each submission that it is cut into.
  struct Bound {
    std::vector<VkDescriptorBufferInfo> infos;
    std::vector<VkWriteDescriptorSet> writes;  // of `infos`
    VkDescriptorSet set = VK_NULL_HANDLE;      // that is written; null: they are pushed
  };

  absl::Status MakePools() {
    auto commands = Typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    commands.queueFamilyIndex = context_.family();
    FORGE_ASSIGN_OR_RETURN(out_.commands_, context_.Make<OwnedCommandPool>(commands));
    uint32_t sets = 0, descriptors = 0, parameters = 0;
    for (const Step& step : in_.steps) {
      const VulkanProgram* program = AsVulkan(step);
      if (program == nullptr) continue;
      for (const PlannedLaunch& l : program->launches()) {
        if (l.pipeline->pushed) continue;
        ++sets;
        descriptors += static_cast<uint32_t>(l.operands.size());
        parameters += l.pipeline->parameters ? 1 : 0;
      }
    }
    if (sets != 0) {
      const VkDescriptorPoolSize sizes[] = {
          {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(descriptors, 1u)},
          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, parameters}};
      auto info = Typed<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
      info.maxSets = sets;
      info.poolSizeCount = parameters == 0 ? 1 : 2;
      info.pPoolSizes = sizes;
      FORGE_ASSIGN_OR_RETURN(out_.descriptors_, context_.Make<OwnedDescriptorPool>(info));
    }
    const bool can_stamp = context_.queries().queues[context_.family()].timestampValidBits != 0;
    if (!in_.timestamps || !can_stamp || in_.steps.empty()) return absl::OkStatus();
    auto info = Typed<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2 * static_cast<uint32_t>(in_.steps.size());
    FORGE_ASSIGN_OR_RETURN(out_.queries_, context_.Make<OwnedQueryPool>(info));
    return absl::OkStatus();
  }

  absl::Status BeginPiece() {
    auto info = Typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = out_.commands_.get();
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    FORGE_RETURN_IF_ERROR(
        context_.Check(fn_.vkAllocateCommandBuffers(context_.device, &info, &commands_),
                       "vkAllocateCommandBuffers"));
    auto begin = Typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    if (in_.overlaps) begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    FORGE_RETURN_IF_ERROR(
        context_.Check(fn_.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer"));
    // Everything submitted earlier comes first: so points of this device need no semaphore.
    if (in_.parameters == nullptr)
      Barrier();
    else
      Barrier(kReads | kWrites | kParameterReads, kWork | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT);
    piece_seconds_ = 0;
    ShowLabel();
    return absl::OkStatus();
  }

  absl::Status EndPiece() {
    HideLabel();
    Barrier(VK_ACCESS_HOST_READ_BIT, VK_PIPELINE_STAGE_HOST_BIT);
    FORGE_RETURN_IF_ERROR(context_.Check(fn_.vkEndCommandBuffer(commands_), "vkEndCommandBuffer"));
    out_.pieces_.push_back(commands_);
    return absl::OkStatus();
  }

  absl::Status CutPiece() {
    FORGE_RETURN_IF_ERROR(EndPiece());
    FORGE_RETURN_IF_ERROR(BeginPiece());
    touched_ = current_;  // the rest of what is cut comes behind the barrier
    return absl::OkStatus();
  }

  // Where step values are not known: all that the operand can have, and the buffer holds. Each
  // replay is checked.
  absl::StatusOr<uint64_t> MostBytes(const Operand& o, uint64_t offset,
                                     const VulkanBuffer* buffer) {
    if (!in_.values.empty() || o.bytes.is_constant() || buffer == nullptr ||
        offset > buffer->size())
      return Size(o.bytes, in_.values, "size");
    const auto held = static_cast<int64_t>(buffer->size() - offset);
    out_.parameters_.push_back({o.bytes, Parameter::kNoWord, 0, held, label_of_});
    return static_cast<uint64_t>(std::min(o.bytes.max(), held));
  }

  absl::StatusOr<Range> Bind(const Operand& o) {
    if (o.slot == Operand::kNoSlot) return Range{};
    FORGE_ASSIGN_OR_RETURN(const uint64_t offset, Size(o.offset, in_.values, "offset"));
    const VulkanBuffer* b = in_.slots[o.slot].get();
    FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, MostBytes(o, offset, b));
    if (bytes == 0) return Range{};
    if (b == nullptr) return InvalidArgument("slot {} is empty", o.slot);
    if (offset % kAlignment != 0)
      return InvalidArgument("its offset {} is not a multiple of {}", offset, kAlignment);
    if (offset > b->size() || bytes > b->size() - offset)
      return OutOfRange("bytes {} to {} lie outside a buffer of {}", offset, offset + bytes,
                        b->size());
    return Range{b, offset, bytes};
  }

  absl::Status RecordStep(const Step& step) {
    std::vector<Range> operands;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      absl::StatusOr<Range> bound = Bind(step.operands[i]);
      if (!bound.ok()) return Annotate(bound.status(), fmt::format("operand {}", i));
      operands.push_back(*bound);
    }
    if (step.program == nullptr) {
      if (operands.size() != 2)
        return InvalidArgument("a copy has 2 operands, not {}", operands.size());
      return RecordCopy(operands[0], operands[1]);
    }
    out_.programs_.push_back(step.program);
    return RecordProgram(step, *AsVulkan(step), operands);
  }

  absl::Status RecordCopy(const Range& from, const Range& to) {
    if (from.bytes != to.bytes)
      return InvalidArgument("it copies {} bytes to {}", from.bytes, to.bytes);
    if (from.bytes == 0) return absl::OkStatus();
    const Range touched[] = {from, {to.buffer, to.offset, to.bytes, true}};
    if (touched[0].Conflicts(touched[1])) {
      if (from.offset == to.offset) return absl::OkStatus();
      return InvalidArgument("it copies between overlapping ranges");
    }
    Fence(touched);
    for (uint64_t done = 0; done < from.bytes;) {
      if (done != 0) FORGE_RETURN_IF_ERROR(CutPiece());
      const auto a = from.buffer->At(from.offset + done), b = to.buffer->At(to.offset + done);
      const VkBufferCopy region = {
          .srcOffset = a.offset,
          .dstOffset = b.offset,
          .size = std::min({kCopyPiece, from.bytes - done, a.bytes, b.bytes})};
      fn_.vkCmdCopyBuffer(commands_, a.buffer, b.buffer, 1, &region);
      done += region.size;
    }
    return absl::OkStatus();
  }

  absl::Status RecordProgram(const Step& step, const VulkanProgram& program,
                             std::span<const Range> operands) {
    if (step.scalars.size() != program.scalars().size())
      return InvalidArgument("it has {} scalars, but its program needs {}", step.scalars.size(),
                             program.scalars().size());
    scalars_ = step.scalars;
    for (const PlannedLaunch& launch : program.launches())
      FORGE_RETURN_IF_ERROR(RecordLaunch(launch, operands));
    return absl::OkStatus();
  }

  absl::StatusOr<Range> Part(const LaunchOperand& o, std::span<const Range> operands) const {
    if (o.step_operand >= operands.size())
      return InvalidArgument("its program binds operand {}, but there are {}", o.step_operand,
                             operands.size());
    Range b = operands[o.step_operand];
    if (b.buffer == nullptr) return b;
    const uint64_t bytes = o.bytes == 0 && o.offset <= b.bytes ? b.bytes - o.offset : o.bytes;
    if (o.offset > b.bytes || bytes > b.bytes - o.offset)
      return OutOfRange("its program needs bytes {} to {} of operand {}, which has {}", o.offset,
                        o.offset + bytes, o.step_operand, b.bytes);
    b.offset += o.offset;
    b.bytes = bytes;
    b.writes = o.writes;
    return b;
  }

  ir::Dim ValueOf(const LaunchNumber& n) const {
    return n.index < 0 ? ir::Dim(n.constant) : scalars_[static_cast<size_t>(n.index)];
  }

  // The numbers of a launch in the parameter buffer, which replays fill.
  void AddParameters(const PlannedLaunch& launch) {
    auto word = static_cast<uint32_t>(parameters_at_ / kScalarBytes);
    for (const LaunchNumber& n : launch.scalars)
      out_.parameters_.push_back({ValueOf(n), word++, INT32_MIN, INT32_MAX, label_of_});
    for (size_t axis = 0; axis < launch.grid.size(); ++axis)
      out_.parameters_.push_back(
          {ValueOf(launch.grid[axis]), word++, 0, context_.caps().max_grid()[axis], label_of_});
  }

  absl::StatusOr<Grid> GridOf(const PlannedLaunch& launch) const {
    Grid grid;
    for (size_t axis = 0; axis < launch.grid.size(); ++axis) {
      const ir::Dim d = ValueOf(launch.grid[axis]);
      grid.indirect |= launch.pipeline->parameters && !d.is_constant();
      if (grid.indirect) continue;
      FORGE_ASSIGN_OR_RETURN(const int64_t n, d.Evaluate(in_.values));
      const int64_t most = context_.caps().max_grid()[axis];
      if (n < 0 || n > most)
        return OutOfRange("kernel '{}' needs {} workgroups along {}, but the device allows {}",
                          launch.name, n, "xyz"[axis], most);
      grid.size[axis] = static_cast<uint32_t>(n);
    }
    return grid;
  }

  absl::StatusOr<std::vector<int32_t>> Constants(const PlannedLaunch& launch) const {
    std::vector<int32_t> constants;
    if (launch.pipeline->parameters) return constants;
    for (const LaunchNumber& n : launch.scalars) {
      FORGE_ASSIGN_OR_RETURN(const int64_t v, ValueOf(n).Evaluate(in_.values));
      if (v < INT32_MIN || v > INT32_MAX)
        return OutOfRange("kernel '{}' is given {}, which is not an i32", launch.name, v);
      constants.push_back(static_cast<int32_t>(v));
    }
    return constants;
  }

  absl::Status RecordLaunch(const PlannedLaunch& launch, std::span<const Range> operands) {
    FORGE_ASSIGN_OR_RETURN(const Grid grid, GridOf(launch));
    FORGE_ASSIGN_OR_RETURN(const std::vector<int32_t> constants, Constants(launch));
    if (launch.pipeline->parameters) AddParameters(launch);
    std::vector<Range> bound;
    for (const LaunchOperand& o : launch.operands) {
      FORGE_ASSIGN_OR_RETURN(const Range b, Part(o, operands));
      bound.push_back(b);
    }
    Fence(bound);
    FORGE_ASSIGN_OR_RETURN(const Bound described, Describe(launch, bound));
    if (grid.indirect)
      DispatchIndirect(launch, described);
    else
      FORGE_RETURN_IF_ERROR(Dispatch(launch, described, grid.size, constants));
    parameters_at_ += ParameterBytes(launch);
    return absl::OkStatus();
  }

  // All that knows how operands are bound: see also PipelineStore::LayoutFor.
  absl::StatusOr<Bound> Describe(const PlannedLaunch& launch,
                                 std::span<const Range> operands) const {
    Bound bound;
    const size_t bindings = operands.size() + (launch.pipeline->parameters ? 1 : 0);
    bound.infos.resize(bindings);
    bound.writes.assign(bindings,
                        Typed<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET));
    if (!launch.pipeline->pushed) {
      FORGE_ASSIGN_OR_RETURN(bound.set, AllocateSet(launch));
    }
    const auto most = static_cast<uint64_t>(context_.caps().max_operand_bytes);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Range& o = operands[i];
      VkDescriptorBufferInfo& info = bound.infos[i];
      // An empty operand binds a few bytes that nothing reads; others end on a whole word.
      const VulkanBuffer& buffer = o.buffer == nullptr ? in_.nothing : *o.buffer;
      const VulkanBuffer::Place at = buffer.At(o.offset);
      const uint64_t bytes = o.buffer == nullptr ? at.bytes : (o.bytes + 15) / 16 * 16;
      if (o.bytes > at.bytes)
        return OutOfRange("kernel '{}' binds {} bytes, of which one allocation holds {}",
                          launch.name, o.bytes, at.bytes);
      info = {at.buffer, at.offset, std::min(bytes, at.bytes)};
      if (info.range > most)
        return OutOfRange("kernel '{}' binds {} bytes at once, but the device allows {}",
                          launch.name, info.range, most);
      VkWriteDescriptorSet& write = bound.writes[i];
      write.dstSet = bound.set;
      write.dstBinding = static_cast<uint32_t>(i);
      write.descriptorCount = 1;
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = &info;
    }
    if (launch.pipeline->parameters) DescribeParameters(launch, bound);
    if (bound.set != VK_NULL_HANDLE)
      fn_.vkUpdateDescriptorSets(context_.device, static_cast<uint32_t>(bound.writes.size()),
                                 bound.writes.data(), 0, nullptr);
    return bound;
  }

  void DescribeParameters(const PlannedLaunch& launch, Bound& bound) const {
    const auto at = in_.parameters->At(parameters_at_);
    bound.infos.back() = {at.buffer, at.offset,
                          std::max<uint64_t>(launch.scalars.size(), 1) * kScalarBytes};
    VkWriteDescriptorSet& write = bound.writes.back();
    write.dstSet = bound.set;
    write.dstBinding = codegen::kParameterBinding;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    write.pBufferInfo = &bound.infos.back();
  }

  absl::StatusOr<VkDescriptorSet> AllocateSet(const PlannedLaunch& launch) const {
    auto allocate =
        Typed<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
    allocate.descriptorPool = out_.descriptors_.get();
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &launch.pipeline->set_layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    FORGE_RETURN_IF_ERROR(
        context_.Check(fn_.vkAllocateDescriptorSets(context_.device, &allocate, &set),
                       "vkAllocateDescriptorSets"));
    return set;
  }

  void Use(const PlannedLaunch& launch, const Bound& bound) {
    const VkPipelineLayout layout = launch.pipeline->layout;
    fn_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, launch.pipeline->handle.get());
    if (launch.pipeline->pushed)
      fn_.vkCmdPushDescriptorSetKHR(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0,
                                    static_cast<uint32_t>(bound.writes.size()),
                                    bound.writes.data());
    else
      fn_.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1,
                                  &bound.set, 0, nullptr);
  }

  // As many workgroups as the parameter buffer says, uncut: how long they take is not known.
  void DispatchIndirect(const PlannedLaunch& launch, const Bound& bound) {
    Use(launch, bound);
    const auto at = in_.parameters->At(parameters_at_ + launch.scalars.size() * kScalarBytes);
    fn_.vkCmdDispatchIndirect(commands_, at.buffer, at.offset);
  }

  // Dispatches the grid in parts along its longest axis, cutting submissions where the time budget
  // is spent.
  absl::Status Dispatch(const PlannedLaunch& launch, const Bound& bound,
                        const std::array<uint32_t, 3>& size, std::span<const int32_t> constants) {
    const size_t axis = std::max_element(size.begin(), size.end()) - size.begin();
    const auto parts =
        static_cast<int64_t>(std::min(std::ceil(launch.seconds / budget_), double{INT32_MAX}));
    const auto part =
        parts > 1 ? static_cast<uint32_t>((size[axis] + parts - 1) / parts) : size[axis];
    const double seconds = launch.seconds * (static_cast<double>(part) / size[axis]);
    Use(launch, bound);
    for (uint32_t at = 0; at < size[axis]; at += part) {
      if (piece_seconds_ > 0 && piece_seconds_ + seconds > budget_) {
        FORGE_RETURN_IF_ERROR(CutPiece());
        Use(launch, bound);
      }
      std::array<uint32_t, 3> base{}, count = size;
      base[axis] = at;
      count[axis] = std::min(part, size[axis] - at);
      if (!constants.empty())
        fn_.vkCmdPushConstants(commands_, launch.pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                               static_cast<uint32_t>(constants.size_bytes()), constants.data());
      fn_.vkCmdDispatchBase(commands_, base[0], base[1], base[2], count[0], count[1], count[2]);
      piece_seconds_ += seconds;
    }
    return absl::OkStatus();
  }

  void Fence(std::span<const Range> next) {
    const bool conflicts = std::any_of(next.begin(), next.end(), [&](const Range& a) {
      return std::any_of(touched_.begin(), touched_.end(),
                         [&](const Range& b) { return a.Conflicts(b); });
    });
    if (conflicts) {
      Barrier();
      ++out_.barriers_;
    }
    touched_.insert(touched_.end(), next.begin(), next.end());
    current_.assign(next.begin(), next.end());
  }

  // What comes next waits for all that came before.
  void Barrier(VkAccessFlags to = kReads | kWrites, VkPipelineStageFlags before = kWork) {
    auto memory = Typed<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    memory.srcAccessMask = kWrites;
    memory.dstAccessMask = to;
    fn_.vkCmdPipelineBarrier(commands_, kWork, before, 0, 1, &memory, 0, nullptr, 0, nullptr);
    touched_.clear();
  }

  void Stamp(uint32_t query) {
    fn_.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, out_.queries_.get(),
                            query);
  }

  // A label spans the pieces that a step is cut into, and begins and ends in each of them: drivers
  // crash at an end without a beginning.
  void ShowLabel() {
    if (label_.empty() || !context_.instance().shows_labels()) return;
    auto info = Typed<VkDebugUtilsLabelEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT);
    info.pLabelName = label_.c_str();
    vkCmdBeginDebugUtilsLabelEXT(commands_, &info);
  }

  void HideLabel() {
    if (!label_.empty() && context_.instance().shows_labels())
      vkCmdEndDebugUtilsLabelEXT(commands_);
  }

  const RecordInput& in_;
  Recording& out_;
  const Context& context_;
  const VolkDeviceTable& fn_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<Range> touched_;  // since the last barrier
  std::vector<Range> current_;  // by the launch or copy in progress
  const double budget_;         // seconds of one submission
  std::string label_;           // of the step in progress
  const std::string* label_of_ = nullptr;
  std::span<const ir::Dim> scalars_;  // of the step in progress
  uint64_t parameters_at_ = 0;        // of the launch in progress, bytes
  double piece_seconds_ = 0;          // estimated work in the open piece
};

absl::StatusOr<RecordingRef> Recording::Make(const RecordInput& input) {
  std::shared_ptr<Recording> r(new Recording);
  r->context_ = input.context;
  r->steps_ = static_cast<uint32_t>(input.steps.size());
  FORGE_RETURN_IF_ERROR(Recorder(input, *r).Run());
  return r;
}

absl::StatusOr<RecordingRef> Recording::OfCopy(const ContextRef& context, const CopyBytes& copy) {
  const auto inside = [&](const VulkanBuffer& b, uint64_t at) {
    return at <= b.size() && copy.bytes <= b.size() - at;
  };
  if (!inside(copy.from, copy.at) || !inside(copy.to, copy.to_at))
    return OutOfRange("a copy of {} bytes from {} of {} to {} of {} exceeds its buffers",
                      copy.bytes, copy.at, copy.from.size(), copy.to_at, copy.to.size());
  const uint64_t distance = copy.at > copy.to_at ? copy.at - copy.to_at : copy.to_at - copy.at;
  if (&copy.from == &copy.to && distance < copy.bytes)
    return InvalidArgument("a copy of {} bytes overlaps itself", copy.bytes);
  std::shared_ptr<Recording> r(new Recording);
  r->context_ = context;
  const ir::Bindings none;
  const RecordInput input{.context = context,
                          .steps = {},
                          .slots = {},
                          .values = none,
                          .nothing = copy.from,
                          .parameters = nullptr,
                          .timestamps = false,
                          .overlaps = false};
  FORGE_RETURN_IF_ERROR(Recorder(input, *r).RunCopy(copy));
  return r;
}

absl::StatusOr<std::vector<StepTime>> Recording::Times() const {
  const uint32_t bits = context_->queries().queues[context_->family()].timestampValidBits;
  if (bits == 0) return Unimplemented("the compute queue of this device has no timestamps");
  std::vector<StepTime> times(steps_);
  if (!queries_) return InvalidArgument("the segment was recorded without timestamps");
  std::vector<uint64_t> ticks(2 * size_t{steps_});
  FORGE_RETURN_IF_ERROR(context_->Check(
      context_->fn.vkGetQueryPoolResults(context_->device, queries_.get(), 0, 2 * steps_,
                                         ticks.size() * sizeof(uint64_t), ticks.data(),
                                         sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
      "vkGetQueryPoolResults"));
  const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  const double period = context_->limits().timestampPeriod;  // nanoseconds of a tick
  const auto nanoseconds = [&](uint64_t t) {
    return static_cast<uint64_t>(static_cast<double>(t & mask) * period);
  };
  for (uint32_t i = 0; i < steps_; ++i)
    times[i] = {nanoseconds(ticks[2 * i]), nanoseconds(ticks[2 * i + 1])};
  return times;
}

}  // namespace forge::vk
