// SPDX-License-Identifier: Apache-2.0
// forge-bench: how fast ops, models and devices are.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "runtime/autotune.h"
#include "runtime/backends.h"
#include "runtime/op_runner.h"
#include "runtime/session.h"
#include "tools/support/benchmark.h"
#include "tools/support/case_filter.h"
#include "tools/support/dims.h"
#include "tools/support/tensor_io.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"

namespace forge::tools {
namespace {

struct Options {
  std::string what, filter;
  std::vector<std::string> devices, dims;
  int threads = 0, repeat = 7, seconds = 10, candidates = 32;
};

struct Row {
  std::string name, device, dtype;
  double gflops = 0, gbps = 0;
  OpTime time;
};

class Report {
 public:
  explicit Report(bool json) : json_(json) {}
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
  void Print() const {
    if (json_)
      std::cout << rows_.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    else
      std::cout << table_.Text();
  }

 private:
  bool json_;
  Table table_{
      {"name", "device", "dtype", "time us", "GFLOP/s", "GB/s", "of FMA", "of read", "of copy"}};
  nlohmann::json rows_ = nlohmann::json::array();
};

absl::Status BenchPeak(const std::vector<DeviceRef>& devices, bool json) {
  Table table({"device", "name", "FMA GFLOP/s", "read GB/s", "copy GB/s"});
  nlohmann::json out = nlohmann::json::array();
  for (const DeviceRef& d : devices) {
    FORGE_ASSIGN_OR_RETURN(Peak p, MeasurePeak(d));
    table.Add({d->info().id, d->info().name, fmt::format("{:.1f}", p.fma_gflops),
               fmt::format("{:.1f}", p.read_gbps), fmt::format("{:.1f}", p.copy_gbps)});
    out.push_back({{"device", d->info().id},
                   {"fma_gflops", p.fma_gflops},
                   {"read_gbps", p.read_gbps},
                   {"copy_gbps", p.copy_gbps}});
  }
  if (json)
    std::cout << out.dump(2) << "\n";
  else
    std::cout << table.Text();
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

absl::Status BenchOps(const Options& o, const std::vector<DeviceRef>& devices, bool json) {
  FORGE_ASSIGN_OR_RETURN(const CaseFilter filter, CaseFilter::Parse(o.filter));
  Report report(json);
  for (const DeviceRef& d : devices) {
    FORGE_ASSIGN_OR_RETURN(Yardstick yardstick, Yardstick::Create(d));
    for (const ir::OpDef* def : ir::AllOps()) {
      FORGE_ASSIGN_OR_RETURN(std::vector<ir::ConcreteCase> cases, ir::ConcreteCases(*def));
      for (const ir::ConcreteCase& c : cases) {
        if (!c.bench || !c.refuse.empty() || !filter.Takes(c)) continue;
        if (!OpRunner::Supports(*d, c.op, c.types())) continue;
        auto time = TimeOp(d, c, yardstick);
        if (!time.ok()) return Annotate(time.status(), c.ToText());
        report.Add(MakeRow(c, d, *time));
      }
    }
  }
  report.Print();
  return absl::OkStatus();
}

// Searches among the choices for every case that is benched, and shows what it found.
absl::Status BenchTune(const Options& o, const std::vector<DeviceRef>& devices, bool json) {
  FORGE_ASSIGN_OR_RETURN(const CaseFilter filter, CaseFilter::Parse(o.filter));
  const AutotuneLimits limits{.seconds = static_cast<double>(o.seconds),
                              .candidates = static_cast<size_t>(o.candidates)};
  Table table(
      {"name", "device", "default", "time us", "found", "time us", "gain", "tried", "wrong"});
  nlohmann::json rows = nlohmann::json::array();
  for (const DeviceRef& d : devices)
    for (const ir::OpDef* def : ir::AllOps()) {
      FORGE_ASSIGN_OR_RETURN(const std::vector<ir::ConcreteCase> cases, ir::ConcreteCases(*def));
      for (const ir::ConcreteCase& c : cases) {
        if (!c.bench || !c.refuse.empty() || !filter.Takes(c)) continue;
        const ir::Types in = c.types();
        if (!OpRunner::Supports(*d, c.op, in)) continue;
        FORGE_ASSIGN_OR_RETURN(const ir::Types out, c.op.Infer(in));
        const CompileRequest request[] = {{&c.op, in, out, c.ToText()}};
        FORGE_ASSIGN_OR_RETURN(const std::vector<Autotuned> found,
                               Autotune(d, request, limits, [](size_t, size_t) {}));
        for (const Autotuned& a : found) {
          table.Add({a.name, d->info().id, a.choice_before,
                     fmt::format("{:.1f}", a.seconds_before * 1e6),
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
      }
    }
  if (json)
    std::cout << rows.dump(2) << "\n";
  else
    std::cout << table.Text();
  return absl::OkStatus();
}

absl::Status BenchModel(const Options& o, const std::vector<DeviceRef>& devices, bool json) {
  FORGE_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, Model::Load(o.what));
  FORGE_ASSIGN_OR_RETURN(auto dims, ParseDims(o.dims));
  Table table({"model", "device", "min ms", "median ms", "dispatches", "arena"});
  nlohmann::json out = nlohmann::json::array();
  for (const DeviceRef& d : devices) {
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model, d));
    std::vector<std::string> arguments;
    for (const auto& port : session->inputs()) arguments.push_back(port.name + "=random:1");
    FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> inputs,
                           ReadInputs(arguments, session->inputs(), dims, *model, {}));
    std::vector<double> seconds;
    for (int i = 0; i <= o.repeat; ++i) {
      const int64_t begin = NowNanoseconds();
      FORGE_RETURN_IF_ERROR(session->Run(inputs).status());
      if (i > 0) seconds.push_back(static_cast<double>(NowNanoseconds() - begin) * 1e-9);
    }
    const double low = *std::min_element(seconds.begin(), seconds.end()), median = Median(seconds);
    table.Add({o.what, d->info().id, fmt::format("{:.3f}", low * 1e3),
               fmt::format("{:.3f}", median * 1e3),
               std::to_string(session->statistics().dispatches),
               Bytes(session->statistics().arena_bytes)});
    out.push_back({{"name", o.what},
                   {"device", d->info().id},
                   {"dtype", "f32"},
                   {"time_us", median * 1e6},
                   {"min_us", low * 1e6},
                   {"gflops", nullptr},
                   {"gbps", nullptr},
                   {"peak_share", nullptr}});
  }
  if (json)
    std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  else
    std::cout << table.Text();
  return absl::OkStatus();
}

absl::Status Run(const Options& o, bool json) {
  std::vector<DeviceRef> devices;
  for (const std::string& name : o.devices) {
    FORGE_ASSIGN_OR_RETURN(DeviceRef d, OpenDevice(name, {.threads = o.threads, .cache = true}));
    devices.push_back(std::move(d));
  }
  if (o.what == "tune") return BenchTune(o, devices, json);
  if (o.what == "peak") return BenchPeak(devices, json);
  if (o.what == "ops") return BenchOps(o, devices, json);
  return BenchModel(o, devices, json);
}

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool(
      "forge-bench", "Times ops, a model, or the device itself.",
      {"forge-bench ops --device vulkan --filter 'matmul.*512'", "forge-bench peak --device vulkan",
       "forge-bench tune --device vulkan --filter '^matmul' --seconds 30",
       "forge-bench model.bin --device cpu --device vulkan --dim N=1"});
  tool.AddJson();
  Options o;
  tool.Argument("what", o.what, "ops, peak, tune, or a model");
  tool.List("--device NAME", o.devices, "Where; default: auto");
  tool.Option("--filter REGEX", o.filter, "Only cases whose text matches this regular expression");
  tool.List("--dim SYMBOL=N", o.dims, "SYMBOL=N binds a dynamic dimension");
  tool.Option("--threads N", o.threads, {0, 4096}, "Threads of the host; 0: all");
  tool.Option("--seconds N", o.seconds, {1, 86400}, "tune: spent on each case");
  tool.Option("--candidates N", o.candidates, {2, 10000}, "tune: tried for each case");
  tool.Option("--repeat N", o.repeat, {1, 100000}, "Timed runs of a model");
  return tool.Run(argc, argv, [&] {
    if (o.devices.empty()) o.devices = {"auto"};
    return Run(o, tool.json());
  });
}
