// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/program.h"

#include <algorithm>

#include "base/bytes.h"
#include "cpu_runtime/parallel.h"
#include "ir/analysis/in_place.h"

namespace forge::cpu {
namespace {

constexpr uint64_t kScratchAlignment = 256;

// Operand pointers by number, then those of this program's own.
using Pointers = absl::InlinedVector<uint8_t*, 16>;

Pointers PointersOf(const HostArguments& a, size_t operands) {
  Pointers p;
  for (size_t i = 0; i < operands; ++i) p.push_back(a.operands[i].data());
  return p;
}

uint8_t* ScratchOf(const HostArguments& a, size_t operands) {
  return a.operands.size() > operands ? a.operands[operands].data() : nullptr;
}

// What a tape may overwrite: those of the region's arguments, by operand.
std::vector<ir::Overwrite> OverwritableOf(const Task& task) {
  std::vector<ir::Overwrite> out;
  for (const auto& [argument, result] : ir::OverwritableArguments(task.body()))
    out.push_back({*task.OperandOf(task.body().arguments()[argument].value), result});
  return out;
}

class TapeProgram final : public HostProgram {
 public:
  TapeProgram(Tape tape, const Task& task, int threads)
      : tape_(std::move(tape)),
        operands_(task.operands()),
        threads_(threads),
        overwritable_(OverwritableOf(task)) {}
  std::span<const ir::Overwrite> overwritable() const override { return overwritable_; }
  std::string_view kernel() const override { return "tape"; }
  uint64_t scratch_bytes() const override { return tape_.scratch_bytes(threads_); }
  absl::Status Run(const HostArguments& a) const override {
    tape_.Run(PointersOf(a, operands_), ScratchOf(a, operands_), threads_);
    return absl::OkStatus();
  }

 private:
  Tape tape_;
  size_t operands_;
  int threads_;
  std::vector<ir::Overwrite> overwritable_;
};

// An operand of f16 or bf16, copied to f32 before the anchor runs.
struct Widened {
  uint32_t operand;
  DType dtype;
  int64_t elements;
  uint64_t offset;  // in the scratch
};

// The operand that holds a result of the call; numbers from the count of operands on mean scratch.
struct Out {
  uint32_t operand = 0;
  uint64_t offset = 0;  // in the scratch
};

class AnchorProgram final : public HostProgram {
 public:
  std::unique_ptr<AnchorCall> call;
  std::optional<Tape> tail;
  std::vector<Widened> widened;
  size_t operands = 0;
  std::vector<Out> outs;  // by result of the anchor
  std::vector<ir::Overwrite> overwritten;
  uint64_t call_offset = 0, bytes = 0;
  int threads = 1;

  std::string_view kernel() const override { return call->kernel(); }
  uint64_t scratch_bytes() const override { return bytes; }
  std::span<const ir::Overwrite> overwritable() const override { return overwritten; }

  absl::Status Run(const HostArguments& a) const override {
    const ThreadScope of_the_library(threads);
    Pointers pointers = PointersOf(a, operands);
    uint8_t* scratch = ScratchOf(a, operands);
    for (const Out& o : outs) pointers.push_back(scratch + o.offset);
    Pointers computed = pointers, results;
    for (const Out& o : outs) results.push_back(pointers[o.operand]);
    for (const Widened& w : widened) {
      computed[w.operand] = scratch + w.offset;
      WidenElements(w.dtype, pointers[w.operand], w.elements, threads, computed[w.operand]);
    }
    const std::span<uint8_t* const> more = std::span(results).subspan(1);
    FORGE_RETURN_IF_ERROR(call->Run({computed, results[0], more, scratch + call_offset}));
    if (tail) tail->Run(pointers, scratch + call_offset, threads);
    return absl::OkStatus();
  }
};

// Every argument of the body, and what the anchor left.
absl::StatusOr<std::vector<Placed>> SourcesOf(const Task& task) {
  std::vector<Placed> sources;
  for (const auto& a : task.body().arguments()) {
    const uint32_t operand = *task.OperandOf(a.value);
    absl::StatusOr<View> view = task.ViewOfOperand(operand);
    // An anchor's packed operand is never read by the tape.
    if (view.ok()) sources.push_back({a.value, *std::move(view), operand});
  }
  return sources;
}

absl::StatusOr<std::vector<Placed>> ResultsOf(const Task& task) {
  std::vector<Placed> results;
  for (size_t i = 0; i < task.results(); ++i) {
    const auto operand = static_cast<uint32_t>(task.first_result() + i);
    FORGE_ASSIGN_OR_RETURN(View view, task.ViewOfOperand(operand));
    results.push_back({task.result_value(i), std::move(view), operand});
  }
  return results;
}

// Lays out an anchor's program: where its result goes, what the tape does, how much scratch.
class AnchorMaker {
 public:
  AnchorMaker(const Task& task, const Settings& settings) : task_(task), settings_(settings) {}

  absl::StatusOr<ProgramRef> Make(AnchorFactory make) {
    FORGE_ASSIGN_OR_RETURN(results_, ResultsOf(task_));
    AnchorSite site{task_, settings_, {}, {}, {}};
    FORGE_RETURN_IF_ERROR(ReadOperands(site));
    FORGE_RETURN_IF_ERROR(ChooseLayout(site));
    FORGE_ASSIGN_OR_RETURN(MadeAnchor made, make(site));
    program_->call = std::move(made.call);
    program_->operands = task_.operands();
    program_->threads = settings_.threads;
    PlaceOut(made.value, site.out);
    for (uint32_t k = 0; k < site.more.size(); ++k)
      PlaceOut(task_.anchor()->first_out + 1 + k, site.more[k]);
    FORGE_RETURN_IF_ERROR(MakeTail());
    // Where the call stores nothing: what the tape reads is whole until then.
    program_->overwritten = OverwritableOf(task_);
    std::erase_if(program_->overwritten, [&](const ir::Overwrite& o) {
      return std::ranges::any_of(
          made_, [&](const Placed& m) { return m.operand == task_.first_result() + o.result; });
    });
    const uint64_t tail = program_->tail ? program_->tail->scratch_bytes(settings_.threads) : 0;
    program_->call_offset = bytes_;
    program_->bytes = bytes_ + std::max(program_->call->scratch_bytes(), tail);
    return ProgramRef(std::move(program_));
  }

 private:
  absl::Status ReadOperands(AnchorSite& site) {
    site.operands.resize(task_.operands());
    for (uint32_t v : task_.anchor()->in) {
      if (v == ir::kAbsent) continue;
      const std::optional<uint32_t> operand = task_.OperandOf(v);
      if (!operand) return Internal("an operand of {} is computed", task_.anchor()->op.name());
      absl::StatusOr<View> view = task_.ViewOfOperand(*operand);
      if (!view.ok()) continue;  // packed for the anchor: its factory knows how
      site.operands[*operand] = *std::move(view);
      WidenOperand(*operand, site.operands[*operand]);
    }
    return absl::OkStatus();
  }

  void WidenOperand(uint32_t operand, View& view) {
    if (ComputedAs(view.dtype) == view.dtype) return;
    for (const Widened& w : program_->widened)
      if (w.operand == operand) return;
    const int64_t elements = view.elements();
    program_->widened.push_back({operand, view.dtype, elements, bytes_});
    view.dtype = ComputedAs(view.dtype);
    bytes_ += AlignUp(static_cast<uint64_t>(elements) * StoredBytes(view.dtype), kScratchAlignment);
  }

  // The anchor's result lies as the results of its region that have its shape.
  absl::Status ChooseLayout(AnchorSite& site) {
    const ir::Type& type = task_.body().type(task_.anchor()->first_out);
    FORGE_ASSIGN_OR_RETURN(site.out, ComputedViewOf(type.With(ir::EncodingRef())));
    for (const Placed& r : results_)
      if (r.view.shape == site.out.shape) {
        site.out.strides = r.view.strides;
        break;
      }
    for (uint32_t k = 1; k < task_.anchor()->outs; ++k) {
      const ir::Type& other = task_.body().type(task_.anchor()->first_out + k);
      FORGE_ASSIGN_OR_RETURN(View view, ComputedViewOf(other.With(ir::EncodingRef())));
      site.more.push_back(std::move(view));
    }
    return absl::OkStatus();
  }

  static bool SamePlace(const View& a, const View& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
  }

  // In the result that is this value, else in the only one that the tape stores, if it may
  // overwrite the value, else in scratch.
  void PlaceOut(uint32_t value, const View& view) {
    const Placed* at = nullptr;
    for (const Placed& r : results_) {
      if (!SamePlace(r.view, view) || IsTaken(r)) continue;
      if (r.value == value || (!IsOfAnchor(r.value) && MayOverwrite(value))) at = &r;
      if (r.value == value) break;
    }
    Out out{static_cast<uint32_t>(task_.operands() + made_.size()), bytes_};
    if (at != nullptr)
      out = {at->operand, 0};
    else
      bytes_ += AlignUp(static_cast<uint64_t>(view.elements()) * StoredBytes(view.dtype),
                        kScratchAlignment);
    program_->outs.push_back(out);
    made_.push_back({value, view, out.operand});
  }
  // One of two results would be stored before the other has read the value.
  bool MayOverwrite(uint32_t value) const {
    const auto stored = [&](const Placed& r) { return !IsOfAnchor(r.value); };
    return std::ranges::count_if(results_, stored) == 1 && ir::StaysInPlace(task_.body(), value);
  }
  bool IsTaken(const Placed& result) const {
    return std::ranges::any_of(made_, [&](const Placed& m) { return m.operand == result.operand; });
  }
  bool IsOfAnchor(uint32_t value) const {
    const ir::Node& anchor = *task_.anchor();
    return value >= anchor.first_out && value < anchor.first_out + anchor.outs;
  }

  absl::Status MakeTail() {
    std::vector<Placed> left;
    for (const Placed& r : results_)
      if (std::ranges::none_of(
              made_, [&](const Placed& m) { return m.value == r.value && m.operand == r.operand; }))
        left.push_back(r);
    if (left.empty()) return absl::OkStatus();
    FORGE_ASSIGN_OR_RETURN(std::vector<Placed> sources, SourcesOf(task_));
    sources.insert(sources.end(), made_.begin(), made_.end());
    FORGE_ASSIGN_OR_RETURN(program_->tail, Tape::Compile({task_.body(), sources, left}));
    return absl::OkStatus();
  }

  const Task& task_;
  const Settings& settings_;
  std::vector<Placed> results_;
  std::vector<Placed> made_;  // what the call computes
  std::shared_ptr<AnchorProgram> program_ = std::make_shared<AnchorProgram>();
  uint64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<View> ComputedViewOf(const ir::Type& t) {
  FORGE_ASSIGN_OR_RETURN(View view, ViewOf(t));
  view.dtype = ComputedAs(view.dtype);
  return view;
}

void WidenElements(DType t, const uint8_t* from, int64_t elements, int threads, uint8_t* to) {
  const auto bytes = static_cast<int64_t>(StoredBytes(t));
  const auto held = static_cast<int64_t>(HeldBytes(t));
  const bool many = WorthThreads(static_cast<double>(elements));
  ParallelParts({elements, kBlock, many ? threads : 1}, [&](int, int64_t begin, int64_t end) {
    LoadRun(t, {from + begin * bytes, 1, static_cast<size_t>(end - begin)}, to + begin * held);
  });
}

absl::StatusOr<ProgramRef> MakeAnchorProgram(const Task& task, const Settings& settings,
                                             AnchorFactory make) {
  return AnchorMaker(task, settings).Make(make);
}

absl::StatusOr<ProgramRef> MakeTapeProgram(const Task& task, const Settings& settings) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<Placed> sources, SourcesOf(task));
  FORGE_ASSIGN_OR_RETURN(const std::vector<Placed> results, ResultsOf(task));
  FORGE_ASSIGN_OR_RETURN(Tape tape, Tape::Compile({task.body(), sources, results}));
  return ProgramRef(std::make_shared<TapeProgram>(std::move(tape), task, settings.threads));
}

}  // namespace forge::cpu
