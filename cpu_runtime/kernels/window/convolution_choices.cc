// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/window/convolution_choices.h"

namespace forge::cpu {
namespace {

// The library's kernels for channels in front unfold images; measured 5 to 20 times slower.
constexpr double kDenseCost = 8;
// Packing weights at every run instead of once.
constexpr double kUnpackedCost = 1.25;

}  // namespace

std::vector<ir::EncodingChoice> ConvolutionChoices(
    const Task& task, const Settings& settings,
    absl::FunctionRef<ir::EncodingRef(const ir::EncodingChoice&)> packed) {
  std::vector<ir::EncodingChoice> choices;
  const auto add = [&](ir::EncodingChoice choice) {
    if (ir::EncodingRef weights = packed(choice)) {
      choices.push_back(choice);
      choices.back().in[*task.OperandOf(task.anchor()->in[1])] = std::move(weights);
    }
    choice.seconds *= kUnpackedCost;
    choices.push_back(std::move(choice));
  };
  const double seconds = EstimateSeconds(task, settings);
  std::optional<ir::EncodingChoice> last = ChannelsLastChoice(task);
  ir::EncodingChoice dense{std::vector<ir::EncodingRef>(task.first_result()),
                           std::vector<ir::EncodingRef>(task.results()),
                           seconds * (last ? kDenseCost : 1)};
  if (last) {
    last->seconds = seconds;
    add(*std::move(last));
  }
  add(std::move(dense));
  return choices;
}

}  // namespace forge::cpu
