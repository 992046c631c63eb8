// SPDX-License-Identifier: Apache-2.0
// forge-train: trains a model on a device.
#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "formats/arrays/safetensors.h"
#include "formats/model_bin/model_bin.h"
#include "formats/onnx/replace_weights.h"
#include "ir/type/precision.h"
#include "runtime/backends.h"
#include "tools/support/dims.h"
#include "tools/support/regex.h"
#include "tools/support/terminal.h"
#include "tools/support/tool.h"
#include "tools/train/curve.h"
#include "tools/train/models.h"
#include "tools/train/trainer.h"

namespace forge::tools {
namespace {

struct Options {
  std::string model, data, validate,
      loss = "cross_entropy", optimizer = "adam", schedule = "constant", precision = "exact",
      augment, device = "auto", out, weights_out, checkpoint, resume, log, curve, preprocess,
      no_decay, by_adamw, freeze, activation_budget;
  std::vector<std::string> rates, dims;
  bool time_by_op = false, check_nan = false, nesterov = false;
  int epochs = 1, batch = 64, accumulate = 1, seed = 0, threads = 0, warmup = 0;
  double lr = 1e-3, momentum = 0, weight_decay = 0, clip_norm = 0, clip_value = 0, average = 0;
};

void AddOptions(Tool& tool, Options& o) {
  tool.Argument("model", o.model, "model.bin, .onnx, mnist-mlp or mnist-cnn");
  tool.Option("--data WHAT", o.data,
              "IMAGES.idx,LABELS.idx, a .npz with an array for each input and `label`, or a folder "
              "with one sub-folder of pictures for each class");
  tool.Option("--validate WHAT", o.validate, "Data to evaluate after each epoch");
  tool.Option("--preprocess SPEC", o.preprocess,
              "For pictures: resize=HxW,mean=..,std=..,layout=nchw|nhwc,color=rgb|bgr|gray");
  tool.Option("--loss NAME", o.loss, ir::LossNames());
  tool.Option("--optimizer NAME", o.optimizer, ir::OptimizerNames());
  tool.Option("--lr X", o.lr, "Learning rate");
  tool.Option("--momentum X", o.momentum, "Momentum of sgd and rmsprop");
  tool.Flag("--nesterov", o.nesterov, "Nesterov's momentum, of sgd");
  tool.Option("--weight-decay X", o.weight_decay, "Weight decay");
  tool.Option("--no-decay REGEX", o.no_decay,
              "Parameters without weight decay, by a part of their names: 'bias|norm'");
  tool.Option("--by-adamw REGEX", o.by_adamw,
              "Matrices that muon leaves to adamw, as it does all vectors: 'embedding|head'");
  tool.List("--rate REGEX=FACTOR", o.rates,
            "Multiply the rate of the parameters with that in their names; repeatable, the first "
            "one counts");
  tool.Option("--freeze REGEX", o.freeze, "Parameters that are not trained");
  tool.Option("--clip-value X", o.clip_value,
              "Largest size of an element of a gradient; 0: no limit");
  tool.Option("--clip-norm X", o.clip_norm, "Largest norm of all gradients together; 0: no limit");
  tool.Option("--schedule NAME", o.schedule, "constant, cosine, step or one-cycle");
  tool.Option("--warmup N", o.warmup, {0, INT32_MAX}, "Steps of a linear rise of the rate");
  tool.Option("--epochs N", o.epochs, {1, 1'000'000}, "Passes over the data");
  tool.Option("--batch N", o.batch, {1, 1'000'000}, "Samples of a step");
  tool.Option(
      "--precision NAME", o.precision,
      "Of products and convolutions in a step: exact, f16 or bf16, with weights and sums in "
      "f32, or fast, as in forge-run; f16 skips steps whose gradients overflow");
  tool.Option("--accumulate N", o.accumulate, {1, 1'000'000},
              "Steps whose gradients make one update of the weights");
  tool.Option("--average DECAY", o.average,
              "Evaluate and write the moving average of the weights, which keeps DECAY of itself "
              "in each update: 0.999; 0: the weights");
  tool.Option("--activation-budget BYTES", o.activation_budget,
              "Results that a step keeps for its gradients, as 512M; what does not fit is computed "
              "again");
  tool.List("--dim SYMBOL=N", o.dims,
            "Size of an open dimension besides the batch, which --activation-budget needs");
  tool.Option("--seed N", o.seed, {0, INT32_MAX}, "Of shuffling, augmentation and initial weights");
  tool.Option("--augment SPEC", o.augment, "Random changes of pictures: flip,shift=PIXELS");
  tool.Device(o.device, "auto, cpu, vulkan, cuda or reference, optionally with :N or :NAME-PART");
  tool.Option("--threads N", o.threads, {0, 4096}, "Number of host threads; 0: all");
  tool.Option("-o,--out FILE", o.out,
              "The trained model: model.bin, or .onnx where MODEL is an .onnx");
  tool.Option("--weights-out FILE", o.weights_out, "The trained parameters as safetensors");
  tool.Option("--checkpoint DIR", o.checkpoint,
              "Write a checkpoint after each epoch, and on Ctrl-C");
  tool.Option("--resume CHECKPOINT", o.resume, "Continue from a checkpoint, to the same bits");
  tool.Flag("--time-by-op", o.time_by_op, "Show the time of a step by op, and its slowest parts");
  tool.Flag("--check-nan", o.check_nan,
            "Run op by op, and stop at the op that makes the first NaN");
  tool.Option("--log FILE", o.log, "Append a line of JSON for each epoch");
  tool.Option("--curve FILE", o.curve, "Draw the losses as a PNG, after each epoch");
}

// The first interrupt lets the step finish; a second one ends the program.
std::atomic<bool> interrupted = false;  // NOLINT: a handler has no other way
void (*before)(int) = SIG_DFL;          // NOLINT
extern "C" void OnInterrupt(int signal) {
  interrupted = true;
  std::signal(signal, before);
}

nlohmann::json ToJson(const EpochResult& r) {
  nlohmann::json out = {{"loss", r.loss}, {"seconds", r.seconds}};
  if (r.accuracy >= 0) out["accuracy"] = r.accuracy;
  return out;
}

std::string ToText(const EpochResult& r) {
  return fmt::format("loss {:.4f}{}", r.loss,
                     r.accuracy < 0 ? "" : fmt::format("  accuracy {:.2f} %", 100 * r.accuracy));
}

class Run {
 public:
  Run(const Options& o, Tool& tool) : o_(o), tool_(tool) {}

  absl::Status operator()() {
    if (o_.data.empty()) return InvalidArgument("no data: give --data");
    const bool onnx = o_.out.ends_with(".onnx");
    if (onnx && !o_.model.ends_with(".onnx"))
      return InvalidArgument("-o {}: only a model of an .onnx can be written as one", o_.out);
    FORGE_RETURN_IF_ERROR(CheckNumbers());
    FORGE_RETURN_IF_ERROR(Prepare());
    FORGE_RETURN_IF_ERROR(Train());
    FORGE_RETURN_IF_ERROR(WriteResults(onnx));
    if (!tool_.json()) {
      if (const std::string curve = curve_.Text(60); !curve.empty())
        std::cout << "loss " << curve << "\n";
      if (o_.time_by_op) std::cout << trainer_->times().Text();
      return absl::OkStatus();
    }
    nlohmann::json result = {{"device", device_->info().name},
                             {"epochs", epochs_},
                             {"step_bytes", trainer_->step_bytes()}};
    result["validation"] = validation_;
    result["output"] = o_.out.empty() ? nlohmann::json() : nlohmann::json(o_.out);
    if (o_.time_by_op) result["ops"] = trainer_->times().ByOp();
    if (const ir::ActivationPlan& c = trainer_->activations(); !o_.activation_budget.empty())
      result["activations"] = {{"saved_bytes", c.saved_bytes},
                               {"most_bytes", c.most_bytes},
                               {"flops", c.flops},
                               {"flops_again", c.flops_again}};
    tool_.SetResult(std::move(result));
    return absl::OkStatus();
  }

 private:
  absl::Status CheckNumbers() const {
    if (!(o_.average >= 0 && o_.average < 1))
      return InvalidArgument("--average {} is not at least 0 and below 1", o_.average);
    const std::pair<const char*, double> amounts[] = {{"--lr", o_.lr},
                                                      {"--momentum", o_.momentum},
                                                      {"--weight-decay", o_.weight_decay},
                                                      {"--clip-value", o_.clip_value},
                                                      {"--clip-norm", o_.clip_norm}};
    for (const auto& [name, value] : amounts)
      if (!std::isfinite(value) || value < 0)
        return InvalidArgument("{} {} is not a number of at least 0", name, value);
    if (o_.check_nan && o_.time_by_op)
      return InvalidArgument("--check-nan and --time-by-op run in different ways");
    if (o_.nesterov && (o_.optimizer != "sgd" || o_.momentum == 0))
      return InvalidArgument("--nesterov needs --optimizer sgd and --momentum");
    if (o_.momentum != 0 && o_.optimizer != "sgd" && o_.optimizer != "rmsprop" &&
        o_.optimizer != "muon")
      return InvalidArgument("--momentum is of sgd, rmsprop and muon, not of {}", o_.optimizer);
    if (!o_.by_adamw.empty() && o_.optimizer != "muon")
      return InvalidArgument("--by-adamw is of muon, not of {}", o_.optimizer);
    return absl::OkStatus();
  }

  // The parameters whose names match the value of the option, or those that do not; null where it
  // is not given.
  static absl::StatusOr<std::function<bool(const ir::Variable&)>> Named(const char* option,
                                                                        const std::string& text,
                                                                        bool match = true) {
    if (text.empty()) return nullptr;
    const absl::StatusOr<Regex> regex = Regex::Parse(text);
    if (!regex.ok()) return InvalidArgument("{} {}", option, Message(regex.status()));
    return [regex = *regex, match](const ir::Variable& v) { return regex.Finds(v.name) == match; };
  }

  // Null without --rate.
  absl::StatusOr<std::function<double(const ir::Variable&)>> RateFactors() const {
    std::vector<std::pair<Regex, double>> factors;
    for (const std::string& text : o_.rates) {
      const size_t equals = text.rfind('=');
      double factor = -1;
      if (equals == std::string::npos || !absl::SimpleAtod(text.substr(equals + 1), &factor) ||
          !std::isfinite(factor) || factor < 0)
        return InvalidArgument("--rate {} is not REGEX=FACTOR with a factor of at least 0", text);
      const absl::StatusOr<Regex> name = Regex::Parse(text.substr(0, equals));
      if (!name.ok()) return InvalidArgument("--rate {}", Message(name.status()));
      factors.emplace_back(*name, factor);
    }
    if (factors.empty()) return nullptr;
    return [factors](const ir::Variable& v) {
      for (const auto& [name, factor] : factors)
        if (name.Finds(v.name)) return factor;
      return 1.0;
    };
  }

  absl::StatusOr<TrainerOptions> Settings() const {
    TrainerOptions t;
    t.training.loss = o_.loss;
    t.training.clip_norm = o_.clip_norm;
    t.training.clip_value = o_.clip_value;
    t.training.accumulate = o_.accumulate;
    FORGE_ASSIGN_OR_RETURN(t.training.precision, ir::ParsePrecision(o_.precision));
    t.training.average_decay = o_.average;
    if (!o_.activation_budget.empty()) {
      FORGE_ASSIGN_OR_RETURN(t.training.activation_budget, ParseBytes(o_.activation_budget));
    }
    FORGE_ASSIGN_OR_RETURN(t.training.sizes, ParseDims(o_.dims));
    FORGE_ASSIGN_OR_RETURN(const ir::OptimizerKind kind, ir::ParseOptimizer(o_.optimizer));
    t.training.optimizer = ir::DefaultsOf(kind);
    t.training.optimizer.nesterov |= o_.nesterov;
    FORGE_ASSIGN_OR_RETURN(t.training.optimizer.by_adamw, Named("--by-adamw", o_.by_adamw));
    FORGE_ASSIGN_OR_RETURN(t.training.optimizer.decays, Named("--no-decay", o_.no_decay, false));
    FORGE_ASSIGN_OR_RETURN(t.training.trains, Named("--freeze", o_.freeze, false));
    FORGE_ASSIGN_OR_RETURN(t.training.optimizer.rate_factor, RateFactors());
    if (o_.momentum != 0) t.training.optimizer.momentum = o_.momentum;
    t.training.optimizer.weight_decay = o_.weight_decay;
    FORGE_ASSIGN_OR_RETURN(t.schedule.kind, ParseSchedule(o_.schedule));
    t.schedule.peak = o_.lr;
    t.epochs = o_.epochs;
    t.batch = o_.batch;
    t.warmup = o_.warmup;
    t.seed = static_cast<uint64_t>(o_.seed);
    FORGE_ASSIGN_OR_RETURN(t.augment, ParseAugment(o_.augment));
    t.checkpoint = o_.checkpoint;
    t.time_steps = o_.time_by_op;
    t.check_nan = o_.check_nan;
    t.options = {{"--loss", o_.loss},
                 {"--optimizer", o_.optimizer},
                 {"--lr", fmt::format("{}", o_.lr)},
                 {"--momentum", fmt::format("{}", o_.momentum)},
                 {"--weight-decay", fmt::format("{}", o_.weight_decay)},
                 {"--no-decay", o_.no_decay},
                 {"--by-adamw", o_.by_adamw},
                 {"--rate", absl::StrJoin(o_.rates, ",")},
                 {"--freeze", o_.freeze},
                 {"--nesterov", o_.nesterov ? "true" : "false"},
                 {"--clip-value", fmt::format("{}", o_.clip_value)},
                 {"--clip-norm", fmt::format("{}", o_.clip_norm)},
                 {"--precision", o_.precision},
                 {"--accumulate", std::to_string(o_.accumulate)},
                 {"--average", fmt::format("{}", o_.average)},
                 {"--activation-budget", o_.activation_budget},
                 {"--schedule", o_.schedule},
                 {"--warmup", std::to_string(o_.warmup)},
                 {"--batch", std::to_string(o_.batch)},
                 {"--seed", std::to_string(o_.seed)},
                 {"--augment", o_.augment}};
    // The rate of these depends on the number of steps.
    if (o_.schedule != "constant") t.options["--epochs"] = std::to_string(o_.epochs);
    return t;
  }

  absl::Status Prepare() {
    FORGE_ASSIGN_OR_RETURN(TrainerOptions settings, Settings());
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module,
                           ModelToTrain(o_.model, settings.seed));
    const std::string preprocess =
        o_.preprocess.empty() ? std::string(module->Metadata("preprocess")) : o_.preprocess;
    FORGE_ASSIGN_OR_RETURN(device_, OpenDevice(o_.device, {.threads = o_.threads}));
    FORGE_ASSIGN_OR_RETURN(trainer_,
                           Trainer::Create(std::move(module), device_, std::move(settings)));
    DataPorts ports = trainer_->Ports();
    ports.preprocess = preprocess;
    FORGE_ASSIGN_OR_RETURN(data_, ReadDataSet(o_.data, ports));
    if (!o_.validate.empty()) {
      FORGE_ASSIGN_OR_RETURN(held_, ReadDataSet(o_.validate, ports));
    }
    if (!o_.resume.empty()) FORGE_RETURN_IF_ERROR(trainer_->Resume(o_.resume));
    if (!tool_.json() && !o_.activation_budget.empty()) ShowActivations();
    return absl::OkStatus();
  }

  void ShowActivations() const {
    const ir::ActivationPlan& c = trainer_->activations();
    std::cout << fmt::format(
        "gradients need {} of results, and a step holds {}; {:.0f} % of the forward pass is "
        "computed again\n",
        Bytes(c.saved_bytes), Bytes(c.most_bytes), 100 * c.flops_again / std::max(c.flops, 1.0));
  }

  absl::Status Train() {
    before = std::signal(SIGINT, OnInterrupt);
    Progress progress;
    const Trainer::Watch watch{
        .stop = [] { return interrupted.load(); },
        .progress =
            [&](const Trainer::Moment& m) {
              progress(fmt::format("epoch {}", m.epoch), static_cast<size_t>(m.done),
                       static_cast<size_t>(m.total),
                       fmt::format("  loss {:.4f}  {:.0f} samples/s", m.loss, m.rate));
              curve_.Add(step_ = m.step, m.batch_loss);
            },
        .after = [&](const EpochResult& r) { return Report(r); }};
    const absl::Status s = trainer_->Train(data_, watch);
    if (!interrupted) std::signal(SIGINT, before);
    return s;
  }

  absl::Status Report(const EpochResult& r) {
    epochs_.push_back(ToJson(r));
    std::string line = fmt::format("epoch {}/{}  {}", r.epoch, o_.epochs, ToText(r));
    if (!o_.validate.empty()) {
      FORGE_ASSIGN_OR_RETURN(const EpochResult held, trainer_->Evaluate(held_));
      validation_ = ToJson(held);
      curve_.AddValidation(step_, held.loss);
      line += "  validation: " + ToText(held);
    }
    if (!tool_.json())
      std::cout << fmt::format("{}  {}  {:.0f} samples/s\n", line, Duration(r.seconds),
                               r.samples_per_second)
                << std::flush;
    if (!o_.curve.empty()) FORGE_RETURN_IF_ERROR(curve_.WritePng(o_.curve));
    if (o_.log.empty()) return absl::OkStatus();
    nlohmann::json entry = epochs_.back();
    entry["epoch"] = r.epoch;
    if (!o_.validate.empty()) entry["validation"] = validation_;
    std::ofstream log(o_.log, std::ios::app);
    log << entry.dump() << "\n" << std::flush;
    return log.good() ? absl::OkStatus() : Internal("cannot write {}", o_.log);
  }

  absl::Status WriteResults(bool onnx) {
    if (o_.out.empty() && o_.weights_out.empty()) return absl::OkStatus();
    FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> parameters, trainer_->Parameters());
    NamedValues weights;
    for (const NamedTensor& p : parameters) weights.emplace_back(p.name, p.value);
    if (!o_.weights_out.empty()) FORGE_RETURN_IF_ERROR(WriteSafetensors(o_.weights_out, {weights}));
    if (onnx) return ReplaceOnnxWeights(o_.model, weights, o_.out);
    if (o_.out.empty()) return absl::OkStatus();
    FORGE_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Module> module,
                           ModelToTrain(o_.model, static_cast<uint64_t>(o_.seed)));
    FORGE_RETURN_IF_ERROR(SetInitialValues(*module, parameters));
    if (!o_.preprocess.empty()) SetPreprocess(*module);
    return WriteModel(*module, o_.out);
  }

  // The trained model takes pictures as it was trained on them.
  void SetPreprocess(ir::Module& module) const {
    std::erase_if(module.metadata, [](const auto& entry) { return entry.first == "preprocess"; });
    module.metadata.emplace_back("preprocess", o_.preprocess);
  }

  const Options& o_;
  Tool& tool_;
  DeviceRef device_;
  std::unique_ptr<Trainer> trainer_;
  DataSet data_, held_;
  nlohmann::json epochs_ = nlohmann::json::array(), validation_;
  LossCurve curve_;
  int64_t step_ = 0;
};

}  // namespace
}  // namespace forge::tools

int main(int argc, char** argv) {
  using namespace forge::tools;
  Tool tool("forge-train", "Trains a model on any device.",
            {"forge-train mnist-cnn --data train-images-idx3-ubyte.gz,train-labels-idx1-ubyte.gz "
             "--epochs 5 --device vulkan -o trained.bin",
             "forge-train net.onnx --data train.npz --validate test.npz --loss mse --optimizer sgd "
             "--lr 0.01 --momentum 0.9 -o trained.onnx --checkpoint state"});
  tool.AddJson();
  Options o;
  AddOptions(tool, o);
  const int status = tool.Run(argc, argv, [&] { return Run(o, tool)(); });
  // As the signal itself would have ended the program.
  if (interrupted && status != 0) std::raise(SIGINT);
  return status;
}
