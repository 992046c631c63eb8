// SPDX-License-Identifier: Apache-2.0
// forge-run: one model, one device, one answer.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "runtime/backends.h"
#include "runtime/compare.h"
#include "runtime/report.h"
#include "tools/support/dims.h"
#include "tools/support/tensor_io.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string device = "auto", model, compare, output_dir, profile, dump, memory_limit;
  std::vector<std::string> inputs, outputs, dims;
  Presentation presentation;
  bool print = false, explain = false, check_finite = false, no_cache = false, steps = false;
  int repeat = 1, warmup = 0, threads = 0, autotune = 0, candidates = 32;
};

void AddOptions(Tool& tool, Options& o) {
  tool.Argument("model", o.model, "model.bin or .onnx");
  tool.Option("--device NAME", o.device,
              "auto, cpu, vulkan, cuda or reference, with :N or :NAME-PART");
  tool.List("--input NAME=VALUE", o.inputs,
            "NAME=FILE (.npy .npz .png .jpg), NAME=random[:SEED] or NAME=VALUE");
  tool.Option("--preprocess SPEC", o.presentation.preprocess,
              "For pictures: resize=HxW,mean=..,std=..,layout=nchw|nhwc,color=rgb|bgr|gray");
  tool.Option("--labels FILE", o.presentation.labels, "A file with a class name on each line");
  tool.Option("--top N", o.presentation.top, {1, 1000}, "How many classes to name");
  tool.List("--dim SYMBOL=N", o.dims, "SYMBOL=N binds a dynamic dimension");
  tool.List("--output NAME", o.outputs, "An output or any inner value by name, or all");
  tool.Option("--output-dir DIR", o.output_dir, "Write outputs as DIR/NAME.npy");
  tool.Flag("--print", o.print, "Show shapes, statistics and first values of outputs");
  tool.Flag("--check-finite", o.check_finite,
            "Stop at the first step that makes a NaN or an infinity");
  tool.Option("--compare DEVICE", o.compare, "Run there too and compare; exit 1 beyond the bound");
  tool.Flag("--steps", o.steps, "With --compare: name the first step that differs");
  tool.Option("--repeat N", o.repeat, {1, 1000000}, "Timed runs");
  tool.Option("--warmup N", o.warmup, {0, 1000000}, "Runs before the timed ones");
  tool.Option("--profile FILE", o.profile, "Write a trace of one run that Perfetto opens");
  tool.Flag("--explain", o.explain,
            "Show placement and kernel of every step, and the memory plan; with -v why steps are "
            "not fused");
  tool.Option("--dump DIR", o.dump, "Write the function after each pass and every kernel into DIR");
  tool.Option("--threads N", o.threads, {0, 4096}, "Threads of the host; 0: all");
  tool.Option("--memory-limit BYTES", o.memory_limit,
              "Refuse a plan that needs more on the device: 300M, 2G");
  tool.Option("--autotune SECONDS", o.autotune, {0, 86400},
              "Search for faster kernels first, and keep what is found for later runs");
  tool.Option("--candidates N", o.candidates, {2, 10000}, "--autotune: tried for each step");
  tool.Flag("--no-cache", o.no_cache,
            "Neither read nor write compiled kernels in the cache folder");
}

struct Timing {
  double load_ms = 0, first_ms = 0;
  std::vector<double> runs_ms;
  std::vector<HostSpan> host;  // of --profile: what came before, and the last run
  double At(double share) const {
    std::vector<double> sorted = runs_ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size()))) -
                  (share > 0 ? 1 : 0)];
  }
};

double Ms(int64_t since) { return static_cast<double>(NowNanoseconds() - since) * 1e-6; }

// One invocation: what it was told, what it holds, what it found.
class Runner {
 public:
  Runner(const Options& o, const Tool& tool)
      : o_(o), json_(tool.json()), verbose_(tool.verbose()) {}

  absl::Status Run() {
    FORGE_RETURN_IF_ERROR(Prepare());
    FORGE_RETURN_IF_ERROR(Execute());
    if (o_.explain && !json_) std::cout << Explain(*session_, verbose_);
    if (!o_.profile.empty()) FORGE_RETURN_IF_ERROR(WriteProfile());
    if (!o_.dump.empty()) FORGE_RETURN_IF_ERROR(DumpArtifacts(*session_, o_.dump));
    if (!o_.output_dir.empty()) {
      FORGE_ASSIGN_OR_RETURN(files_, WriteOutputs(results_, o_.output_dir));
    }
    if (!json_) FORGE_RETURN_IF_ERROR(PrintOutputs());
    absl::Status verdict = absl::OkStatus();
    if (!o_.compare.empty()) verdict = CompareThere();
    if (json_ && verdict.ok()) PrintJson();
    return verdict;
  }

 private:
  SessionOptions MakeOptions(bool stepwise) {
    SessionOptions s;
    if (!(o_.outputs.size() == 1 && o_.outputs[0] == "all")) s.outputs = o_.outputs;
    s.dims = dims_;
    s.timestamps = !o_.profile.empty();
    s.stepwise = stepwise;
    s.autotune = {.seconds = static_cast<double>(o_.autotune),
                  .candidates = static_cast<size_t>(o_.candidates)};
    s.memory_limit = memory_limit_;
    if (!json_)
      s.progress = [this](std::string_view what, size_t done, size_t total) {
        progress_(what, done, total);
      };
    if (!o_.dump.empty())
      s.observe = [this](std::string_view pass, const ir::Function& f) { DumpPass(pass, f); };
    return s;
  }

  void DumpPass(std::string_view pass, const ir::Function& f) {
    const std::string text = ir::ToText(f);
    const std::string name = FileName(fmt::format("pass_{:02}_{}.txt", passes_++, pass));
    absl::Status s =
        WriteFile(std::filesystem::path(o_.dump) / name,
                  std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    if (!s.ok() && dump_status_.ok()) dump_status_ = s;
  }

  absl::Status Prepare() {
    FORGE_ASSIGN_OR_RETURN(dims_, ParseDims(o_.dims));
    if (!o_.memory_limit.empty()) {
      FORGE_ASSIGN_OR_RETURN(memory_limit_, ParseBytes(o_.memory_limit));
    }
    if (!o_.dump.empty()) {
      std::error_code error;
      std::filesystem::create_directories(o_.dump, error);
      if (error) return Internal("the folder {} cannot be made: {}", o_.dump, error.message());
    }
    const int64_t begin = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(model_, Model::Load(o_.model, [this](size_t done, size_t total) {
                             if (!json_) progress_("converting nodes", done, total);
                           }));
    timing_.load_ms = Ms(begin);
    Spent("load the model", begin);
    device_options_ = {.threads = o_.threads, .cache = !o_.no_cache};
    const int64_t opening = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(device_, OpenDevice(o_.device, device_options_));
    Spent("open the device", opening);
    const int64_t lowering = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(session_,
                           Session::Create(model_, device_, MakeOptions(o_.check_finite)));
    Spent("passes and weights", lowering);
    return ReadAll();
  }

  void Spent(std::string_view what, int64_t since) {
    timing_.host.push_back({std::string(what), since, NowNanoseconds()});
  }

  absl::Status ReadAll() {
    const int64_t begin = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(
        inputs_, ReadInputs(o_.inputs, session_->inputs(), dims_, *model_, o_.presentation));
    Spent("read inputs", begin);
    return absl::OkStatus();
  }

  absl::Status Execute() {
    if (o_.check_finite) return ExecuteChecked();
    for (int i = 0; i < o_.warmup + o_.repeat; ++i) {
      const int64_t begin = NowNanoseconds();
      FORGE_ASSIGN_OR_RETURN(results_, session_->Run(inputs_));
      const double ms = Ms(begin);
      NoteRun(begin, i == 0, i + 1 == o_.warmup + o_.repeat);
      if (i == 0) timing_.first_ms = ms;
      if (i >= o_.warmup) timing_.runs_ms.push_back(ms);
    }
    return dump_status_;
  }

  // The first run begins with binding.
  void NoteRun(int64_t begin, bool first, bool last) {
    if (first) {
      const auto bound = begin + static_cast<int64_t>(session_->statistics().compile_ms * 1e6);
      timing_.host.push_back({"bind and compile", begin, bound});
      begin = bound;
    }
    if (last) Spent("run", begin);
  }

  absl::Status ExecuteChecked() {
    auto finite = [](const StepView& step) -> absl::Status {
      for (const ir::HostValue& v : step.out)
        for (int64_t i = 0; i < v.elements(); ++i)
          if (Has(kFloatTypes, v.dtype()) && !std::isfinite(v.f64(i)))
            return Internal("step {} ({}, {}) makes {} at element {} of {}", step.info.number,
                            step.info.label, step.info.kernel, v.f64(i), i, v.type().ToText());
      return absl::OkStatus();
    };
    const int64_t begin = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(results_, session_->RunStepwise(inputs_, finite));
    timing_.runs_ms = {timing_.first_ms = Ms(begin)};
    NoteRun(begin, true, true);
    return dump_status_;
  }

  absl::Status WriteProfile() {
    FORGE_ASSIGN_OR_RETURN(std::string trace, TraceJson(*session_, timing_.host));
    return WriteFile(o_.profile,
                     std::span(reinterpret_cast<const uint8_t*>(trace.data()), trace.size()));
  }

  absl::Status PrintOutputs() {
    const DeviceInfo& d = device_->info();
    std::cout << Bold(fmt::format("{} on {}", std::filesystem::path(o_.model).filename().string(),
                                  d.name))
              << fmt::format(" ({}{})\n", d.id,
                             d.is_cpu && d.backend == "vulkan" ? ", a software device" : "");
    for (size_t i = 0; i < files_.size(); ++i) std::cout << "wrote " << files_[i].string() << "\n";
    FORGE_ASSIGN_OR_RETURN(std::vector<std::string> labels, Labels(*model_, o_.presentation));
    bool named = false;
    for (const NamedTensor& t : results_) named |= PrintClasses(t, labels);
    if (o_.print || (o_.output_dir.empty() && !named))
      for (const NamedTensor& t : results_) std::cout << Summary(t) << "\n";
    if (o_.repeat > 1 || verbose_) {
      std::cout << fmt::format("latency: min {}, median {}, p95 {} of {} runs; {:.1f} runs/s\n",
                               Duration(timing_.At(0) * 1e-3), Duration(timing_.At(0.5) * 1e-3),
                               Duration(timing_.At(0.95) * 1e-3), timing_.runs_ms.size(),
                               1e3 / timing_.At(0.5));
    }
    return absl::OkStatus();
  }

  bool PrintClasses(const NamedTensor& t, const std::vector<std::string>& labels) {
    const auto rows = TopClasses(t.value, labels, o_.presentation.top);
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
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(model_, other, MakeOptions(false)));
    FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> reference, session->Run(inputs_));
    FORGE_ASSIGN_OR_RETURN(comparison_, Compare(results_, reference));
    other_name_ = other->info().id;
    if (!json_) {
      Table table({"output", "relative error", "largest difference", "classes", "verdict"});
      for (const OutputDifference& d : comparison_.outputs)
        table.Add({d.output, fmt::format("{:.2e}", d.rel_error), fmt::format("{:.2e}", d.max_abs),
                   d.same_classes ? "equal" : "differ",
                   d.within ? "within bounds" : "OUT OF BOUNDS"});
      std::cout << fmt::format("compared with {} ({})\n", other->info().name, other_name_)
                << table.Text();
    }
    FORGE_ASSIGN_OR_RETURN(const std::string where, CompareSteps());
    if (comparison_.within()) return absl::OkStatus();
    const OutputDifference& worst = *comparison_.worst();
    return Internal("output '{}' differs from {} by {:.2e}{}{}", worst.output, other_name_,
                    worst.rel_error, where.empty() ? "" : "; ", where);
  }

  // A sentence on the first step that differs, with --steps.
  absl::StatusOr<std::string> CompareSteps() {
    if (!o_.steps) return "";
    FORGE_ASSIGN_OR_RETURN(first_step_, FirstDifferingStep());
    const std::string verdict = first_step_.empty()
                                    ? "every step by itself is within bounds"
                                    : "the first step that differs is " + first_step_;
    if (!json_) std::cout << verdict << "\n";
    return verdict;
  }

  absl::StatusOr<std::string> FirstDifferingStep();

  void PrintJson();

  const Options& o_;
  bool json_, verbose_;
  Progress progress_;
  DeviceOptions device_options_;
  std::map<std::string, int64_t> dims_;
  uint64_t memory_limit_ = UINT64_MAX;
  std::shared_ptr<const Model> model_;
  DeviceRef device_;
  std::unique_ptr<Session> session_;
  std::vector<NamedTensor> inputs_, results_;
  std::vector<std::filesystem::path> files_;
  Timing timing_;
  Comparison comparison_;
  std::string other_name_, first_step_;
  int passes_ = 0;
  absl::Status dump_status_;
};

// Runs step by step and evaluates each by the reference on the device's own operands.
absl::StatusOr<std::string> Runner::FirstDifferingStep() {
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

void Runner::PrintJson() {
  const DeviceInfo& d = device_->info();
  const SessionStatistics n = session_->statistics();
  const CompileCounts kernels = device_->compile_counts();
  nlohmann::json outputs = nlohmann::json::array();
  for (size_t i = 0; i < results_.size(); ++i) {
    outputs.push_back(
        {{"name", results_[i].name},
         {"dtype", std::string(Name(results_[i].value.dtype()))},
         {"shape",
          std::vector<int64_t>(results_[i].value.shape().begin(), results_[i].value.shape().end())},
         {"file", i < files_.size() ? nlohmann::json(files_[i].string()) : nlohmann::json()}});
  }
  nlohmann::json out = {{"device", d.id},
                        {"driver", d.driver},
                        {"model", o_.model},
                        {"load_ms", timing_.load_ms + n.lower_ms},
                        {"compile_ms", n.compile_ms},
                        {"first_ms", timing_.first_ms},
                        {"latency_ms",
                         {{"min", timing_.At(0)},
                          {"median", timing_.At(0.5)},
                          {"p95", timing_.At(0.95)},
                          {"runs", timing_.runs_ms.size()}}},
                        {"steps", n.steps},
                        {"dispatches", n.dispatches},
                        {"barriers", n.barriers},
                        {"kernels_compiled", kernels.compiled},
                        {"kernels_cached", kernels.cached},
                        {"kernels_printed", kernels.printed},
                        {"peak_bytes", n.arena_bytes + n.weight_bytes + n.staging_bytes},
                        {"weight_bytes", n.weight_bytes},
                        {"fallback", nlohmann::json::array()},
                        {"outputs", outputs}};
  if (const OutputDifference* worst = comparison_.worst()) {
    out["compare"] = {
        {"device", other_name_},
        {"worst",
         {{"output", worst->output}, {"rel_error", worst->rel_error}, {"nmse", worst->nmse}}},
        {"first_step", first_step_.empty() ? nlohmann::json() : nlohmann::json(first_step_)}};
  }
  std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool(
      "forge-run", "Runs a model on any device.",
      {"forge-run --device vulkan model.bin --input image=shoe.png",
       "forge-run --device cpu model.onnx --input x=random:1 --dim x.0=6 --compare reference"});
  tool.AddJson();
  Options options;
  AddOptions(tool, options);
  return tool.Run(argc, argv, [&] { return Runner(options, tool).Run(); });
}
