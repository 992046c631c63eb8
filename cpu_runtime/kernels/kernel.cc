// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/kernel.h"

#include <algorithm>

#include "ir/dim/broadcast.h"

namespace forge::cpu {
namespace {

// What one core of the last ten years does, seconds only being compared with one another.
constexpr double kFlopsPerThread = 60e9;
constexpr double kBytesPerSecond = 15e9;
constexpr double kStartSeconds = 2e-6;

// Do both orders of axes put the elements in the same places?
bool OrderMatters(const ir::Type& t) {
  if (!t.is_tensor() || !t.is_constant() || !HasChannels(t.shape().size())) return false;
  const std::vector<int64_t> s = ir::Constants(t.shape());
  return s[1] != 1 && std::any_of(s.begin() + 2, s.end(), [](int64_t d) { return d != 1; });
}

// Does a movement op take each axis of its result from the same axis of its operands?
bool KeepsAxes(const ir::Function& f, const ir::Node& node) {
  const ir::Types in = f.TypesOf(node.in);
  const ir::Type& out = f.type(node.first_out);
  if (!HasChannels(out.shape().size())) return false;
  for (const ir::Type& t : in)
    if (t.rank() != out.rank()) return false;
  ir::Dims at;
  std::vector<ir::SymbolRef> symbols;
  for (const ir::Dim& extent : out.shape()) {
    symbols.push_back(std::make_shared<ir::Symbol>(
        ir::Symbol{.name = "i", .min = 0, .max = std::max<int64_t>(extent.max() - 1, 0)}));
    at.emplace_back(symbols.back());
  }
  const ir::IndexMap map = node.op.Map(in, at);
  if (!map.loads.empty()) return false;
  for (const auto& piece : map.pieces)
    for (size_t a = 0; a < piece.index.size(); ++a) {
      std::vector<ir::SymbolRef> used;
      piece.index[a].CollectSymbols(used);
      if (std::any_of(used.begin(), used.end(), [&](const auto& s) { return s != symbols[a]; }))
        return false;
    }
  return true;
}

}  // namespace

std::span<const Kernel* const> AllKernels() {
  static const Kernel* const kAll[] = {&ConvolutionKernel(),
                                       &ConvolutionTransposeKernel(),
                                       &ConvolutionWeightGradientKernel(),
                                       &MatMulKernel(),
                                       &PoolKernel(),
                                       &MaxPoolGradientKernel(),
                                       &ReduceKernel(),
                                       &LayerNormKernel(),
                                       &LayerNormGradientKernel(),
                                       &SoftmaxKernel(),
                                       &SoftmaxStatisticsKernel(),
                                       &ShapeKernel(),
                                       &UpdateSliceKernel(),
                                       &RecurrentStepsKernel(),
                                       &StepsGradientKernel(),
                                       &ScatterKernel(),
                                       &ArgReduceKernel(),
                                       &ScanKernel(),
                                       &SortKernel(),
                                       &FourierKernel(),
                                       &GridSampleKernel(),
                                       &ResizeKernel(),
                                       &HistogramKernel(),
                                       &EmbeddingBagKernel(),
                                       &AttentionKernel(),
                                       &AttentionGradientKernel(),
                                       &ConvolutionIntegerKernel(),
                                       &LookupKernel(),
                                       &PackKernel(),
                                       &TinyCastKernel(),
                                       &ElementWiseKernel()};
  return kAll;
}

const Kernel* FindKernel(const Task& task) {
  for (const Kernel* k : AllKernels())
    if (k->Knows(task)) return k;
  return nullptr;
}

Verdict TakesEpilogue(const Task& task) {
  const ir::Function& f = task.body();
  const ir::Node& anchor = *task.anchor();
  for (uint32_t v : anchor.in)
    if (v != ir::kAbsent && !task.OperandOf(v))
      return Verdict::No(
          fmt::format("{} takes no operand that is computed in the same region", anchor.op.name()));
  for (const ir::Node& node : f.nodes()) {
    if (&node == &anchor || (node.op.def().map && node.in.empty())) continue;
    if (Verdict v = TapeTakes(f, node); !v) return v;
    if (!node.op.def().scalar)
      return Verdict::No(
          fmt::format("{} after {} is not element-wise", node.op.name(), anchor.op.name()));
    if (!ir::MayEqualBroadcast(f.type(anchor.first_out).shape(), f.type(node.first_out).shape()))
      return Verdict::No(
          fmt::format("{} changes the shape of {}", node.op.name(), anchor.op.name()));
  }
  return Verdict::Yes();
}

std::optional<ir::EncodingChoice> ChannelsLastChoice(const Task& task) {
  const ir::Function& f = task.body();
  for (const ir::Node& node : f.nodes()) {
    if (!node.op.def().map || node.in.empty()) continue;
    if (!KeepsAxes(f, node)) return std::nullopt;
  }
  ir::EncodingChoice choice;
  bool any = false;
  for (size_t i = 0; i < task.operands(); ++i) {
    const bool last = OrderMatters(task.type(i));
    any |= last;
    auto& side = i < task.first_result() ? choice.in : choice.out;
    side.push_back(last ? ChannelsLast(task.type(i).shape().size()) : nullptr);
  }
  if (!any) return std::nullopt;
  return choice;
}

std::vector<ir::EncodingChoice> BothLayouts(const Task& task, const Settings& settings) {
  std::optional<ir::EncodingChoice> last = ChannelsLastChoice(task);
  if (!last) return {};
  last->seconds = EstimateSeconds(task, settings);
  ir::EncodingChoice dense{std::vector<ir::EncodingRef>(task.first_result()),
                           std::vector<ir::EncodingRef>(task.results()), last->seconds};
  return {std::move(dense), *std::move(last)};
}

double EstimateSeconds(const Task& task, const Settings& settings) {
  double flops = 0, bytes = 0;
  const ir::Function& f = task.body();
  for (const ir::Node& node : f.nodes())
    flops += static_cast<double>(node.op.Cost(f.TypesOf(node.in)).flops.max());
  for (size_t i = 0; i < task.operands(); ++i)
    if (task.type(i).is_tensor())
      if (const absl::StatusOr<ir::Dim> size = task.type(i).bytes(); size.ok())
        bytes += static_cast<double>(size->max());
  return kStartSeconds +
         std::max(flops / (kFlopsPerThread * settings.threads), bytes / kBytesPerSecond);
}

}  // namespace forge::cpu
