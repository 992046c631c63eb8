// SPDX-License-Identifier: Apache-2.0
// forge-run: one model, one device, one answer.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "ir/type/precision.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "runtime/report.h"
#include "tools/run/expected_outputs.h"
#include "tools/run/plan_report.h"
#include "tools/run/step_times.h"
#include "tools/run/timed_runs.h"
#include "tools/support/document.h"
#include "tools/support/tensor_io.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string device = "auto", model, compare, expect, output_dir, profile, dump, memory_limit,
              precision = "exact";
  std::vector<std::string> inputs, outputs, dims, shapes;
  Presentation presentation;
  Tolerance tolerance;
  bool print = false, explain = false, check_finite = false, no_cache = false, steps = false,
       no_fuse = false, time_by_op = false;
  int repeat = 1, warmup = -1, streams = 1, threads = 0, autotune = 0, candidates = 32,
      max_iterations = 1'000'000;
  double duration = -1;
};

void AddInputOptions(Tool& tool, Options& o) {
  tool.List("--input NAME=VALUE", o.inputs,
            "Set an input: NAME=FILE (.npy .npz .png .jpg), NAME=random[:SEED] or NAME=VALUE");
  tool.Option("--preprocess SPEC", o.presentation.preprocess,
              "For pictures: resize=HxW,mean=..,std=..,layout=nchw|nhwc,color=rgb|bgr|gray");
  tool.List("--dim SYMBOL=N", o.dims, "Bind an open dimension");
  tool.List("--shape NAME=DIMS", o.shapes,
            "Bind the open dimensions of an input, as in NAME=1,3,480,640");
}

void AddOutputOptions(Tool& tool, Options& o) {
  tool.List("--output NAME", o.outputs,
            "Compute this output or inner value, or all outputs with all");
  tool.Option("--output-dir DIR", o.output_dir, "Write outputs as DIR/NAME.npy");
  tool.Flag("--print", o.print, "Show shapes, statistics and first values of outputs");
  tool.Option("--labels FILE", o.presentation.labels, "File with one class name per line");
  tool.Option("--top N", o.presentation.top, {1, 1000}, "Number of classes to show");
  tool.Flag("--check-finite", o.check_finite,
            "Fail at the first step that produces a NaN or an infinity");
  tool.Option("--compare DEVICE", o.compare,
              "Run on a second device and compare; exit 1 when a bound is exceeded");
  tool.Flag("--steps", o.steps, "With --compare: name the first step that differs");
  tool.Option("--expect DIR", o.expect,
              "Compare outputs with DIR/NAME.npy; exit 1 when the tolerance is exceeded");
  tool.Option("--rtol X", o.tolerance.relative,
              "--expect: tolerance relative to the expected value");
  tool.Option("--atol X", o.tolerance.absolute,
              "--expect: absolute tolerance, added to the relative one");
  tool.Needs("--steps", {"--compare"});
  tool.Needs("--rtol", {"--expect"});
  tool.Needs("--atol", {"--expect"});
}

void AddTimingOptions(Tool& tool, Options& o) {
  tool.Option("--repeat N", o.repeat, {1, 1000000}, "Number of timed runs");
  tool.Option("--duration SECONDS", o.duration, "Duration of the timed runs, instead of --repeat");
  tool.Option("--streams N", o.streams, {1, 1024},
              "Number of concurrent sessions, one thread each");
  tool.Option(
      "--warmup N", o.warmup, {0, 1000000},
      "Number of untimed runs before the timed ones; default: 1 when runs are timed, else 0");
  tool.Flag("--time-by-op", o.time_by_op, "Show the time by op, and the slowest steps");
  tool.Option("--profile FILE", o.profile, "Write a trace of one run, for Perfetto");
  tool.Excludes("--duration", {"--repeat"});
  tool.Excludes("--check-finite",
                {"--repeat", "--duration", "--streams", "--warmup", "--time-by-op", "--profile"});
  tool.Excludes("--streams", {"--time-by-op", "--profile"});
}

void AddOptions(Tool& tool, Options& o) {
  tool.Argument("model", o.model, "model.bin or .onnx");
  tool.Device(o.device, "auto, cpu, vulkan, cuda or reference, optionally with :N or :NAME-PART");
  AddInputOptions(tool, o);
  AddOutputOptions(tool, o);
  AddTimingOptions(tool, o);
  tool.Flag("--explain", o.explain,
            "Show the placement and kernel of every step, and the memory plan; with -v also why "
            "steps are not fused");
  tool.Flag("--no-fuse", o.no_fuse, "Do not fuse: each node is a separate step");
  tool.Option("--dump DIR", o.dump, "Write the function after each pass and every kernel to DIR");
  tool.Option("--precision NAME", o.precision,
              "Of products and convolutions: exact, or f16 or bf16, with all else in f32; fast: "
              "as the device computes soonest, approximate functions, too; the reference of "
              "--compare stays exact");
  tool.Option("--threads N", o.threads, {0, 4096}, "Number of host threads; 0: all");
  tool.Option("--memory-limit BYTES", o.memory_limit,
              "Refuse a plan that needs more device memory, for example 300M or 2G");
  tool.Option("--max-iterations N", o.max_iterations, {1, INT32_MAX},
              "The most steps of a loop whose end depends on data");
  tool.Option("--autotune SECONDS", o.autotune, {0, 86400},
              "Search for faster kernels first; results are cached for later runs");
  tool.Option("--candidates N", o.candidates, {2, 10000},
              "--autotune: choices tried for each step");
  tool.Flag("--no-cache", o.no_cache, "Do not read or write compiled kernels in the cache folder");
  tool.Needs("--candidates", {"--autotune"});
}

struct Timing {
  double load_ms = 0;
  Latency latency;
  std::vector<HostSpan> host;  // of --profile: what came before the runs
  HostSpan last_run;
};

double Ms(int64_t since) { return static_cast<double>(NowNanoseconds() - since) * 1e-6; }

// One invocation: what it was told, what it holds, what it found.
class Runner {
 public:
  Runner(const Options& o, Tool& tool)
      : o_(o),
        tool_(tool),
        json_(tool.json()),
        verbose_(tool.verbose()),
        timed_(tool.Given("--repeat") || tool.Given("--duration") || tool.Given("--streams") ||
               o.time_by_op || !o.profile.empty()) {}

  absl::Status Run() {
    FORGE_RETURN_IF_ERROR(Prepare());
    FORGE_RETURN_IF_ERROR(Execute());
    if (o_.explain && !json_) std::cout << Explain(*sessions_[0], verbose_);
    if (!o_.profile.empty()) FORGE_RETURN_IF_ERROR(WriteProfile());
    if (!o_.dump.empty()) FORGE_RETURN_IF_ERROR(DumpArtifacts(*sessions_[0], o_.dump));
    if (!o_.output_dir.empty()) {
      FORGE_ASSIGN_OR_RETURN(files_, WriteOutputs(results_, o_.output_dir));
    }
    FORGE_ASSIGN_OR_RETURN(labels_, Labels(*model_, o_.presentation));
    if (!json_) PrintOutputs();
    if (json_) result_ = RunJson();
    absl::Status verdict = o_.compare.empty() ? absl::OkStatus() : CompareThere();
    if (absl::Status s = CompareWithExpected(); verdict.ok()) verdict = s;
    if (json_) tool_.SetResult(std::move(result_));
    return verdict;
  }

 private:
  SessionOptions MakeOptions(bool stepwise) {
    SessionOptions s;
    if (!(o_.outputs.size() == 1 && o_.outputs[0] == "all")) s.outputs = o_.outputs;
    s.dims = dims_;
    s.debug.fuse = !o_.no_fuse;
    s.debug.timestamps = !o_.profile.empty() || o_.time_by_op;
    s.debug.stepwise = stepwise;
    s.autotune = {.seconds = static_cast<double>(o_.autotune),
                  .candidates = static_cast<size_t>(o_.candidates)};
    s.precision = precision_;
    s.memory_limit = memory_limit_;
    s.max_iterations = static_cast<uint64_t>(o_.max_iterations);
    if (!json_)
      s.progress = [this](std::string_view what, size_t done, size_t total) {
        progress_(what, done, total);
      };
    if (!o_.dump.empty() && sessions_.empty())
      s.debug.observe = [this](std::string_view pass, const ir::Function& f) { DumpPass(pass, f); };
    return s;
  }

  void DumpPass(std::string_view pass, const ir::Function& f) {
    const std::string name = FileName(fmt::format("pass_{:02}_{}.txt", passes_++, pass));
    absl::Status s = WriteText(std::filesystem::path(o_.dump) / name, ir::ToText(f));
    if (!s.ok() && dump_status_.ok()) dump_status_ = s;
  }

  absl::Status Prepare() {
    FORGE_ASSIGN_OR_RETURN(precision_, ir::ParsePrecision(o_.precision));
    if (!o_.memory_limit.empty()) {
      FORGE_ASSIGN_OR_RETURN(memory_limit_, ParseBytes(o_.memory_limit));
    }
    if (!o_.dump.empty()) {
      std::error_code error;
      std::filesystem::create_directories(o_.dump, error);
      if (error) return Internal("cannot create the folder {}: {}", o_.dump, error.message());
    }
    const int64_t begin = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(model_, Model::Load(o_.model, [this](size_t done, size_t total) {
                             if (!json_) progress_("converting nodes", done, total);
                           }));
    timing_.load_ms = Ms(begin);
    Spent("load the model", begin);
    const ir::Function* main = model_->module().Find("main");
    if (main == nullptr) return InvalidArgument("{} has no function 'main'", o_.model);
    FORGE_ASSIGN_OR_RETURN(dims_, DimsOf(o_.dims, o_.shapes, *main));
    device_options_ = {.threads = o_.threads, .cache = !o_.no_cache};
    const int64_t opening = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(device_, OpenDevice(o_.device, device_options_));
    Spent("open the device", opening);
    const int64_t lowering = NowNanoseconds();
    while (sessions_.size() < static_cast<size_t>(o_.streams)) {
      FORGE_ASSIGN_OR_RETURN(auto session,
                             Session::Create(model_, device_, MakeOptions(o_.check_finite)));
      sessions_.push_back(std::move(session));
    }
    Spent("passes and weights", lowering);
    FORGE_RETURN_IF_ERROR(CheckParts());
    if (!o_.output_dir.empty()) FORGE_RETURN_IF_ERROR(FileNames(sessions_[0]->outputs()).status());
    const int64_t reading = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(
        inputs_, ReadInputs(o_.inputs, sessions_[0]->inputs(), dims_, *model_, o_.presentation));
    Spent("read inputs", reading);
    return absl::OkStatus();
  }

  // Options that need the steps of one plan.
  absl::Status CheckParts() const {
    if (!sessions_[0]->runs_in_parts()) return absl::OkStatus();
    for (const auto& [option, given] : {std::pair{"--check-finite", o_.check_finite},
                                        {"--steps", o_.steps},
                                        {"--time-by-op", o_.time_by_op},
                                        {"--profile", !o_.profile.empty()}})
      if (given)
        return Unimplemented(
            "{} needs one plan, but the types of this model depend on values of a run, which is "
            "divided into parts; --explain shows them",
            option);
    return absl::OkStatus();
  }

  void Spent(std::string_view what, int64_t since) {
    timing_.host.push_back({std::string(what), since, NowNanoseconds()});
  }

  absl::Status Execute() {
    if (o_.check_finite) return ExecuteChecked();
    // Each run advances the states of a model, so there is no warm-up unless times are asked for.
    const RunLimits limits{.warmup = o_.warmup >= 0 ? o_.warmup
                                     : timed_       ? 1
                                                    : 0,
                           .repeat = o_.repeat,
                           .seconds = o_.duration};
    const AfterRun after = [this](int64_t begin, bool timed) -> absl::Status {
      NoteRun(begin);
      if (!timed || !o_.time_by_op) return absl::OkStatus();
      return step_times_.Add(*sessions_[0]->executable());
    };
    FORGE_ASSIGN_OR_RETURN(results_, RunTimed(sessions_, inputs_, limits, after, timing_.latency));
    return dump_status_;
  }

  // The first run begins with binding.
  void NoteRun(int64_t begin) {
    if (timing_.last_run.name.empty()) {
      const auto bound = begin + static_cast<int64_t>(sessions_[0]->statistics().compile_ms * 1e6);
      timing_.host.push_back({"bind and compile", begin, bound});
      begin = bound;
    }
    timing_.last_run = {"run", begin, NowNanoseconds()};
  }

  absl::Status ExecuteChecked() {
    auto finite = [](const StepView& step) -> absl::Status {
      for (const ir::HostValue& v : step.out)
        for (int64_t i = 0; i < v.elements(); ++i)
          if (Has(kFloatTypes, v.dtype()) && !std::isfinite(v.f64(i)))
            return Internal("step {} ({}, {}) produces {} at element {} of {}", step.info.number,
                            step.info.label, step.info.kernel, v.f64(i), i, v.type().ToText());
      return absl::OkStatus();
    };
    const int64_t begin = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(results_, sessions_[0]->RunStepwise(inputs_, finite));
    const double ms = Ms(begin);
    timing_.latency = {.first_ms = ms, .runs_ms = {ms}, .wall_seconds = ms * 1e-3};
    return dump_status_;
  }

  absl::Status WriteProfile() {
    timing_.host.push_back(timing_.last_run);
    FORGE_ASSIGN_OR_RETURN(std::string trace, TraceJson(*sessions_[0], timing_.host));
    return WriteText(o_.profile, trace);
  }

  void PrintOutputs() {
    const DeviceInfo& d = device_->info();
    std::cout << Bold(fmt::format("{} on {}", std::filesystem::path(o_.model).filename().string(),
                                  d.name))
              << fmt::format(" ({}{})\n", d.id,
                             d.is_cpu && d.backend == "vulkan" ? ", a software device" : "");
    for (size_t i = 0; i < files_.size(); ++i) std::cout << "wrote " << files_[i].string() << "\n";
    bool named = false;
    for (const NamedTensor& t : results_) named |= PrintClasses(t);
    if (!named && (tool_.Given("--top") || tool_.Given("--labels")))
      std::cout << fmt::format("no output holds confidences of {} classes\n", labels_.size());
    if (o_.print || (o_.output_dir.empty() && !named && o_.expect.empty()))
      for (const NamedTensor& t : results_) std::cout << Summary(t) << "\n";
    if (timed_ || verbose_) std::cout << ToText(timing_.latency, sessions_.size()) << "\n";
    if (o_.time_by_op) std::cout << step_times_.Text();
  }

  bool PrintClasses(const NamedTensor& t) {
    const auto rows = TopClasses(t.value, labels_, o_.presentation.top);
    if (rows.empty()) return false;
    Table table({"input", "class", "confidence"});
    for (size_t r = 0; r < rows.size(); ++r)
      for (size_t k = 0; k < rows[r].size(); ++k)
        table.Add({k == 0 ? RowName(r, rows.size()) : "", rows[r][k].label,
                   fmt::format("{:.2f} %", rows[r][k].score * 100)});
    std::cout << table.Text();
    return true;
  }

  // The file a row came from, when each row is one picture.
  std::string RowName(size_t row, size_t rows) const {
    if (o_.inputs.size() != rows) return fmt::format("row {}", row);
    const std::string& argument = o_.inputs[row];
    return std::filesystem::path(argument.substr(argument.find('=') + 1)).filename().string();
  }

  absl::Status CompareThere() {
    FORGE_ASSIGN_OR_RETURN(DeviceRef other, OpenDevice(o_.compare, device_options_));
    SessionOptions options = MakeOptions(false);
    options.precision = PrecisionBeside(precision_, *other);
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(model_, other, options));
    FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> reference, session->Run(inputs_));
    FORGE_ASSIGN_OR_RETURN(const Comparison comparison,
                           Compare(results_, reference, Against::kReference, precision_));
    const std::string& name = other->info().id;
    if (!json_) PrintComparison(comparison, other->info());
    FORGE_ASSIGN_OR_RETURN(const std::string first_step, FirstDifferingStep());
    const OutputDifference* worst = comparison.worst();
    if (json_ && worst != nullptr)
      result_["compare"] = {
          {"device", name},
          {"worst",
           {{"output", worst->output}, {"rel_error", worst->rel_error}, {"nmse", worst->nmse}}},
          {"within", comparison.within()},
          {"first_step", first_step.empty() ? nlohmann::json() : nlohmann::json(first_step)}};
    const std::string where = !o_.steps            ? ""
                              : first_step.empty() ? "every step by itself is within bounds"
                                                   : "the first step that differs is " + first_step;
    if (!json_ && o_.steps) std::cout << where << "\n";
    if (comparison.within()) return absl::OkStatus();
    return Internal("output '{}' differs from {} by {:.2e}{}{}", worst->output, name,
                    worst->rel_error, where.empty() ? "" : "; ", where);
  }

  static void PrintComparison(const Comparison& comparison, const DeviceInfo& other) {
    Table table({"output", "relative error", "largest difference", "classes", "verdict"});
    for (const OutputDifference& d : comparison.outputs)
      table.Add({d.output, fmt::format("{:.2e}", d.rel_error), fmt::format("{:.2e}", d.max_abs),
                 d.same_classes ? "equal" : "differ",
                 d.within ? "within bounds" : "OUT OF BOUNDS"});
    std::cout << fmt::format("compared with {} ({})\n", other.name, other.id) << table.Text();
  }

  absl::Status CompareWithExpected() {
    if (o_.expect.empty()) return absl::OkStatus();
    FORGE_ASSIGN_OR_RETURN(const std::vector<ExpectedOutput> outputs,
                           CompareWithFiles(results_, o_.expect, o_.tolerance));
    Table table({"output", "largest difference", "largest relative", "outside", "verdict"});
    nlohmann::json list = nlohmann::json::array();
    const ExpectedOutput* first = nullptr;
    for (const ExpectedOutput& e : outputs) {
      if (e.outside > 0 && first == nullptr) first = &e;
      table.Add({e.name, fmt::format("{:.2e}", e.max_abs), fmt::format("{:.2e}", e.max_rel),
                 fmt::format("{} of {}", e.outside, e.elements),
                 e.outside == 0 ? "as expected" : "DIFFERS"});
      list.push_back({{"output", e.name},
                      {"max_abs", e.max_abs},
                      {"max_rel", e.max_rel},
                      {"outside", e.outside},
                      {"elements", e.elements}});
    }
    if (json_) result_["expect"] = {{"folder", o_.expect}, {"outputs", list}};
    if (!json_) std::cout << "compared with " << o_.expect << "\n" << table.Text();
    if (first == nullptr) return absl::OkStatus();
    return Internal("output '{}': {} of {} elements differ from {}; element {} is {}, not {}",
                    first->name, first->outside, first->elements, o_.expect, first->worst,
                    first->have, first->want);
  }

  absl::StatusOr<std::string> FirstDifferingStep();
  nlohmann::json RunJson() const;

  const Options& o_;
  Tool& tool_;
  bool json_, verbose_, timed_;
  Progress progress_;
  DeviceOptions device_options_;
  DimMap dims_;
  uint64_t memory_limit_ = UINT64_MAX;
  ir::Precision precision_;
  std::shared_ptr<const Model> model_;
  DeviceRef device_;
  std::vector<std::unique_ptr<Session>> sessions_;  // one for each stream
  std::vector<NamedTensor> inputs_, results_;
  std::vector<std::string> labels_;
  std::vector<std::filesystem::path> files_;
  Timing timing_;
  StepTimes step_times_;
  nlohmann::json result_;
  int passes_ = 0;
  absl::Status dump_status_;
};

// With --steps: runs step by step and evaluates each by the reference on the device's own operands.
// Empty when no step differs.
absl::StatusOr<std::string> Runner::FirstDifferingStep() {
  if (!o_.steps) return "";
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                         Session::Create(model_, device_, MakeOptions(true)));
  std::string first;
  auto check = [&](const StepView& step) -> absl::Status {
    if (!first.empty()) return absl::OkStatus();
    FORGE_ASSIGN_OR_RETURN(bool same, StepAgrees(step));
    if (!same)
      first = fmt::format("{} ({}, {})", step.info.number, step.info.label, step.info.kernel);
    return absl::OkStatus();
  };
  FORGE_RETURN_IF_ERROR(session->RunStepwise(inputs_, check).status());
  return first;
}

nlohmann::json Runner::RunJson() const {
  const DeviceInfo& d = device_->info();
  const SessionStatistics n = sessions_[0]->statistics();
  const CompileCounts kernels = device_->compile_counts();
  nlohmann::json out = {{"device", d.id},
                        {"driver", d.driver},
                        {"model", o_.model},
                        {"load_ms", timing_.load_ms + n.lower_ms},
                        {"compile_ms", n.compile_ms},
                        {"first_ms", timing_.latency.first_ms},
                        {"latency_ms", ToJson(timing_.latency)},
                        {"steps", n.steps},
                        {"dispatches", n.dispatches},
                        {"barriers", n.barriers},
                        {"kernels_compiled", kernels.compiled},
                        {"kernels_cached", kernels.cached},
                        {"kernels_printed", kernels.printed},
                        {"peak_bytes", n.arena_bytes + n.weight_bytes + n.staging_bytes},
                        {"weight_bytes", n.weight_bytes},
                        {"fallback", nlohmann::json::array()},
                        {"outputs", OutputsJson(results_, files_, o_.print)}};
  if (timed_) out["streams"] = sessions_.size();
  if (timed_) out["runs_per_second"] = timing_.latency.PerSecond();
  if (o_.time_by_op) out["time_by_op"] = step_times_.ByOp();
  if (o_.time_by_op) out["step_times"] = step_times_.BySteps();
  if (o_.explain) out["plan"] = PlanJson(*sessions_[0], verbose_);
  for (size_t i = 0; i < results_.size(); ++i) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& row : TopClasses(results_[i].value, labels_, o_.presentation.top)) {
      rows.emplace_back(nlohmann::json::array());
      for (const Scored& s : row) rows.back().push_back({{"class", s.label}, {"score", s.score}});
    }
    if (!rows.empty()) out["outputs"][i]["classes"] = std::move(rows);
  }
  return out;
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool(
      "forge-run", "Runs a model on any device.",
      {"forge-run --device vulkan model.bin --input image=shoe.png",
       "forge-run --device cpu model.onnx --input x=random:1 --dim x.0=6 --compare reference",
       "forge-run --device vulkan model.bin --input x=random --shape x=1,3,640,640 --duration 5 "
       "--time-by-op"});
  tool.AddJson();
  Options options;
  AddOptions(tool, options);
  return tool.Run(argc, argv, [&] { return Runner(options, tool).Run(); });
}
