// SPDX-License-Identifier: Apache-2.0
// Work of streams: a graph of tasks that one thread executes in a random order that their
// dependencies allow, late rather than early, so that a missing wait shows.
#pragma once
#include <condition_variable>
#include <thread>

#include "tests/cuda/driver/device.h"

namespace forge::emulated {

class Schedule {
 public:
  static Schedule& Get();
  // Adds work to a stream (null: the legacy stream), or a node to the graph that the stream is
  // captured into.
  CUresult Add(Stream* stream, GraphNode node);
  CUresult Record(Event* event, Stream* stream);
  CUresult Wait(Stream* stream, Event* event);
  CUresult Launch(const GraphExec& graph, Stream* stream);
  // Waits until the work that is in the stream now is done.
  CUresult Synchronise(Stream* stream);
  CUresult SynchroniseEvent(Event* event);
  // Waits for everything.
  CUresult Drain();
  // Not ready unless done; lets some work happen first.
  CUresult Query(Stream* stream);
  CUresult QueryEvent(Event* event);
  CUresult Elapsed(const Event* begin, const Event* end, float* milliseconds);
  CUresult BeginCapture(Stream* stream);
  CUresult EndCapture(Stream* stream, std::unique_ptr<Graph>& graph);
  bool Capturing(const Stream* stream);
  // Forgets a stream that is destroyed; its work goes on.
  void Remove(Stream* stream);

 private:
  Schedule() : random_(Device::Get().settings().seed), thread_([this] { Work(); }) {
    thread_.detach();
  }
  TaskRef Enqueue(Stream* stream, std::function<CUresult()> run, std::vector<TaskRef> waits);
  void Work();
  TaskRef PickReady();
  CUresult WaitFor(std::unique_lock<std::mutex>& lock, const TaskRef& task);
  CUresult NudgeAndTell(const TaskRef& task);
  Stream* Resolve(Stream* stream) { return stream == nullptr ? &legacy_ : stream; }

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::mt19937_64 random_;
  std::vector<TaskRef> pending_;
  std::vector<Stream*> blocking_;          // that may have work
  std::vector<Stream*> captured_streams_;  // that joined a capture
  TaskRef running_;
  std::vector<TaskRef> orphans_;  // last work of blocking streams that were destroyed
  Stream legacy_;
  int demand_ = 0;  // threads that wait
  int nudges_ = 0;  // tasks that a query lets happen
  std::thread thread_;
};

}  // namespace forge::emulated
