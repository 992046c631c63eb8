// SPDX-License-Identifier: Apache-2.0
// forge-bench: how fast ops, models and devices are.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "ir/type/precision.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "runtime/plan/autotune.h"
#include "runtime/session.h"
#include "tools/run/timed_runs.h"
#include "tools/support/benchmark.h"
#include "tools/support/case_filter.h"
#include "tools/support/case_text.h"
#include "tools/support/tensor_io.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string what, filter, choice, precision = "exact";
  std::vector<std::string> devices, dims, shapes, cases;
  int threads = 0, repeat = 7, warmup = 1, streams = 1, seconds = 10, candidates = 32;
  double duration = -1;
};

struct Row {
  std::string name, device, dtype;
  double gflops = 0, gbps = 0;
  OpTime time;
};

// A table, or with --json what Run prints.
void ShowRows(Tool& tool, const Table& table, nlohmann::json rows) {
  if (tool.json())
    tool.SetResult(std::move(rows));
  else
    std::cout << table.Text();
}

class Report {
 public:
  void Add(const Row& r) {
    // What dispatches nothing takes no time, and has no rate.
    const auto rate = [](double r) { return std::isfinite(r) ? fmt::format("{:.2f}", r) : "-"; };
    const auto percent = [](double share) {
      return std::isfinite(share) ? fmt::format("{:.0f} %", share * 100) : "-";
    };
    table_.Add({r.name, r.device, r.dtype, fmt::format("{:.1f}", r.time.seconds * 1e6),
                rate(r.gflops), rate(r.gbps), percent(r.time.of_fma), percent(r.time.of_read),
                percent(r.time.of_copy)});
    rows_.push_back({{"name", r.name},
                     {"device", r.device},
                     {"dtype", r.dtype},
                     {"time_us", r.time.seconds * 1e6},
                     {"gflops", r.gflops},
                     {"gbps", r.gbps},
                     {"of_fma", r.time.of_fma},
                     {"of_read", r.time.of_read},
                     {"of_copy", r.time.of_copy},
                     {"peak_share", std::max(r.time.of_fma, r.time.of_copy)}});
  }
  void Show(Tool& tool) { ShowRows(tool, table_, std::move(rows_)); }

 private:
  Table table_{
      {"name", "device", "dtype", "time us", "GFLOP/s", "GB/s", "of FMA", "of read", "of copy"}};
  nlohmann::json rows_ = nlohmann::json::array();
};

absl::Status BenchPeak(const std::vector<DeviceRef>& devices, Tool& tool) {
  Table table({"device", "name", "FMA GFLOP/s", "read GB/s", "copy GB/s", "upload GB/s"});
  nlohmann::json out = nlohmann::json::array();
  for (const DeviceRef& d : devices) {
    FORGE_ASSIGN_OR_RETURN(Peak p, MeasurePeak(d));
    table.Add({d->info().id, d->info().name, fmt::format("{:.1f}", p.fma_gflops),
               fmt::format("{:.1f}", p.read_gbps), fmt::format("{:.1f}", p.copy_gbps),
               fmt::format("{:.1f}", p.upload_gbps)});
    out.push_back({{"device", d->info().id},
                   {"fma_gflops", p.fma_gflops},
                   {"read_gbps", p.read_gbps},
                   {"copy_gbps", p.copy_gbps},
                   {"upload_gbps", p.upload_gbps}});
  }
  ShowRows(tool, table, std::move(out));
  return absl::OkStatus();
}

Row MakeRow(const ir::ConcreteCase& c, const DeviceRef& d, const OpTime& t) {
  Row r{.name = c.ToText(), .device = d->info().id, .dtype = "", .time = t};
  for (const ir::Type& type : c.types())
    if (r.dtype.empty() && type) r.dtype = std::string(Name(type.dtype()));
  r.gflops = t.flops / t.seconds * 1e-9;
  r.gbps = t.bytes / t.seconds * 1e-9;
  return r;
}

// The cases that --case names, or those of all ops that are for benchmarks.
absl::StatusOr<std::vector<ir::ConcreteCase>> ChosenCases(const Options& o) {
  FORGE_ASSIGN_OR_RETURN(const CaseFilter filter, CaseFilter::Parse(o.filter));
  std::vector<ir::ConcreteCase> chosen;
  for (const std::string& text : o.cases) {
    FORGE_ASSIGN_OR_RETURN(std::vector<ir::ConcreteCase> cases, ParseCase(text));
    std::move(cases.begin(), cases.end(), std::back_inserter(chosen));
  }
  if (!o.cases.empty()) return chosen;
  for (const ir::OpDef* def : ir::AllOps()) {
    FORGE_ASSIGN_OR_RETURN(std::vector<ir::ConcreteCase> cases, ir::ConcreteCases(*def));
    for (ir::ConcreteCase& c : cases)
      if (c.bench && c.refuse.empty() && filter.Takes(c)) chosen.push_back(std::move(c));
  }
  return chosen;
}

absl::Status TimeOps(const Options& o, std::span<const ir::ConcreteCase> cases, const DeviceRef& d,
                     Report& report) {
  FORGE_ASSIGN_OR_RETURN(Yardstick yardstick, Yardstick::Create(d));
  for (const ir::ConcreteCase& c : cases) {
    if (OpOnDevice::Support(*d, c.op, c.types()).way == OpSupport::Way::kRefused) continue;
    auto time = TimeOp(d, c, o.choice, yardstick);
    if (!time.ok()) return Annotate(time.status(), c.ToText());
    report.Add(MakeRow(c, d, *time));
  }
  return absl::OkStatus();
}

absl::Status BenchOps(const Options& o, const std::vector<DeviceRef>& devices, Tool& tool) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<ir::ConcreteCase> cases, ChosenCases(o));
  Report report;
  absl::Status status;
  for (size_t i = 0; i < devices.size() && status.ok(); ++i)
    status = TimeOps(o, cases, devices[i], report);
  report.Show(tool);  // what was measured before a failure, too
  return status;
}

// What a search found, as rows.
struct Tuned {
  Table table{
      {"name", "device", "default", "time us", "found", "time us", "gain", "tried", "wrong"}};
  nlohmann::json rows = nlohmann::json::array();

  void Add(const Autotuned& a, const DeviceRef& d) {
    table.Add({a.name, d->info().id, a.choice_before, fmt::format("{:.1f}", a.seconds_before * 1e6),
               a.choice == a.choice_before ? "the default" : a.choice,
               fmt::format("{:.1f}", a.seconds * 1e6),
               fmt::format("{:.2f}x", a.seconds_before / a.seconds), std::to_string(a.tried),
               std::to_string(a.wrong)});
    rows.push_back({{"name", a.name},
                    {"device", d->info().id},
                    {"default", a.choice_before},
                    {"default_us", a.seconds_before * 1e6},
                    {"found", a.choice},
                    {"time_us", a.seconds * 1e6},
                    {"tried", a.tried},
                    {"wrong", a.wrong}});
  }
};

absl::Status TuneOps(const Options& o, std::span<const ir::ConcreteCase> cases, const DeviceRef& d,
                     Tuned& tuned) {
  const AutotuneLimits limits{.seconds = static_cast<double>(o.seconds),
                              .candidates = static_cast<size_t>(o.candidates)};
  for (const ir::ConcreteCase& c : cases) {
    const ir::Types in = c.types();
    if (OpOnDevice::Support(*d, c.op, in).way != OpSupport::Way::kKernel) continue;
    FORGE_ASSIGN_OR_RETURN(const ir::Types out, c.op.Infer(in));
    const CompileRequest request[] = {{&c.op, in, out, c.ToText()}};
    FORGE_ASSIGN_OR_RETURN(const std::vector<Autotuned> found,
                           Autotune(d, request, limits, [](size_t, size_t) {}));
    for (const Autotuned& a : found) tuned.Add(a, d);
  }
  return absl::OkStatus();
}

// Searches among the choices for every case that is benched, and shows what it found.
absl::Status BenchTune(const Options& o, const std::vector<DeviceRef>& devices, Tool& tool) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<ir::ConcreteCase> cases, ChosenCases(o));
  Tuned tuned;
  absl::Status status;
  for (size_t i = 0; i < devices.size() && status.ok(); ++i)
    status = TuneOps(o, cases, devices[i], tuned);
  ShowRows(tool, tuned.table, std::move(tuned.rows));
  return status;
}

absl::Status BenchModel(const Options& o, const std::vector<DeviceRef>& devices, Tool& tool) {
  FORGE_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, Model::Load(o.what));
  const ir::Function* main = model->module().Find("main");
  if (main == nullptr) return InvalidArgument("{} has no function 'main'", o.what);
  FORGE_ASSIGN_OR_RETURN(const DimMap dims, DimsOf(o.dims, o.shapes, *main));
  SessionOptions options;
  options.dims = dims;
  FORGE_ASSIGN_OR_RETURN(options.precision, ir::ParsePrecision(o.precision));
  const RunLimits limits{.warmup = o.warmup, .repeat = o.repeat, .seconds = o.duration};
  Table table(
      {"model", "device", "min ms", "median ms", "p99 ms", "runs/s", "dispatches", "arena"});
  nlohmann::json out = nlohmann::json::array();
  for (const DeviceRef& d : devices) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < o.streams; ++i) {
      FORGE_ASSIGN_OR_RETURN(auto session, Session::Create(model, d, options));
      sessions.push_back(std::move(session));
    }
    const Session& first = *sessions[0];
    std::vector<std::string> arguments;
    for (const auto& port : first.inputs()) arguments.push_back(port.name + "=random:1");
    FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> inputs,
                           ReadInputs(arguments, first.inputs(), dims, *model, {}));
    Latency latency;
    FORGE_RETURN_IF_ERROR(RunTimed(sessions, inputs, limits, {}, latency).status());
    table.Add({o.what, d->info().id, fmt::format("{:.3f}", latency.At(0)),
               fmt::format("{:.3f}", latency.At(0.5)), fmt::format("{:.3f}", latency.At(0.99)),
               fmt::format("{:.1f}", latency.PerSecond()),
               std::to_string(first.statistics().dispatches),
               Bytes(first.statistics().arena_bytes)});
    out.push_back({{"name", o.what},
                   {"device", d->info().id},
                   {"dtype", nullptr},
                   {"time_us", latency.At(0.5) * 1e3},
                   {"min_us", latency.At(0) * 1e3},
                   {"latency_ms", ToJson(latency)},
                   {"streams", o.streams},
                   {"runs_per_second", latency.PerSecond()},
                   {"gflops", nullptr},
                   {"gbps", nullptr},
                   {"peak_share", nullptr}});
  }
  ShowRows(tool, table, std::move(out));
  return absl::OkStatus();
}

// errors: an option that has no part in what is measured
absl::Status CheckOptions(const Options& o, const Tool& tool) {
  if (o.what == "peak") return tool.Only("peak", {"--device", "--threads"});
  if (o.what == "ops")
    return tool.Only("ops", {"--device", "--threads", "--filter", "--case", "--choice"});
  if (o.what == "tune")
    return tool.Only("tune",
                     {"--device", "--threads", "--filter", "--case", "--seconds", "--candidates"});
  return tool.Only("a model", {"--device", "--threads", "--dim", "--shape", "--precision",
                               "--repeat", "--duration", "--streams", "--warmup"});
}

absl::Status Run(const Options& o, Tool& tool) {
  FORGE_RETURN_IF_ERROR(CheckOptions(o, tool));
  std::vector<DeviceRef> devices;
  for (const std::string& name : o.devices) {
    FORGE_ASSIGN_OR_RETURN(DeviceRef d, OpenDevice(name, {.threads = o.threads, .cache = true}));
    if (d->info().backend == "reference" && (o.what == "peak" || o.what == "ops"))
      return InvalidArgument(
          "{} on the reference, which has no rates to compare with: choose another device", o.what);
    devices.push_back(std::move(d));
  }
  if (o.what == "tune") return BenchTune(o, devices, tool);
  if (o.what == "peak") return BenchPeak(devices, tool);
  if (o.what == "ops") return BenchOps(o, devices, tool);
  return BenchModel(o, devices, tool);
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool("forge-bench", "Times ops, a model, or the device itself.",
            {"forge-bench ops --device vulkan --filter 'matmul.*512'",
             "forge-bench ops --device cuda --case 'matmul(f16[4096,4096], f16[4096,4096])'",
             "forge-bench peak --device vulkan",
             "forge-bench tune --device vulkan --filter '^matmul' --seconds 30",
             "forge-bench model.bin --device cpu --device vulkan --dim N=1"});
  tool.AddJson();
  Options o;
  tool.Argument("what", o.what, "ops, peak, tune, or a model");
  tool.Devices(o.devices, "Devices to use; default: auto");
  tool.Option("--filter REGEX", o.filter, "ops, tune: select the cases whose text matches");
  tool.List("--case TEXT", o.cases,
            "ops, tune: this case instead, as in 'matmul(f16[64,32], f16[32,8])'");
  tool.List("--dim SYMBOL=N", o.dims, "Model: bind an open dimension");
  tool.List("--shape NAME=DIMS", o.shapes,
            "Model: bind the open dimensions of an input, as in NAME=1,3,480,640");
  tool.Option("--threads N", o.threads, {0, 4096}, "Number of host threads; 0: all");
  tool.Option("--seconds N", o.seconds, {1, 86400}, "tune: time for each case");
  tool.Option("--choice TEXT", o.choice,
              "ops: compile every case in this way, one that tune has shown");
  tool.Option("--candidates N", o.candidates, {2, 10000}, "tune: choices tried for each case");
  tool.Option("--precision NAME", o.precision,
              "Model: of products and convolutions: exact, f16, bf16 or fast");
  tool.Option("--repeat N", o.repeat, {1, 1000000}, "Model: number of timed runs");
  tool.Option("--duration SECONDS", o.duration,
              "Model: duration of the timed runs, instead of --repeat");
  tool.Option("--streams N", o.streams, {1, 1024},
              "Model: number of concurrent sessions, one thread each");
  tool.Option("--warmup N", o.warmup, {0, 1000000},
              "Model: number of untimed runs before the timed ones");
  tool.Excludes("--case", {"--filter"});
  tool.Excludes("--duration", {"--repeat"});
  return tool.Run(argc, argv, [&] {
    if (o.devices.empty()) o.devices = {"auto"};
    return Run(o, tool);
  });
}
