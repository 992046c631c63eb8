// SPDX-License-Identifier: Apache-2.0
// Trains a small network to tell two spirals apart: train [DEVICE]
#include <cmath>
#include <cstdio>
#include <random>

#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"
#include "runtime/backends.h"
#include "runtime/training_session.h"

namespace {

using forge::DType;
using forge::NamedTensor;
using forge::ir::HostValue;

constexpr int64_t kPoints = 400;

HostValue Zeros(DType dtype, std::vector<int64_t> shape) { return *HostValue::Zeros(dtype, shape); }

// A parameter with small random numbers.
forge::ir::Value Weights(forge::ir::Function& f, const char* name, int64_t rows, int64_t columns) {
  static std::mt19937 random;
  std::normal_distribution<double> normal(0, 1 / std::sqrt(static_cast<double>(rows)));
  HostValue w = Zeros(DType::kF32, {rows, columns});
  for (int64_t i = 0; i < w.elements(); ++i) w.Set(i, normal(random));
  return f.Read(f.module()->AddVariable({.name = name,
                                         .role = forge::ir::Variable::Role::kParameter,
                                         .type = w.type(),
                                         .init = {{w.shared_bytes(), w.type(), {}}}}));
}

// The points of both spirals, and the spiral that each lies on.
std::vector<NamedTensor> Spirals() {
  HostValue points = Zeros(DType::kF32, {kPoints, 2});
  HostValue label = Zeros(DType::kI64, {kPoints});
  for (int64_t i = 0; i < kPoints; ++i) {
    const double along = 0.5 + 6.0 * static_cast<double>(i / 2) / kPoints, turn = i % 2 * M_PI;
    points.Set(2 * i, along * std::cos(2 * along + turn));
    points.Set(2 * i + 1, along * std::sin(2 * along + turn));
    label.SetI64(i, i % 2);
  }
  return {{"points", points}, {"label", label}};
}

absl::Status Train(const char* device_name) {
  auto module = std::make_unique<forge::ir::Module>();
  forge::ir::Function& f = *module->AddFunction("main");
  forge::ir::Value x = f.Argument("points", forge::ir::Type::Tensor(DType::kF32, {kPoints, 2}));
  x = tanh(f(forge::ir::MatMul{}, {x, Weights(f, "w1", 2, 64)}));
  x = tanh(f(forge::ir::MatMul{}, {x, Weights(f, "w2", 64, 64)}));
  f.Return("scores", f(forge::ir::MatMul{}, {x, Weights(f, "w3", 64, 2)}));

  auto device = forge::OpenDevice(device_name, {});
  if (!device.ok()) return device.status();
  auto training = forge::TrainingSession::Create(
      std::move(module), *device, {.optimizer = {.kind = forge::ir::OptimizerKind::kAdam}});
  if (!training.ok()) return training.status();

  const std::vector<NamedTensor> spirals = Spirals();
  for (int step = 1; step <= 200; ++step) {
    const auto grades = (*training)->Step(spirals, 0.01);
    if (!grades.ok()) return grades.status();
    if (step % 50 == 0)
      std::printf("step %d: loss %.4f, %.0f of %d right\n", step, grades->loss, grades->correct,
                  static_cast<int>(kPoints));
  }
  const auto trained = (*training)->Parameters();
  if (!trained.ok()) return trained.status();
  std::printf("w1[0, 0] is %.4f on %s\n", (*trained)[0].value.f64(0),
              (*device)->info().name.c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status s = Train(argc > 1 ? argv[1] : "auto");
  if (s.ok()) return 0;
  std::fprintf(stderr, "train: %s\n", s.ToString().c_str());
  return 1;
}
