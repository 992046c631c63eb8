// SPDX-License-Identifier: Apache-2.0
#include "tools/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/platform.h"

namespace forge::tools {
namespace {

// The name of an open batch; empty: it is a number.
std::string BatchName(const ir::Type& input) {
  const bool open = input.is_tensor() && input.rank() > 0 && !input.shape()[0].is_constant();
  const bool named = open && input.shape()[0].part().op == ir::Dim::Op::kSymbol;
  return named ? input.shape()[0].part().symbol->name : "";
}

double SecondsSince(int64_t begin) { return static_cast<double>(NowNanoseconds() - begin) * 1e-9; }

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(std::unique_ptr<ir::Module> module,
                                                         DeviceRef device, TrainerOptions options) {
  std::unique_ptr<Trainer> out(new Trainer());
  out->o_ = std::move(options);
  ir::TrainingOptions& training = out->o_.training;
  if (const ir::Function* main = module->Find(training.function))
    for (const auto& input : main->arguments())
      if (const std::string batch = BatchName(main->type(input.value)); !batch.empty())
        training.sizes.try_emplace(batch, out->o_.batch);
  SessionOptions session;
  session.debug.timestamps = out->o_.time_steps;
  session.debug.stepwise = out->o_.check_nan;
  FORGE_ASSIGN_OR_RETURN(
      out->training_,
      TrainingSession::Create(std::move(module), std::move(device), training, session));
  if (out->o_.check_nan)
    out->training_->Observe(
        [trainer = out.get()](const StepView& step) { return trainer->RefuseNan(step); });
  if (training.loss == "cross_entropy") {
    const ir::Dim& classes = out->training_->prediction().shape()[1];
    if (!classes.is_constant())
      return InvalidArgument("the number of classes, {}, is not known", classes.ToText());
    out->ports_.classes = classes.constant();
  }
  for (const Session::Port& p : out->training_->batch()) {
    if (p.name == "label")
      out->ports_.label = p.type;
    else
      out->ports_.inputs.push_back(p);
    if (!p.type.is_tensor() || p.type.rank() == 0)
      return InvalidArgument("input '{}' is {}, without a batch", p.name, p.type.ToText());
    const ir::Dim& batch = p.type.shape()[0];
    if (batch.is_constant() && batch.constant() != out->o_.batch)
      return InvalidArgument("input '{}' is {}: the batch is not open, give --batch {}", p.name,
                             p.type.ToText(), batch.constant());
  }
  return out;
}

DataPorts Trainer::Ports() const { return ports_; }

absl::Status Trainer::Resume(const std::string& path) {
  FORGE_ASSIGN_OR_RETURN(Checkpoint c, ReadCheckpoint(path, o_.options));
  if (const absl::Status s = training_->SetVariables(c.variables); !s.ok())
    return InvalidArgument("{} does not fit the model: {}", path, Message(s));
  at_ = c.at;
  return absl::OkStatus();
}

absl::Status Trainer::Save() {
  if (o_.checkpoint.empty()) return absl::OkStatus();
  FORGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> variables, training_->Variables());
  return WriteCheckpoint(o_.checkpoint, {at_, o_.options, std::move(variables)});
}

EpochResult Trainer::ResultOf(int64_t samples, double loss, double correct) const {
  const auto n = static_cast<double>(samples);
  return {.epoch = at_.epoch, .loss = loss / n, .accuracy = ports_.classes > 0 ? correct / n : -1};
}

// Infinities are no fault: masks and the padding of pools hold them.
absl::Status Trainer::RefuseNan(const StepView& step) const {
  for (const ir::HostValue& v : step.out)
    for (int64_t i = 0; Has(kFloatTypes, v.dtype()) && i < v.elements(); ++i)
      if (std::isnan(v.f64(i)))
        return Internal("step {} of epoch {}: {} ({}) makes a NaN, element {} of {}", at_.step + 1,
                        at_.epoch + 1, step.info.label, step.info.kernel, i, v.type().ToText());
  return absl::OkStatus();
}

absl::Status Trainer::Step(const DataSet& data, std::span<const int64_t> at, bool updates) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> batch,
                         MakeBatch(data, ports_, {at, o_.augment, o_.seed, at_.epoch}));
  FORGE_ASSIGN_OR_RETURN(
      const TrainingSession::Grades grades,
      updates ? training_->Update(batch, o_.schedule.At(at_.step)) : training_->Accumulate(batch));
  // A last batch that is smaller has a plan of its own.
  if (o_.time_steps && at.size() == static_cast<size_t>(o_.batch) &&
      session().executable() != nullptr)
    FORGE_RETURN_IF_ERROR(times_.Add(*session().executable()));
  step_bytes_ = std::max(step_bytes_, session().statistics().arena_bytes);
  const double loss = grades.loss;
  if (!std::isfinite(loss))
    return Internal(
        "the loss is {} at step {} of epoch {}: lower --lr or give --clip-norm; --check-nan shows "
        "the op that makes the first NaN",
        std::isnan(loss) ? std::abs(loss) : loss, at_.step + 1, at_.epoch + 1);
  batch_loss_ = loss;
  at_.loss += loss * static_cast<double>(at.size());
  at_.correct += std::max(grades.correct, 0.0);
  at_.sample += static_cast<int64_t>(at.size());
  at_.step += updates ? 1 : 0;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Trainer::SamplesUsed(const DataSet& data) const {
  const bool open = !ports_.inputs[0].type.shape()[0].is_constant();
  const int64_t used = open ? data.size() : data.size() / o_.batch * o_.batch;
  if (used == 0)
    return InvalidArgument("{}: {} samples do not fill a batch of {}", data.name, data.size(),
                           o_.batch);
  return used;
}

absl::Status Trainer::TrainEpoch(const DataSet& data, int64_t used, const Watch& watch) {
  const int64_t begin = NowNanoseconds(), first = at_.sample;
  const std::vector<int64_t> order = Shuffled(data.size(), o_.seed, at_.epoch);
  while (at_.sample < used) {
    if (watch.stop()) {
      FORGE_RETURN_IF_ERROR(Save());
      return Aborted("interrupted after step {}", at_.step);
    }
    const auto n = static_cast<size_t>(std::min<int64_t>(o_.batch, used - at_.sample));
    const int64_t batches = at_.sample / o_.batch + 1;
    const bool updates =
        batches % o_.training.accumulate == 0 || at_.sample + static_cast<int64_t>(n) == used;
    FORGE_RETURN_IF_ERROR(
        Step(data, std::span(order).subspan(static_cast<size_t>(at_.sample), n), updates));
    watch.progress({at_.epoch + 1, at_.sample, used, at_.loss / static_cast<double>(at_.sample),
                    static_cast<double>(at_.sample - first) / SecondsSince(begin), at_.step,
                    batch_loss_});
  }
  ++at_.epoch;
  EpochResult result = ResultOf(used, at_.loss, at_.correct);
  result.seconds = SecondsSince(begin);
  result.samples_per_second = static_cast<double>(used - first) / result.seconds;
  at_.sample = 0;
  at_.loss = at_.correct = 0;
  FORGE_RETURN_IF_ERROR(Save());
  return watch.after(result);
}

absl::Status Trainer::Train(const DataSet& data, const Watch& watch) {
  FORGE_ASSIGN_OR_RETURN(const int64_t used, SamplesUsed(data));
  const int64_t samples = int64_t{o_.batch} * o_.training.accumulate;  // of an update
  o_.schedule.steps = o_.epochs * ((used + samples - 1) / samples);
  o_.schedule.warmup = o_.warmup;
  while (at_.epoch < o_.epochs) FORGE_RETURN_IF_ERROR(TrainEpoch(data, used, watch));
  return absl::OkStatus();
}

absl::StatusOr<EpochResult> Trainer::Evaluate(const DataSet& data) {
  const int64_t begin = NowNanoseconds(), batch = o_.batch;
  FORGE_ASSIGN_OR_RETURN(const int64_t used, SamplesUsed(data));
  std::vector<int64_t> order(static_cast<size_t>(used));
  std::iota(order.begin(), order.end(), 0);
  double loss = 0, correct = 0;
  for (int64_t done = 0; done < used; done += batch) {
    const auto n = static_cast<size_t>(std::min(batch, used - done));
    FORGE_ASSIGN_OR_RETURN(
        const std::vector<NamedTensor> inputs,
        MakeBatch(data, ports_, {std::span(order).subspan(static_cast<size_t>(done), n)}));
    FORGE_ASSIGN_OR_RETURN(const TrainingSession::Grades grades, training_->Evaluate(inputs));
    loss += grades.loss * static_cast<double>(n);
    correct += std::max(grades.correct, 0.0);
  }
  EpochResult out = ResultOf(used, loss, correct);
  out.seconds = SecondsSince(begin);
  out.samples_per_second = static_cast<double>(used) / out.seconds;
  return out;
}

}  // namespace forge::tools
