// SPDX-License-Identifier: Apache-2.0
// The device contract. A device compiles programs and executes lists of them; whether a program is
// a generated kernel, a library call or a loop on the host is private to the device.
//
// Ownership: every Ref is shared; a device outlives the objects it creates. Blocking: only Wait,
// Run, Compile, and the caller's copies to and from mapped memory. Errors: any call that returns a
// Status may fail; after a device is lost every call returns Aborted at once, and a new Device can
// be opened. Threads: a Device may be used from several threads; a Segment is submitted by one
// thread at a time.
#pragma once
#include <array>
#include <atomic>

#include "ir/analysis/in_place.h"
#include "ir/graph/target.h"

namespace forge {

// What a buffer is used for: device data, host-to-device staging, device-to-host staging.
enum class Memory : uint8_t { kDevice, kUpload, kReadback };

// A buffer in device memory. Its memory is freed after the last reference is dropped and the work
// that uses it has finished.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual uint64_t size() const = 0;  // bytes
  virtual Memory memory() const = 0;
};
using BufferRef = std::shared_ptr<Buffer>;

// A sequence of work that completes in order: the queue of a device, or an external stream. May be
// used from any thread.
class Timeline {
 public:
  virtual ~Timeline() = default;
  // Returns true when the work up to `value` has ended.
  virtual bool Reached(uint64_t value) = 0;
  // Waits until the work up to `value` has ended, successfully or not.
  //   nanoseconds: time limit; -1: none     errors: as Device::Wait; InvalidArgument (no submitted
  //   work will reach `value`)
  virtual absl::Status Wait(uint64_t value, int64_t nanoseconds) = 0;
};

// A position on a timeline: the work submitted up to then. It remains valid after its device is
// destroyed.
struct Point {
  std::shared_ptr<Timeline> timeline;  // null: always reached
  uint64_t value = 0;
};

// ---- programs
// ---------------------------------------------------------------------------------------

// A node to compile.
struct CompileRequest {
  const ir::AnyOp* op;   // an op that the target supports, or Fused
  ir::TypeSpan in, out;  // encodings assigned, dimensions bound; absent types for absent operands
  std::string name;      // for traces and debuggers: provenance and shapes
  std::string choice = {};  // one of Device::Choices; empty: the preferred one
  bool once = false;        // the program runs once: prefer short compilation to fast execution
  bool fast = false;        // see ir::Precision::fast
};

// One statistic that the driver's compiler reports for a kernel, such as "registers" 84 or "spills"
// 0.
struct KernelStatistic {
  std::string kernel, name;
  double value;
};
// A representation of a program for inspection: kernel IR, SPIR-V, CUDA C++.
struct Artifact {
  std::string name;  // "conv_direct_3x3.spv"
  std::vector<uint8_t> content;
};

// A compiled node. Immutable; shared by equal nodes, plans and Sessions.
class Program {
 public:
  virtual ~Program() = default;
  virtual std::string_view kernel() const = 0;  // "matmul_tiled_64x64", "dnnl:brgconv"
  // Known only after compilation, so memory is planned afterwards.
  virtual uint64_t scratch_bytes() const = 0;
  // The expressions that Step::scalars must supply.
  virtual std::span<const ir::Dim> scalars() const { return {}; }
  // Operands whose memory a result may reuse, of the type of the result.
  virtual std::span<const ir::Overwrite> overwritable() const { return {}; }
  // The program writes `bytes` of its only result, which holds what the operand held before: both
  // are one place, or the operand was copied there.
  struct Update {
    uint32_t operand = 0;
    uint64_t bytes = 0;
  };
  virtual std::optional<Update> update() const { return std::nullopt; }
  virtual int dispatches() const = 0;
  virtual double seconds() const { return 0; }  // estimated; 0: unknown
  virtual std::vector<KernelStatistic> statistics() const { return {}; }
  virtual std::vector<Artifact> artifacts() const { return {}; }
};
using ProgramRef = std::shared_ptr<const Program>;

// ---- segments
// ---------------------------------------------------------------------------------------

// A byte range that a step reads or writes. Slots are bound at Submit: the arena, weights, states
// and tensors of the caller.
struct Operand {
  static constexpr uint32_t kNoSlot = UINT32_MAX;  // an absent optional operand
  uint32_t slot = kNoSlot;
  ir::Dim offset, bytes;  // multiples of kAlignment; `bytes` is the size of the type
  bool writes = false;
};
inline constexpr uint64_t kAlignment = 256;  // bytes; every operand in its buffer, on every device

// One launch of a program. An operand that the step writes overlaps none of its other operands,
// except a result that reuses an operand named by Program::overwritable() or update().
struct Step {
  ProgramRef program;  // null: copy operand 0 to operand 1
  // Operands of the node, its results, then scratch if the program needs it.
  std::vector<Operand> operands;
  std::vector<ir::Dim> scalars;  // values of When::kStep are read at each submission
  std::string label;             // the name of the node in the model
};

// A buffer that is bound at Submit.
struct SlotSpec {
  uint64_t bytes;
  bool rebindable;  // the buffer may differ at each Submit
};
// What Device::Record records.
struct SegmentSpec {
  std::span<const Step> steps;  // in order; the device derives hazards from byte ranges
  std::span<const SlotSpec> slots;
  std::span<const ir::SymbolRef> step_symbols;
  bool timestamps = false;  // records begin and end of every step
};

// Steps recorded once and submitted as a whole.
class Segment {
 public:
  virtual ~Segment() = default;
  virtual int barriers() const { return 0; }    // of the last submission
  virtual int recordings() const { return 0; }  // command buffers made so far, where there are any
};
using SegmentRef = std::shared_ptr<Segment>;

// Returns Aborted after `cancel` was set. `cancel` may be null.
inline absl::Status CheckCancelled(const std::atomic<bool>* cancel) {
  const bool cancelled = cancel != nullptr && cancel->load(std::memory_order_relaxed);
  return cancelled ? Aborted("cancelled") : absl::OkStatus();
}

// Buffers, step values and dependencies of one submission.
struct SubmitArgs {
  std::span<const BufferRef> slots;
  std::span<const int64_t> step_values;
  // Points that must be reached first, also those of other timelines. A point that the device
  // cannot pass to its driver is awaited by a thread of the device. If the awaited work fails, the
  // submission fails.
  std::span<const Point> wait;
  // Read between pieces of work. Must remain valid until the point of the submission is reached.
  const std::atomic<bool>* cancel = nullptr;
};

// Begin and end of a step, in nanoseconds on the clock of the device.
struct StepTime {
  uint64_t begin, end;
};

// ---- the device
// ---------------------------------------------------------------------------------------

// An optional feature of a device.
struct Feature {
  std::string name;  // as FORGE_VK_DISABLE spells it
  bool present;
  std::string note;  // "hidden by FORGE_VK_DISABLE", "self-test failed: ..."
};
// What a driver reports about a device.
struct DeviceInfo {
  std::string id;  // "vulkan:0"
  std::string name, backend, driver, api;
  uint64_t memory_bytes = 0;
  std::vector<Feature> features;
  std::vector<std::pair<std::string, std::string>> limits;
  Verdict usable = Verdict::Yes();  // No: the reason why Forge cannot use it
  bool is_cpu = false;              // a software device; hardware is preferred to it
};

// Numbers of kernels.
//   compiled: by the driver's compiler     cached: loaded from the cache on disk
//   printed: translated to SPIR-V by the generator, and not loaded from the cache
struct CompileCounts {
  int compiled = 0, cached = 0, printed = 0;
};

// Called from any thread with the number of finished requests. When it returns false, the remaining
// requests need not be compiled.
using CompileProgress = absl::FunctionRef<bool(size_t done)>;

// A device of a backend.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual const ir::Target& target() const = 0;

  // Allocates a buffer.
  //   errors: ResourceExhausted with the bytes requested and available
  virtual absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) = 0;
  // The largest size, in bytes, of the buffers that arenas and weights are divided into. A buffer
  // for a single value may be larger where the device can build it from several allocations;
  // Allocate fails otherwise.
  virtual uint64_t largest_buffer() const = 0;
  // True when kDevice memory is host memory: Map works on it and staging is not needed.
  virtual bool host_memory() const { return false; }
  // True when programs can use upload and readback buffers in place, because the device computes in
  // host memory.
  virtual bool shares_memory() const { return host_memory(); }
  // Returns a read-only buffer over host memory, without a copy. The buffer keeps `bytes` alive.
  //   errors: Unimplemented (the device cannot; the caller copies instead)
  virtual absl::StatusOr<BufferRef> Import(const Bytes& bytes) = 0;
  virtual absl::StatusOr<std::span<uint8_t>> Map(
      Buffer& b) = 0;  // upload and readback buffers only; the mapping is permanent
  // Replaces the memory of the upload or readback buffer `b` by `memory`, of the same size, until
  // Lend(b, null). No run may use `b` during the change. Returns false where programs cannot
  // compute in arbitrary host memory; the caller copies instead.
  virtual bool Lend(Buffer& /*b*/, uint8_t* /*memory*/) { return false; }
  // A byte range of one buffer, and where to copy it.
  struct CopyRange {
    BufferRef from;
    uint64_t at;
    BufferRef to;
    uint64_t to_at, bytes;
  };
  // Copies a range. The device keeps the buffers alive until the copy has finished.
  //   wait: as SubmitArgs::wait     errors: OutOfRange, InvalidArgument (a buffer of another
  //   device)
  virtual absl::StatusOr<Point> Copy(const CopyRange& range, std::span<const Point> wait) = 0;
  // Bytes of device memory that are available.
  virtual uint64_t MemoryLeft() const = 0;

  // Compiles all requests, on all cores where the device can.
  //   errors: one for each request that fails; Aborted after `progress` returned false
  virtual std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                          CompileProgress progress) = 0;
  // Counts since the device was opened.
  virtual CompileCounts compile_counts() const { return {}; }
  // The choices for compiling a request, at most `most`, the default first. Empty where there is
  // only one.
  virtual std::vector<std::string> Choices(const CompileRequest& /*request*/, size_t /*most*/) {
    return {};
  }
  // Makes the choice of `request` the default for equal requests, now and, where kernels are
  // cached, in later processes.
  //   errors: InvalidArgument (the choice is not one of Choices)
  virtual absl::Status Prefer(const CompileRequest& request) {
    return InvalidArgument("{}: there is no choice '{}'", request.name, request.choice);
  }
  // True when programs accept types that depend on step values, so that one segment serves all
  // values. Otherwise each value is a separate binding.
  virtual bool keeps_step_values() const { return false; }
  virtual absl::StatusOr<SegmentRef> Record(const SegmentSpec& spec) = 0;

  // Submits a segment and never waits for the device, because collectives need the submissions of
  // all members. The segment and the buffers stay alive until the point is reached.
  virtual absl::StatusOr<Point> Submit(const SegmentRef& segment, const SubmitArgs& args) = 0;
  // Submits a segment and waits. A device that computes on the host computes in the calling thread,
  // concurrently with other callers, and waits only for `args.wait`.
  //   errors: those of Submit and Wait
  virtual absl::Status Run(const SegmentRef& segment, const SubmitArgs& args) {
    FORGE_ASSIGN_OR_RETURN(const Point done, Submit(segment, args));
    return Wait(done, -1);
  }
  // Returns true when the point, of any timeline, is reached.
  virtual bool Reached(const Point& p) const { return !p.timeline || p.timeline->Reached(p.value); }
  // Waits for a point of any timeline.
  //   nanoseconds: time limit; -1: none
  //   errors: DeadlineExceeded, Aborted (device lost, or cancelled), or the error of a step, with
  //   its label
  virtual absl::Status Wait(const Point& p, int64_t nanoseconds) {
    return p.timeline ? p.timeline->Wait(p.value, nanoseconds) : absl::OkStatus();
  }
  // Times of the steps of the last finished submission, one entry for each step.
  virtual absl::StatusOr<std::vector<StepTime>> Timestamps(const Segment& s) = 0;
  virtual absl::Status Health() = 0;  // OK, or the reason why the device is lost
};
using DeviceRef = std::shared_ptr<Device>;

// How to open a device.
struct DeviceOptions {
  int threads = 0;          // host threads; 0: all
  bool cache = true;        // keep compiled kernels in the cache folder
  bool statistics = false;  // query statistics of each kernel: Program::statistics()
};

// A backend, as a plug-in exports it.
class Driver {
 public:
  virtual ~Driver() = default;
  // Includes devices that cannot be used, with the reason.
  virtual std::vector<DeviceInfo> List() = 0;
  // Opens a device.
  //   index: of List()     errors: Unavailable, and those of the backend
  virtual absl::StatusOr<DeviceRef> Open(size_t index, const DeviceOptions& options) = 0;

  // True when a child process may open devices after a fork.
  virtual bool survives_fork() const { return false; }
  // Runs small kernels for the features of a device that drivers are known to get wrong, except
  // those in `known`, and reports one line for each. forge-self-test calls it in a separate
  // process, which may crash.
  using Tell = absl::FunctionRef<void(std::string_view line)>;
  virtual absl::Status TryFeatures(size_t /*index*/, std::span<const std::string> /*known*/,
                                   Tell /*tell*/) {
    return absl::OkStatus();
  }
};

// The entry point of a plug-in. Plug-ins use the C++ interface of the same build; the loader
// compares `abi` before anything else.
struct Plugin {
  uint32_t abi;
  const char* backend;  // "vulkan"
  Driver* (*driver)();  // valid as long as the library is loaded; never null
};
inline constexpr uint32_t kPluginAbi = 5;
inline constexpr char kPluginSymbol[] =
    "forge_plugin";  // extern "C" const forge::Plugin* forge_plugin();

}  // namespace forge
