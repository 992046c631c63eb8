// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/submission/queue.h"

#include <algorithm>

namespace forge::vk {
namespace {

constexpr size_t kMostErrors = 256;  // results of failed jobs that are remembered
constexpr size_t kPiecesInFlight = 2;
constexpr std::chrono::milliseconds kLook{20};  // how often a waiting feeder looks at `cancel`

absl::Status Timeout() { return absl::DeadlineExceededError("the device is still at work"); }

}  // namespace

void Queue::Close() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (feeder_.joinable()) feeder_.join();
  Trash trash;
  std::lock_guard lock(mutex_);
  if (!jobs_.empty() && context_->Health().ok()) context_->fn.vkQueueWaitIdle(context_->queue());
  Poll(trash);
  while (!jobs_.empty()) {
    if (jobs_.front()->status.ok()) jobs_.front()->status = Aborted("the device was closed");
    Finish(trash);
  }
}

absl::Status Queue::SubmitPieces(State& s, size_t count) {
  if (count == 0) return absl::OkStatus();
  FORGE_ASSIGN_OR_RETURN(Signal signal,
                         signals_.Submit(std::span(s.pieces).subspan(s.given, count)));
  s.given += count;
  s.signals.push_back(std::move(signal));
  return absl::OkStatus();
}

absl::StatusOr<Point> Queue::Submit(Job job, std::span<const Point> wait) {
  FORGE_RETURN_IF_ERROR(context_->Health());
  Trash trash;
  std::lock_guard lock(mutex_);
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
  for (const RecordingRef& r : {state->job.parameters, state->job.recording})
    if (r) state->pieces.insert(state->pieces.end(), r->pieces().begin(), r->pieces().end());
  jobs_.push_back(state);
  const bool at_once = state->job.cancel == nullptr || state->pieces.size() <= 1;
  const Point point{shared_from_this(), state->value};
  if (feeding_.empty() && state->job.others.empty() && at_once) {
    state->status = SubmitPieces(*state, state->pieces.size());
    state->submitted = true;
    if (!state->status.ok()) return state->status;
    return point;
  }
  if (!feeder_.joinable()) {
    try {
      feeder_ = std::thread([this] { Feed(); });
    } catch (const std::system_error& e) {
      state->status = ResourceExhausted("cannot start the thread of the queue: {}", e.what());
      state->submitted = true;
      return state->status;
    }
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
    FeedOne(state, lock);
    state->submitted = true;
    feeding_.pop_front();
    changed_.notify_all();
  }
}

bool Queue::IsCancelled(const State& s) const {
  return stop_ || (s.job.cancel != nullptr && s.job.cancel->load(std::memory_order_relaxed));
}

absl::Status Queue::WaitForOthers(const State& s, std::unique_lock<std::mutex>& lock) const {
  for (const Point& p : s.job.others) {
    while (true) {
      if (IsCancelled(s)) return Aborted("cancelled while waiting for another timeline");
      lock.unlock();
      const absl::Status reached =
          p.timeline->Wait(p.value, std::chrono::nanoseconds(kLook).count());
      lock.lock();
      if (reached.ok()) break;
      if (!absl::IsDeadlineExceeded(reached)) return Annotate(reached, "what it waited for");
    }
  }
  return absl::OkStatus();
}

void Queue::FeedOne(const StateRef& s, std::unique_lock<std::mutex>& lock) {
  const std::atomic<bool>* cancel = s->job.cancel;
  const size_t pieces = s->pieces.size();
  s->status = WaitForOthers(*s, lock);
  while (s->status.ok() && s->given < pieces) {
    if (IsCancelled(*s)) {
      s->status = Aborted("cancelled before piece {} of {}", s->given + 1, pieces);
      return;
    }
    if (cancel != nullptr && s->given >= kPiecesInFlight) {
      const Signal before = s->signals[s->given - kPiecesInFlight];
      lock.unlock();
      const absl::Status done = signals_.Wait(before, kLook);
      lock.lock();
      if (absl::IsDeadlineExceeded(done)) continue;
      if (!done.ok()) s->status = done;
      if (!s->status.ok()) return;
      // A cancel that came while the device worked is seen before more work is handed over.
      if (IsCancelled(*s)) continue;
    }
    s->status = SubmitPieces(*s, cancel == nullptr ? pieces : 1);
  }
}

void Queue::Poll(Trash& trash) {
  while (!jobs_.empty() && jobs_.front()->submitted) {
    State& s = *jobs_.front();
    absl::Status done = context_->Health();
    if (done.ok() && !s.signals.empty()) {
      const absl::StatusOr<bool> reached = signals_.Reached(s.signals.back());
      if (reached.ok() && !*reached) return;
      done = reached.status();
    }
    if (s.status.ok()) s.status = done;
    for (const VulkanBufferRef& b : s.job.readbacks)
      if (s.status.ok()) s.status = b->Invalidate();
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
  std::lock_guard lock(mutex_);
  Poll(trash);
  return value <= finished_.load(std::memory_order_relaxed);
}

absl::Status Queue::Wait(uint64_t value, int64_t nanoseconds) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  constexpr std::chrono::nanoseconds kForever = std::chrono::hours(24 * 365);
  std::chrono::nanoseconds most(nanoseconds);
  if (most < most.zero() || most > kForever) most = kForever;
  const auto deadline = now() + most;
  while (true) {
    Trash trash;
    Signal last;  // of what was submitted up to the point
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
        if (!changed_.wait_until(lock, deadline, submitted)) return Timeout();
        continue;
      }
      for (auto s = jobs_.begin(); s <= at; ++s)
        if (!(*s)->signals.empty()) last = (*s)->signals.back();
    }
    const absl::Status done = signals_.Wait(last, deadline - now());
    if (absl::IsDeadlineExceeded(done)) return done;
    if (!done.ok() && !absl::IsAborted(done)) return done;
  }
}

}  // namespace forge::vk
