// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/queue.h"

#include <algorithm>

namespace forge::vk {
namespace {

constexpr size_t kMostErrors = 256;  // results of failed jobs that are remembered
constexpr size_t kPiecesInFlight = 2;
constexpr uint64_t kLookNanoseconds = 20'000'000;  // how often a waiting feeder looks at `cancel`

}  // namespace

void Queue::Close() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (feeder_.joinable()) feeder_.join();
  if (clock_ && context_->Health().ok()) context_->fn.vkQueueWaitIdle(context_->queue());
  Trash trash;
  std::lock_guard lock(mutex_);
  Poll(trash);
  while (!jobs_.empty()) {
    if (jobs_.front()->status.ok()) jobs_.front()->status = Aborted("the device was closed");
    Finish(trash);
  }
}

absl::Status Queue::SubmitPiece(State& s) {
  FORGE_RETURN_IF_ERROR(clock_->Submit(s.job.pieces[s.next_piece], last_serial_ + 1));
  s.last_serial = ++last_serial_;
  ++s.next_piece;
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
  if (!clock_) {
    FORGE_ASSIGN_OR_RETURN(clock_, MakeClock(context_));
  }
  Poll(trash);
  auto state = std::make_shared<State>();
  state->job = std::move(job);
  state->value = ++last_value_;
  state->last_serial = last_serial_;
  jobs_.push_back(state);
  const bool at_once = state->job.cancel == nullptr || state->job.pieces.size() <= 1;
  const Point point{shared_from_this(), state->value};
  if (feeding_.empty() && state->job.others.empty() && at_once) {
    while (state->status.ok() && state->next_piece < state->job.pieces.size())
      state->status = SubmitPiece(*state);
    state->submitted = true;
    if (!state->status.ok()) return state->status;
    return point;
  }
  feeding_.push_back(state);
  if (!feeder_.joinable()) feeder_ = std::thread([this] { Feed(); });
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
      if (IsCancelled(s)) return Aborted("cancelled while it waited for another timeline");
      lock.unlock();
      const absl::Status reached = p.timeline->Wait(p.value, kLookNanoseconds);
      lock.lock();
      if (reached.ok()) break;
      if (!absl::IsDeadlineExceeded(reached)) return Annotate(reached, "what it waited for");
    }
  }
  return absl::OkStatus();
}

void Queue::FeedOne(const StateRef& s, std::unique_lock<std::mutex>& lock) {
  const std::atomic<bool>* cancel = s->job.cancel;
  const size_t pieces = s->job.pieces.size();
  s->status = WaitForOthers(*s, lock);
  s->last_serial = last_serial_;
  while (s->status.ok() && s->next_piece < pieces) {
    if (IsCancelled(*s)) {
      s->status = Aborted("cancelled before piece {} of {}", s->next_piece + 1, pieces);
      return;
    }
    if (cancel != nullptr && s->next_piece >= kPiecesInFlight) {
      // Serials of one job follow each other: nothing else is submitted while it is fed.
      const uint64_t before = s->last_serial - (kPiecesInFlight - 1);
      lock.unlock();
      const absl::Status done = clock_->Wait(before, kLookNanoseconds);
      lock.lock();
      if (absl::IsDeadlineExceeded(done)) continue;
      if (!done.ok()) s->status = done;
      if (!s->status.ok()) return;
      // A cancel that came while the device worked is seen before more work is handed over.
      if (IsCancelled(*s)) continue;
    }
    s->status = SubmitPiece(*s);
  }
}

void Queue::Poll(Trash& trash) {
  if (jobs_.empty()) return;
  absl::StatusOr<uint64_t> completed = clock_->Completed();
  if (absl::Status health = context_->Health(); !health.ok()) completed = health;
  while (!jobs_.empty() && jobs_.front()->submitted) {
    State& s = *jobs_.front();
    if (completed.ok() && s.last_serial > *completed) return;
    if (s.status.ok()) s.status = completed.status();
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
  constexpr auto kForever = std::chrono::hours(24 * 365);
  const auto deadline =
      now() + (nanoseconds < 0 ? std::chrono::nanoseconds(kForever)
                               : std::min<std::chrono::nanoseconds>(
                                     std::chrono::nanoseconds(nanoseconds), kForever));
  while (true) {
    Trash trash;
    uint64_t serial = 0;
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
      if (!state->submitted) {
        if (!changed_.wait_until(lock, deadline, [&] { return state->submitted; }))
          return absl::DeadlineExceededError("the device is still at work");
        continue;
      }
      serial = state->last_serial;
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - now());
    const absl::Status done =
        clock_->Wait(serial, static_cast<uint64_t>(std::max<int64_t>(left.count(), 0)));
    if (absl::IsDeadlineExceeded(done)) return done;
    if (!done.ok() && !absl::IsAborted(done)) return done;
  }
}

}  // namespace forge::vk
