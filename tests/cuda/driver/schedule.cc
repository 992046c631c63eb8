// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/driver/schedule.h"

#include <algorithm>

namespace forge::emulated {

Schedule& Schedule::Get() {
  static auto* const schedule = new Schedule;
  return *schedule;
}

TaskRef Schedule::Enqueue(Stream* stream, std::function<CUresult()> run,
                          std::vector<TaskRef> waits) {
  auto task = std::make_shared<Task>();
  task->run = std::move(run);
  task->waits = std::move(waits);
  if (stream->last != nullptr) task->waits.push_back(stream->last);
  if (stream == &legacy_) {
    for (const Stream* other : blocking_)
      if (other->last != nullptr) task->waits.push_back(other->last);
    task->waits.insert(task->waits.end(), orphans_.begin(), orphans_.end());
    orphans_.clear();
  } else if (stream->blocking) {
    if (legacy_.last != nullptr) task->waits.push_back(legacy_.last);
    if (std::find(blocking_.begin(), blocking_.end(), stream) == blocking_.end())
      blocking_.push_back(stream);
  }
  stream->last = task;
  pending_.push_back(task);
  wake_.notify_one();
  return task;
}

TaskRef Schedule::PickReady() {
  std::vector<size_t> ready;
  for (size_t i = 0; i < pending_.size(); ++i) {
    auto& waits = pending_[i]->waits;
    std::erase_if(waits, [](const TaskRef& w) { return w->done; });
    if (waits.empty()) ready.push_back(i);
  }
  if (ready.empty()) return nullptr;
  const size_t chosen = ready[random_() % ready.size()];
  TaskRef task = pending_[chosen];
  pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(chosen));
  return task;
}

// Work that nobody waits for happens now and then.
void Schedule::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (pending_.empty()) {
      wake_.wait(lock);
      continue;
    }
    if (demand_ == 0 && nudges_ == 0) {
      const auto pause = std::chrono::microseconds(random_() % 3000);
      wake_.wait_for(lock, pause, [&] { return demand_ > 0 || nudges_ > 0; });
      if (pending_.empty()) continue;
    }
    const TaskRef task = PickReady();
    if (task == nullptr) {
      wake_.wait(lock);
      continue;
    }
    nudges_ = std::max(nudges_ - 1, 0);
    running_ = task;
    lock.unlock();
    if (task->run && Device::Get().lost() == CUDA_SUCCESS) task->run();
    lock.lock();
    running_ = nullptr;
    task->done = true;
    task->run = nullptr;
    task->finished = std::chrono::steady_clock::now();
    finished_.notify_all();
  }
}

CUresult Schedule::Add(Stream* stream, GraphNode node) {
  std::lock_guard lock(mutex_);
  Stream* const s = Resolve(stream);
  if (s->capture == nullptr) {
    Enqueue(s, std::move(node.run), {});
    return CUDA_SUCCESS;
  }
  node.waits = s->capture_tail;
  node.index = s->capture->nodes.size();
  s->capture_tail = {s->capture->nodes.size()};
  s->capture->nodes.push_back(std::make_unique<GraphNode>(std::move(node)));
  return CUDA_SUCCESS;
}

CUresult Schedule::Record(Event* event, Stream* stream) {
  std::lock_guard lock(mutex_);
  Stream* const s = Resolve(stream);
  event->capture = s->capture;
  if (s->capture != nullptr)
    event->capture_tail = s->capture_tail;
  else
    event->recorded = Enqueue(s, nullptr, {});
  return CUDA_SUCCESS;
}

CUresult Schedule::Wait(Stream* stream, Event* event) {
  std::lock_guard lock(mutex_);
  Stream* const s = Resolve(stream);
  if (event->capture != nullptr) {
    if (s->capture != nullptr && s->capture != event->capture)
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (s->capture == nullptr) captured_streams_.push_back(s);  // The stream joins the capture.
    s->capture = event->capture;
    s->capture_tail.insert(s->capture_tail.end(), event->capture_tail.begin(),
                           event->capture_tail.end());
    return CUDA_SUCCESS;
  }
  if (s->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (event->recorded != nullptr) Enqueue(s, nullptr, {event->recorded});
  return CUDA_SUCCESS;
}

CUresult Schedule::Launch(const GraphExec& graph, Stream* stream) {
  std::lock_guard lock(mutex_);
  Stream* const s = Resolve(stream);
  if (s->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const TaskRef begin = Enqueue(s, nullptr, {});
  std::vector<TaskRef> tasks;
  for (const auto& node : graph.nodes) {
    auto task = std::make_shared<Task>();
    task->run = node->run;
    task->waits = {begin};
    for (const size_t i : node->waits) task->waits.push_back(tasks[i]);
    tasks.push_back(task);
    pending_.push_back(task);
  }
  Enqueue(s, nullptr, tasks);
  return CUDA_SUCCESS;
}

CUresult Schedule::WaitFor(std::unique_lock<std::mutex>& lock, const TaskRef& task) {
  if (task != nullptr) {
    ++demand_;
    wake_.notify_one();
    finished_.wait(lock, [&] { return task->done; });
    --demand_;
  }
  return Device::Get().lost();
}

CUresult Schedule::Synchronise(Stream* stream) {
  std::unique_lock lock(mutex_);
  Stream* const s = Resolve(stream);
  if (s->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (s == &legacy_) return WaitFor(lock, Enqueue(s, nullptr, {}));
  return WaitFor(lock, s->last);
}

CUresult Schedule::SynchroniseEvent(Event* event) {
  std::unique_lock lock(mutex_);
  if (event->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return WaitFor(lock, event->recorded);
}

CUresult Schedule::Drain() {
  std::unique_lock lock(mutex_);
  std::vector<TaskRef> all = pending_;
  if (running_ != nullptr) all.push_back(running_);
  for (const TaskRef& task : all) WaitFor(lock, task);
  return Device::Get().lost();
}

CUresult Schedule::NudgeAndTell(const TaskRef& task) {
  if (task == nullptr || task->done) return Device::Get().lost();
  ++nudges_;
  wake_.notify_one();
  return CUDA_ERROR_NOT_READY;
}

CUresult Schedule::Query(Stream* stream) {
  std::lock_guard lock(mutex_);
  return NudgeAndTell(Resolve(stream)->last);
}

CUresult Schedule::QueryEvent(Event* event) {
  std::lock_guard lock(mutex_);
  return NudgeAndTell(event->recorded);
}

CUresult Schedule::Elapsed(const Event* begin, const Event* end, float* milliseconds) {
  std::lock_guard lock(mutex_);
  if (!begin->timing || !end->timing || begin->recorded == nullptr || end->recorded == nullptr)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!begin->recorded->done || !end->recorded->done) return CUDA_ERROR_NOT_READY;
  const std::chrono::duration<float, std::milli> d =
      end->recorded->finished - begin->recorded->finished;
  *milliseconds = d.count();
  return CUDA_SUCCESS;
}

CUresult Schedule::BeginCapture(Stream* stream) {
  std::lock_guard lock(mutex_);
  if (stream == nullptr || stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->capture = std::make_shared<Graph>();
  stream->origin = true;
  stream->capture_tail.clear();
  return CUDA_SUCCESS;
}

CUresult Schedule::EndCapture(Stream* stream, std::unique_ptr<Graph>& graph) {
  std::lock_guard lock(mutex_);
  if (stream == nullptr || stream->capture == nullptr || !stream->origin)
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  graph = std::make_unique<Graph>(std::move(*stream->capture));
  const auto captured = stream->capture;
  for (Stream* other : captured_streams_) {
    if (other->capture == captured) other->capture = nullptr;
  }
  stream->capture = nullptr;
  stream->origin = false;
  return CUDA_SUCCESS;
}

bool Schedule::Capturing(const Stream* stream) {
  std::lock_guard lock(mutex_);
  return stream != nullptr && stream->capture != nullptr;
}

void Schedule::Remove(Stream* stream) {
  std::lock_guard lock(mutex_);
  if (stream->blocking && stream->last != nullptr) orphans_.push_back(stream->last);
  std::erase(blocking_, stream);
  std::erase(captured_streams_, stream);
}

}  // namespace forge::emulated
