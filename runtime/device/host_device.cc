// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host_device.h"

#include <cstring>
#include <system_error>

#include "base/platform.h"

namespace forge {
namespace {

constexpr size_t kMostFailures = 256;             // failed work whose status is remembered
constexpr int64_t kLookNanoseconds = 20'000'000;  // how often a waiting worker looks at `cancel`
constexpr auto kForever = std::chrono::hours(24 * 365);

class HostBuffer final : public Buffer {
 public:
  HostBuffer(Memory kind, uint64_t bytes)
      : kind_(kind), bytes_(bytes), data_(AllocateBytes(bytes + kLineBytes)) {}
  explicit HostBuffer(Bytes imported)
      : kind_(Memory::kDevice), bytes_(imported.size()), imported_(std::move(imported)) {}
  HostBuffer(const HostBuffer&) = delete;
  uint64_t size() const override { return bytes_; }
  Memory memory() const override { return kind_; }
  bool valid() const { return data_ != nullptr || imported_.data() != nullptr || bytes_ == 0; }
  bool imported() const { return data_ == nullptr; }
  // Imported bytes are only ever read: a plan never makes them an operand that is written.
  uint8_t* data() const {
    if (lent_) return lent_;
    return data_ ? data_.get() : const_cast<uint8_t*>(imported_.data());
  }
  void Lend(uint8_t* memory) { lent_ = memory; }

 private:
  Memory kind_;
  uint64_t bytes_;
  std::shared_ptr<uint8_t> data_;
  uint8_t* lent_ = nullptr;
  Bytes imported_;
};

struct BoundStep {
  std::shared_ptr<const HostProgram> program;  // null: copy
  struct Range {
    uint32_t slot;
    uint64_t offset, bytes;
  };
  std::vector<Range> operands;
  std::vector<ir::Dim> scalars;
  std::string label;
};

class HostSegment final : public Segment {
 public:
  std::vector<BoundStep> steps;
  std::vector<ir::SymbolRef> symbols;
  bool timestamps = false;
  std::vector<StepTime> times;  // of the last finished run
  // Of the step that runs: kept from run to run, as its memory is.
  std::vector<std::span<uint8_t>> operands;
  std::vector<int64_t> scalars;
};

absl::Status RunStep(HostSegment& segment, const BoundStep& step, std::span<const BufferRef> slots,
                     const ir::Bindings& values) {
  std::vector<std::span<uint8_t>>& operands = segment.operands;
  operands.clear();
  for (const auto& r : step.operands) {
    if (r.slot == Operand::kNoSlot) {
      operands.emplace_back();
      continue;
    }
    operands.emplace_back(static_cast<HostBuffer&>(*slots[r.slot]).data() + r.offset, r.bytes);
  }
  if (!step.program) {
    std::memmove(operands[1].data(), operands[0].data(),
                 std::min(operands[0].size(), operands[1].size()));
    return absl::OkStatus();
  }
  segment.scalars.clear();
  for (const ir::Dim& d : step.scalars) {
    FORGE_ASSIGN_OR_RETURN(int64_t v, d.Evaluate(values));
    segment.scalars.push_back(v);
  }
  return step.program->Run({operands, segment.scalars});
}

absl::Status RunSegment(HostSegment& segment, std::span<const BufferRef> slots,
                        std::span<const int64_t> step_values, const std::atomic<bool>* cancel) {
  ir::Bindings values;
  for (size_t i = 0; i < segment.symbols.size(); ++i) values[segment.symbols[i]] = step_values[i];
  if (segment.timestamps) segment.times.assign(segment.steps.size(), {});
  for (size_t i = 0; i < segment.steps.size(); ++i) {
    FORGE_RETURN_IF_ERROR(CheckCancelled(cancel));
    const int64_t begin = segment.timestamps ? NowNanoseconds() : 0;
    absl::Status s = RunStep(segment, segment.steps[i], slots, values);
    if (!s.ok()) return Annotate(s, segment.steps[i].label);
    if (segment.timestamps)
      segment.times[i] = {static_cast<uint64_t>(begin), static_cast<uint64_t>(NowNanoseconds())};
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t HostTimeline::Promise() {
  std::lock_guard lock(mutex_);
  return ++promised_;
}

void HostTimeline::Finish(uint64_t value, const absl::Status& s) {
  {
    std::lock_guard lock(mutex_);
    if (!s.ok()) failed_[value] = s;
    if (failed_.size() > kMostFailures) failed_.erase(failed_.begin());
    done_ = value;
  }
  changed_.notify_all();
}

bool HostTimeline::Reached(uint64_t value) {
  std::lock_guard lock(mutex_);
  return done_ >= value;
}

absl::Status HostTimeline::Wait(uint64_t value, int64_t nanoseconds) {
  std::unique_lock lock(mutex_);
  if (value > promised_)
    return InvalidArgument("point {} was never submitted (the last one is {})", value, promised_);
  const auto limit = nanoseconds < 0 ? std::chrono::nanoseconds(kForever)
                                     : std::min<std::chrono::nanoseconds>(
                                           std::chrono::nanoseconds(nanoseconds), kForever);
  if (!changed_.wait_for(lock, limit, [&] { return done_ >= value; }))
    return absl::DeadlineExceededError("the device is still at work");
  const auto it = failed_.find(value);
  return it == failed_.end() ? absl::OkStatus() : it->second;
}

HostDevice::HostDevice(DeviceInfo info) : info_(std::move(info)), forks_(ForkCount()) {}

HostDevice::~HostDevice() {
  if (forks_ != ForkCount()) {
    // The worker is in the other process, and may hold what it uses.
    static_cast<void>(queue_.release());
    return;
  }
  {
    std::lock_guard lock(queue_->mutex);
    queue_->stop = true;
  }
  queue_->changed.notify_all();
  if (queue_->worker.joinable()) queue_->worker.join();
}

absl::Status HostDevice::Health() {
  if (forks_ == ForkCount()) return absl::OkStatus();
  return Aborted("{} was opened before this process was forked; open it again in the child process",
                 info_.id);
}

absl::Status HostDevice::WaitForOthers(const Job& job, const std::atomic<bool>* stop) {
  for (const Point& p : job.wait) {
    while (true) {
      const absl::Status s = p.timeline->Wait(p.value, kLookNanoseconds);
      if (s.ok()) break;
      if (!absl::IsDeadlineExceeded(s)) return Annotate(s, "what it waited for");
      if (!CheckCancelled(stop).ok() || !CheckCancelled(job.cancel).ok())
        return Aborted("cancelled while waiting for another timeline");
    }
  }
  return absl::OkStatus();
}

void HostDevice::Loop(Queue& queue) {
  std::unique_lock lock(queue.mutex);
  while (true) {
    queue.changed.wait(lock, [&] { return queue.stop || !queue.jobs.empty(); });
    if (queue.jobs.empty()) return;
    Job job = std::move(queue.jobs.front());
    queue.jobs.pop_front();
    lock.unlock();
    absl::Status s = WaitForOthers(job, &queue.stop);
    if (s.ok()) s = job.work();
    job.work = nullptr;  // releases buffers before anyone is told
    job.wait.clear();
    queue.timeline->Finish(job.value, s);
    lock.lock();
  }
}

absl::StatusOr<Point> HostDevice::Enqueue(Job job, std::span<const Point> wait) {
  FORGE_RETURN_IF_ERROR(Health());
  // Its own work is done in order.
  for (const Point& p : wait)
    if (p.timeline && p.timeline != queue_->timeline) job.wait.push_back(p);
  std::lock_guard lock(queue_->mutex);
  if (!queue_->worker.joinable()) {
    try {
      queue_->worker = std::thread([queue = queue_.get()] { Loop(*queue); });
    } catch (const std::system_error& e) {
      return ResourceExhausted("cannot start the thread of {}: {}", info_.id, e.what());
    }
  }
  const Point point{queue_->timeline, job.value = queue_->timeline->Promise()};
  queue_->jobs.push_back(std::move(job));
  queue_->changed.notify_all();
  return point;
}

absl::Status HostDevice::Run(const SegmentRef& segment, const SubmitArgs& args) {
  FORGE_RETURN_IF_ERROR(Health());
  // Libraries may keep threads for the calling one, which a fork has lost: a new thread has none.
  if (forks_ > 0) return Device::Run(segment, args);
  for (const Point& p : args.wait) {
    if (!p.timeline) continue;
    Job waiting{.work = {}, .wait = {p}, .cancel = args.cancel, .value = 0};
    FORGE_RETURN_IF_ERROR(WaitForOthers(waiting, nullptr));
  }
  return RunSegment(static_cast<HostSegment&>(*segment), args.slots, args.step_values, args.cancel);
}

bool HostDevice::Lend(Buffer& b, uint8_t* memory) {
  static_cast<HostBuffer&>(b).Lend(memory);
  return true;
}

absl::StatusOr<BufferRef> HostDevice::Allocate(Memory kind, uint64_t bytes) {
  if (bytes > largest_buffer())
    return ResourceExhausted("a buffer of {} bytes exceeds the limit of {}", bytes,
                             largest_buffer());
  auto buffer = std::make_shared<HostBuffer>(kind, bytes);
  if (!buffer->valid())
    return ResourceExhausted("no memory for {} bytes; {} bytes are available", bytes, MemoryLeft());
  return BufferRef(buffer);
}

absl::StatusOr<BufferRef> HostDevice::Import(const Bytes& bytes) {
  return BufferRef(std::make_shared<HostBuffer>(bytes));
}

absl::StatusOr<std::span<uint8_t>> HostDevice::Map(Buffer& b) {
  auto& buffer = static_cast<HostBuffer&>(b);
  if (buffer.imported()) return InvalidArgument("imported memory is read-only");
  return std::span<uint8_t>(buffer.data(), buffer.size());
}

absl::StatusOr<Point> HostDevice::Copy(const CopyRange& r, std::span<const Point> wait) {
  if (!r.from || !r.to) return InvalidArgument("a buffer of the copy is null");
  if (r.at > r.from->size() || r.bytes > r.from->size() - r.at || r.to_at > r.to->size() ||
      r.bytes > r.to->size() - r.to_at)
    return OutOfRange("a copy of {} bytes from {} to {} exceeds its buffers", r.bytes, r.at,
                      r.to_at);
  auto copy = [r] {
    std::memmove(static_cast<HostBuffer&>(*r.to).data() + r.to_at,
                 static_cast<const HostBuffer&>(*r.from).data() + r.at, r.bytes);
    return absl::OkStatus();
  };
  return Enqueue({.work = std::move(copy), .wait = {}, .cancel = nullptr, .value = 0}, wait);
}

uint64_t HostDevice::MemoryLeft() const { return FreeMemoryBytes(); }

absl::StatusOr<SegmentRef> HostDevice::Record(const SegmentSpec& spec) {
  auto segment = std::make_shared<HostSegment>();
  segment->symbols.assign(spec.step_symbols.begin(), spec.step_symbols.end());
  segment->timestamps = spec.timestamps;
  for (const Step& s : spec.steps) {
    BoundStep step{std::static_pointer_cast<const HostProgram>(s.program), {}, s.scalars, s.label};
    for (const Operand& o : s.operands) {
      if (o.slot == Operand::kNoSlot) {
        step.operands.push_back({Operand::kNoSlot, 0, 0});
        continue;
      }
      FORGE_ASSIGN_OR_RETURN(int64_t offset, o.offset.Evaluate({}));
      FORGE_ASSIGN_OR_RETURN(int64_t bytes, o.bytes.Evaluate({}));
      const uint64_t size = spec.slots[o.slot].bytes;
      if (offset < 0 || bytes < 0 || static_cast<uint64_t>(offset) > size ||
          static_cast<uint64_t>(bytes) > size - offset)
        return Internal("{}: an operand of {} bytes at {} exceeds its slot of {}", s.label, bytes,
                        offset, size);
      step.operands.push_back(
          {o.slot, static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes)});
    }
    segment->steps.push_back(std::move(step));
  }
  return SegmentRef(segment);
}

absl::StatusOr<Point> HostDevice::Submit(const SegmentRef& segment, const SubmitArgs& args) {
  auto s = std::static_pointer_cast<HostSegment>(segment);
  std::vector<BufferRef> slots(args.slots.begin(), args.slots.end());
  std::vector<int64_t> values(args.step_values.begin(), args.step_values.end());
  auto run = [s = std::move(s), slots = std::move(slots), values = std::move(values),
              cancel = args.cancel] { return RunSegment(*s, slots, values, cancel); };
  return Enqueue({.work = std::move(run), .wait = {}, .cancel = args.cancel, .value = 0},
                 args.wait);
}

absl::StatusOr<std::vector<StepTime>> HostDevice::Timestamps(const Segment& s) {
  return static_cast<const HostSegment&>(s).times;
}

}  // namespace forge
