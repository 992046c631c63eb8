// SPDX-License-Identifier: Apache-2.0
// The contract between Forge and a device. Nothing below knows whether a program is a generated
// kernel, a library call or a loop on the host: a device makes programs, and runs lists of them.
//
// Who owns what: every Ref is shared; a device outlives what it made. What blocks: only Wait, Run,
// Copy to or from mapped memory by the caller, and Compile. What may fail: everything that returns
// a Status; after a lost device every call returns Aborted at once, and a new Device works.
// Threads: a Device may be used from many; a Segment is submitted by one at a time.
#pragma once
#include <array>
#include <atomic>

#include "ir/graph/target.h"

namespace forge {

enum class Memory : uint8_t { kDevice, kUpload, kReadback };

// Device memory: a size and a kind. Freed with the last reference, after the work that uses it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual uint64_t size() const = 0;  // bytes
  virtual Memory memory() const = 0;
};
using BufferRef = std::shared_ptr<Buffer>;

// An order in which work gets done: a device's queue, or a stream of somebody else's. Any thread.
class Timeline {
 public:
  virtual ~Timeline() = default;
  virtual bool Reached(uint64_t value) = 0;
  // Its work has ended by then, well or not.
  //   nanoseconds: -1: no limit     errors: as Device::Wait; InvalidArgument (nothing submitted
  //   will ever reach it)
  virtual absl::Status Wait(uint64_t value, int64_t nanoseconds) = 0;
};

// A point on a timeline: what was submitted there so far. It stays good when its device is gone.
struct Point {
  std::shared_ptr<Timeline> timeline;  // null: always reached
  uint64_t value = 0;
};

// ---- programs
// ---------------------------------------------------------------------------------------

struct CompileRequest {
  const ir::AnyOp* op;      // an op the target supports, or Fused
  ir::TypeSpan in, out;     // encodings decided, numbers bound; absent types for absent operands
  std::string name;         // for traces and debuggers: provenance and shapes
  std::string choice = {};  // one of Device::Choices; empty: the preferred one
  bool once = false;        // it will run once: quick to compile rather than quick
};

// What a kernel compiler says of one kernel: "registers" 84, "spills" 0 ...
struct KernelStatistic {
  std::string kernel, name;
  double value;
};
// A file a program can be looked at through: kernel IR, SPIR-V, CUDA C++.
struct Artifact {
  std::string name;  // "conv_direct_3x3.spv"
  std::vector<uint8_t> content;
};

// What Compile makes of one node. Immutable; shared by equal nodes, plans and Sessions.
class Program {
 public:
  virtual ~Program() = default;
  virtual std::string_view kernel() const = 0;  // "matmul_tiled_64x64", "dnnl:brgconv"
  virtual uint64_t scratch_bytes() const = 0;   // known only now, so memory is planned after
  virtual std::span<const ir::Dim> scalars() const { return {}; }  // what Step::scalars must supply
  // Operands whose memory the node's only result may take, by number; types are equal then.
  virtual std::span<const uint32_t> overwritable() const { return {}; }
  virtual int dispatches() const = 0;
  virtual double seconds() const { return 0; }  // estimated; 0: unknown
  virtual std::vector<KernelStatistic> statistics() const { return {}; }
  virtual std::vector<Artifact> artifacts() const { return {}; }
};
using ProgramRef = std::shared_ptr<const Program>;

// ---- segments
// ---------------------------------------------------------------------------------------

// Bytes a step touches. Slots are bound at Submit: arena, weights, states, and a caller's tensors.
struct Operand {
  static constexpr uint32_t kNoSlot = UINT32_MAX;  // an absent optional operand
  uint32_t slot = kNoSlot;
  ir::Dim offset, bytes;  // multiples of kAlignment; bytes as the type says
  bool writes = false;
};
inline constexpr uint64_t kAlignment = 256;  // of every operand in its buffer, on every device

// No operand that a step writes overlaps another operand of it, save a result in the place of an
// operand that its program may overwrite.
struct Step {
  ProgramRef program;             // null: copy operand 0 to operand 1
  std::vector<Operand> operands;  // the node's operands, its results, then scratch if there is any
  std::vector<ir::Dim> scalars;   // those of When::kStep are read at each replay
  std::string label;              // the model's own name of what runs
};

struct SlotSpec {
  uint64_t bytes;
  bool rebindable;  // may differ at every Submit
};
struct SegmentSpec {
  std::span<const Step> steps;  // in order; the device finds hazards by range
  std::span<const SlotSpec> slots;
  std::span<const ir::SymbolRef> step_symbols;
  bool timestamps = false;  // keep begin and end of every step
};

class Segment {
 public:
  virtual ~Segment() = default;
  virtual int barriers() const { return 0; }    // of the last submission
  virtual int recordings() const { return 0; }  // command buffers made so far, where there are any
};
using SegmentRef = std::shared_ptr<Segment>;

// Aborted once `cancel` is set; it may be null.
inline absl::Status CheckCancelled(const std::atomic<bool>* cancel) {
  const bool cancelled = cancel != nullptr && cancel->load(std::memory_order_relaxed);
  return cancelled ? Aborted("cancelled") : absl::OkStatus();
}

struct SubmitArgs {
  std::span<const BufferRef> slots;
  std::span<const int64_t> step_values;
  // What must be done before. Points of other timelines too: those that the device cannot hand to
  // its driver a thread of the device waits for. Work that waits for another timeline's failed work
  // fails with it.
  std::span<const Point> wait;
  // Looked at between pieces of work; must live until the work's point is reached.
  const std::atomic<bool>* cancel = nullptr;
};

// Nanoseconds on the device's own clock.
struct StepTime {
  uint64_t begin, end;
};

// ---- the device
// ---------------------------------------------------------------------------------------

struct Feature {
  std::string name;  // as FORGE_VK_DISABLE spells it
  bool present;
  std::string note;  // "hidden by FORGE_VK_DISABLE", "self-test failed: ..."
};
struct DeviceInfo {
  std::string id;  // "vulkan:0"
  std::string name, backend, driver, api;
  uint64_t memory_bytes = 0;
  std::vector<Feature> features;
  std::vector<std::pair<std::string, std::string>> limits;
  Verdict usable = Verdict::Yes();  // No: why Forge cannot run on it
  bool is_cpu = false;              // a software device: never preferred to real hardware
};

// Kernels built by the driver's compiler, and kernels found in the cache on disk; those that the
// generator printed for it, which are kept too.
struct CompileCounts {
  int compiled = 0, cached = 0, printed = 0;
};

// Told of requests that are done, from any thread; false: the rest need not be compiled.
using CompileProgress = absl::FunctionRef<bool(size_t done)>;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual const ir::Target& target() const = 0;

  // errors: ResourceExhausted with the bytes asked for and left
  virtual absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) = 0;
  // Bytes; arenas and weights are cut into chunks of it. A buffer of one value may be larger, where
  // the device can make it of several allocations: Allocate tells.
  virtual uint64_t largest_buffer() const = 0;
  // Is kDevice memory the host's, so that Map works on it and no staging is needed?
  virtual bool host_memory() const { return false; }
  // Does it compute in the host's memory, so that programs use upload and readback buffers in
  // place?
  virtual bool shares_memory() const { return host_memory(); }
  // A read-only buffer over host memory that `bytes` keeps alive, without a copy.
  //   errors: Unimplemented where the device cannot; the caller copies instead
  virtual absl::StatusOr<BufferRef> Import(const Bytes& bytes) = 0;
  virtual absl::StatusOr<std::span<uint8_t>> Map(
      Buffer& b) = 0;  // upload and readback only; stays mapped
  // Puts `memory`, of b's size, in the place of what the upload or readback buffer `b` has, until
  // it is lent null: no run may use `b` when this changes.  Returns false where programs do not
  // compute in any memory of the host's; the caller copies instead.
  virtual bool Lend(Buffer& /*b*/, uint8_t* /*memory*/) { return false; }
  struct CopyRange {
    BufferRef from;
    uint64_t at;
    BufferRef to;
    uint64_t to_at, bytes;
  };
  // The buffers live until it is done.
  //   wait: as SubmitArgs::wait     errors: OutOfRange; InvalidArgument (another device's buffer)
  virtual absl::StatusOr<Point> Copy(const CopyRange& range, std::span<const Point> wait) = 0;
  virtual uint64_t MemoryLeft() const = 0;

  // Many at once, so that a device may use all cores.
  //   errors: of each request; Aborted once `progress` returned false
  virtual std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                          CompileProgress progress) = 0;
  // Since the device was opened.
  virtual CompileCounts compile_counts() const { return {}; }
  // The ways in which a request can be compiled, in words, at most `most`; the default first. Empty
  // where there is but one.
  virtual std::vector<std::string> Choices(const CompileRequest& /*request*/, size_t /*most*/) {
    return {};
  }
  // Compiles such requests as `request` says from now on, and in later runs where kernels are kept.
  //   errors: InvalidArgument: its choice is none of Choices
  virtual absl::Status Prefer(const CompileRequest& request) {
    return InvalidArgument("{}: there is no choice '{}'", request.name, request.choice);
  }
  // Do programs take types that step values leave open, so that a segment serves all of them?
  // Where they do not, each value is a binding of its own.
  virtual bool keeps_step_values() const { return false; }
  virtual absl::StatusOr<SegmentRef> Record(const SegmentSpec& spec) = 0;

  // Never waits for the device: collectives need every member's part submitted. What the work
  // needs of the segment, and the buffers, live until the point is reached.
  virtual absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) = 0;
  // Submits and waits. Where the host itself computes, the calling thread does, beside other
  // threads that do so and behind nothing but `args.wait`.  errors: of Submit and Wait
  virtual absl::Status Run(const SegmentRef& segment, const SubmitArgs& args) {
    FORGE_ASSIGN_OR_RETURN(const Point done, Submit(segment, args));
    return Wait(done, -1);
  }
  // Points of any timeline.
  virtual bool Reached(const Point& p) const { return !p.timeline || p.timeline->Reached(p.value); }
  // nanoseconds: -1: no limit
  //   errors: DeadlineExceeded, Aborted (device lost, or cancelled), or what a step failed with,
  //   with its label
  virtual absl::Status Wait(const Point& p, int64_t nanoseconds) {
    return p.timeline ? p.timeline->Wait(p.value, nanoseconds) : absl::OkStatus();
  }
  // One entry for each step of the last finished submission.
  virtual absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) = 0;
  virtual absl::Status Health() = 0;  // OK, or why it is lost
};
using DeviceRef = std::shared_ptr<Device>;

struct DeviceOptions {
  int threads = 0;          // of the host; 0: all
  bool cache = true;        // keep compiled kernels in the cache folder
  bool statistics = false;  // ask the driver about each kernel: Program::statistics()
};

// What a plug-in exports.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::vector<DeviceInfo> List() = 0;  // also those it cannot use, and why not
  virtual absl::StatusOr<DeviceRef> Open(size_t index, const DeviceOptions& options) = 0;

  // May a process go on with devices after a fork, if it opens them anew?
  virtual bool survives_fork() const { return false; }
  // Tries the features of a device that a driver may get wrong, but for the `known` ones, and tells
  // a line for each. forge-self-test calls it, in a process that a crash may end.
  using Tell = absl::FunctionRef<void(std::string_view line)>;
  virtual absl::Status TryFeatures(size_t /*index*/, std::span<const std::string> /*known*/,
                                   Tell /*tell*/) {
    return absl::OkStatus();
  }
};

// Plug-ins speak C++ of the same build; `abi` is compared before anything else is touched.
struct Plugin {
  uint32_t abi;
  const char* backend;  // "vulkan"
  Driver* (*driver)();  // lives as long as the library; never null
};
inline constexpr uint32_t kPluginAbi = 5;
inline constexpr char kPluginSymbol[] =
    "forge_plugin";  // extern "C" const forge::Plugin* forge_plugin();

}  // namespace forge
