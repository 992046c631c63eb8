// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/submission/queue.h"

#include <algorithm>

namespace forge::cuda {
namespace {

constexpr size_t kMostErrors = 256;             // results of failed jobs that are remembered
constexpr size_t kStepsInFlight = 8;            // of a job that may be cancelled
constexpr std::chrono::milliseconds kLook{20};  // how often a waiting feeder looks at `cancel`
constexpr std::chrono::microseconds kPoll{50};
constexpr std::chrono::nanoseconds kForever = std::chrono::hours(24 * 365);

using Clock = std::chrono::steady_clock;

absl::Status Timeout() { return absl::DeadlineExceededError("the device is still at work"); }

}  // namespace

absl::StatusOr<std::shared_ptr<Queue>> Queue::Create(const ContextRef& context, NvtxRef nvtx) {
  std::shared_ptr<Queue> q(new Queue(context, std::move(nvtx)));
  if (!context->facts().has_driver) return q;
  const Context::Current current(*context);
  CuStream stream = nullptr;
  FORGE_RETURN_IF_ERROR(context->Check(context->api().create_stream(&stream, kCuStreamNonBlocking),
                                       "cuStreamCreate"));
  q->stream_ = OwnedStream(context, stream);
  return q;
}

void Queue::Close() {
  stop_ = true;
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  if (feeder_.joinable()) feeder_.join();
  Trash trash;
  const std::lock_guard lock(mutex_);
  if (!jobs_.empty() && stream_ && context_->Health().ok()) {
    const Context::Current current(*context_);
    context_->api().synchronize_stream(stream_.get());
  }
  Poll(trash);
  while (!jobs_.empty()) {
    if (jobs_.front()->status.ok()) jobs_.front()->status = Aborted("the device was closed");
    Finish(trash);
  }
}

absl::StatusOr<OwnedEvent> Queue::MakeEvent(unsigned flags) {
  CuEvent event = nullptr;
  FORGE_RETURN_IF_ERROR(
      context_->Check(context_->api().create_event(&event, flags), "cuEventCreate"));
  return OwnedEvent(context_, event);
}

absl::Status Queue::Hand(State& s, size_t step) {
  const DriverApi& api = context_->api();
  const Nvtx::Range range(nvtx_.get(), s.job.list->steps()[step].label);
  const auto record = [&](int which) {
    if (s.job.times == nullptr) return absl::OkStatus();
    return context_->Check(api.record_event((*s.job.times)[step][which].get(), stream_.get()),
                           "cuEventRecord");
  };
  FORGE_RETURN_IF_ERROR(record(0));
  FORGE_RETURN_IF_ERROR(LaunchList::Launch(*context_, stream_.get(), s.job.list->steps()[step]));
  return record(1);
}

absl::StatusOr<OwnedGraphExec> Queue::Capture(const LaunchList& list) {
  const std::lock_guard lock(capture_mutex_);
  const Context::Current current(*context_);
  const DriverApi& api = context_->api();
  if (!capture_) {
    CuStream stream = nullptr;
    FORGE_RETURN_IF_ERROR(
        context_->Check(api.create_stream(&stream, kCuStreamNonBlocking), "cuStreamCreate"));
    capture_ = OwnedStream(context_, stream);
  }
  FORGE_RETURN_IF_ERROR(context_->Check(api.begin_capture(capture_.get(), kCuCaptureThreadLocal),
                                        "cuStreamBeginCapture"));
  absl::Status recorded;
  for (const BoundStep& step : list.steps())
    if (recorded.ok()) recorded = LaunchList::Launch(*context_, capture_.get(), step);
  CuGraph graph = nullptr;
  const CuResult ended = api.end_capture(capture_.get(), &graph);
  const OwnedGraph owned(context_, graph);
  FORGE_RETURN_IF_ERROR(recorded);
  FORGE_RETURN_IF_ERROR(context_->Check(ended, "cuStreamEndCapture"));
  CuGraphExec exec = nullptr;
  FORGE_RETURN_IF_ERROR(
      context_->Check(api.instantiate_graph(&exec, graph, 0), "cuGraphInstantiate"));
  return OwnedGraphExec(context_, exec);
}

void Queue::HandSteps(State& s) {
  const size_t steps = s.job.list->steps().size();
  for (size_t i = 0; i < steps && s.status.ok(); ++i) {
    if (s.job.cancel != nullptr && i % kStepsInFlight == 0 && i > 0) {
      const CuResult r = context_->api().synchronize_stream(stream_.get());
      s.status = context_->Check(r, "cuStreamSynchronize");
    }
    if (IsCancelled(s)) s.status = Aborted("cancelled before step {} of {}", i + 1, steps);
    if (s.status.ok()) s.status = Hand(s, i);
  }
}

// What was handed over before a failure still runs, so the event is recorded in any case.
void Queue::HandOver(State& s) {
  const Context::Current current(*context_);
  if (s.job.graph != nullptr && !IsCancelled(s) && s.status.ok()) {
    const CuResult r = context_->api().launch_graph(s.job.graph->get(), stream_.get());
    s.status = context_->Check(r, "cuGraphLaunch");
  } else {
    HandSteps(s);
  }
  if (!context_->Health().ok()) return;
  absl::StatusOr<OwnedEvent> event = MakeEvent(kCuEventBlockingSync | kCuEventDisableTiming);
  absl::Status recorded = event.status();
  if (event.ok())
    recorded =
        context_->Check(context_->api().record_event(event->get(), stream_.get()), "cuEventRecord");
  if (recorded.ok()) {
    s.done = std::make_shared<OwnedEvent>(*std::move(event));
    return;
  }
  // Without an event the end is awaited here.
  context_->api().synchronize_stream(stream_.get());
  if (s.status.ok()) s.status = recorded;
}

absl::Status Queue::StartThread() {
  if (feeder_.joinable()) return absl::OkStatus();
  try {
    feeder_ = std::thread([this] { Feed(); });
  } catch (const std::system_error& e) {
    return ResourceExhausted("cannot start the thread of the queue: {}", e.what());
  }
  return absl::OkStatus();
}

absl::StatusOr<Point> Queue::Submit(Job job, std::span<const Point> wait) {
  FORGE_RETURN_IF_ERROR(context_->CanRun());
  Trash trash;
  const std::lock_guard lock(mutex_);
  for (const Point& p : wait) {
    if (p.timeline.get() != this) {
      if (p.timeline) job.others.push_back(p);
    } else if (p.value > last_value_) {
      return InvalidArgument("point {} was never submitted (the last one is {})", p.value,
                             last_value_);
    }
  }
  if (stop_) return Aborted("the device was closed");
  Poll(trash);
  auto state = std::make_shared<State>();
  state->job = std::move(job);
  state->value = ++last_value_;
  jobs_.push_back(state);
  const Point point{shared_from_this(), state->value};
  if (feeding_.empty() && state->job.others.empty() && state->job.cancel == nullptr) {
    HandOver(*state);
    state->submitted = true;
    if (!state->status.ok()) return state->status;
    return point;
  }
  if (absl::Status s = StartThread(); !s.ok()) {
    state->status = s;
    state->submitted = true;
    return s;
  }
  feeding_.push_back(state);
  changed_.notify_all();
  return point;
}

void Queue::Feed() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !feeding_.empty(); });
    if (feeding_.empty()) return;
    const StateRef state = feeding_.front();
    lock.unlock();
    FeedOne(*state);
    lock.lock();
    state->submitted = true;
    feeding_.pop_front();
    changed_.notify_all();
  }
}

bool Queue::IsCancelled(const State& s) const {
  return stop_ || (s.job.cancel != nullptr && s.job.cancel->load(std::memory_order_relaxed));
}

absl::Status Queue::WaitForOthers(const State& s) const {
  for (const Point& p : s.job.others) {
    while (true) {
      if (IsCancelled(s)) return Aborted("cancelled while waiting for another timeline");
      const absl::Status reached =
          p.timeline->Wait(p.value, std::chrono::nanoseconds(kLook).count());
      if (reached.ok()) break;
      if (!absl::IsDeadlineExceeded(reached)) return Annotate(reached, "what it waited for");
    }
  }
  return absl::OkStatus();
}

void Queue::FeedOne(State& s) {
  s.status = WaitForOthers(s);
  if (s.status.ok()) HandOver(s);
}

void Queue::Poll(Trash& trash) {
  if (jobs_.empty()) return;
  const Context::Current current(*context_);
  while (!jobs_.empty() && jobs_.front()->submitted) {
    State& s = *jobs_.front();
    absl::Status done = context_->Health();
    if (done.ok() && s.done) {
      const CuResult r = context_->api().query_event(s.done->get());
      if (r == kCuNotReady) return;
      done = context_->Check(r, "a kernel or copy");
    }
    if (s.status.ok()) s.status = done;
    Finish(trash);
  }
}

void Queue::Finish(Trash& trash) {
  const State& s = *jobs_.front();
  if (!s.status.ok()) {
    if (errors_.size() == kMostErrors) errors_.erase(errors_.begin());
    errors_[s.value] = s.status;
  }
  finished_.store(s.value, std::memory_order_release);
  trash.push_back(std::move(jobs_.front()));
  jobs_.pop_front();
}

absl::Status Queue::ResultOf(uint64_t value) const {
  const auto error = errors_.find(value);
  return error == errors_.end() ? absl::OkStatus() : error->second;
}

bool Queue::Reached(uint64_t value) {
  if (value <= finished_.load(std::memory_order_acquire)) return true;
  Trash trash;
  const std::lock_guard lock(mutex_);
  Poll(trash);
  return value <= finished_.load(std::memory_order_relaxed);
}

// The driver waits without a limit only.
absl::Status Queue::WaitForEvent(const OwnedEvent& event, Clock::time_point until) {
  const Context::Current current(*context_);
  if (until - Clock::now() > kForever / 2) {
    context_->Check(context_->api().synchronize_event(event.get()), "a kernel or copy")
        .IgnoreError();  // Poll will see it
    return absl::OkStatus();
  }
  while (context_->api().query_event(event.get()) == kCuNotReady) {
    if (Clock::now() >= until) return Timeout();
    std::this_thread::sleep_for(kPoll);
  }
  return absl::OkStatus();
}

absl::Status Queue::Wait(uint64_t value, int64_t nanoseconds) {
  std::chrono::nanoseconds most(nanoseconds);
  if (most < most.zero() || most > kForever) most = kForever;
  const auto until = Clock::now() + most;
  while (true) {
    Trash trash;
    std::shared_ptr<OwnedEvent> last;  // of what was submitted up to the point
    {
      std::unique_lock lock(mutex_);
      if (value > last_value_)
        return InvalidArgument("point {} was never submitted (the last one is {})", value,
                               last_value_);
      Poll(trash);
      if (value <= finished_.load(std::memory_order_relaxed)) return ResultOf(value);
      const auto at = std::find_if(jobs_.begin(), jobs_.end(),
                                   [&](const StateRef& s) { return s->value == value; });
      FORGE_CHECK(at != jobs_.end());
      const StateRef state = *at;
      const auto submitted = [&] { return state->submitted; };
      if (!submitted()) {
        if (!changed_.wait_until(lock, until, submitted)) return Timeout();
        continue;
      }
      for (auto s = jobs_.begin(); s <= at; ++s)
        if ((*s)->done) last = (*s)->done;
    }
    if (last) FORGE_RETURN_IF_ERROR(WaitForEvent(*last, until));
  }
}

}  // namespace forge::cuda
