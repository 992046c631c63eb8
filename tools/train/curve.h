// SPDX-License-Identifier: Apache-2.0
// The losses of a training as a line of text and as a picture.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::tools {

class LossCurve {
 public:
  // Adds the loss of a batch; steps come in order. Of a long training means of neighbours are kept.
  void Add(int64_t step, double loss);
  // Adds the loss of other data after a step.
  void AddValidation(int64_t step, double loss) {
    validation_.push_back({static_cast<double>(step), loss});
  }
  // Returns first loss, a block for each of at most `columns` parts, last loss:
  // "2.3026 █▆▄▂▁▁ 0.1834". Empty before the first batch.
  std::string Text(size_t columns) const;
  // Writes a PNG of 800 x 480: a line for the steps, dots for the validation. Nothing is written
  // before the first batch.
  //   errors: Internal with path and reason
  absl::Status WritePng(const std::filesystem::path& path) const;

 private:
  struct Point {
    double step = 0, loss = 0;
  };
  std::vector<Point> points_, validation_;
  // Batches that the last point stands for, and each other.
  int64_t last_has_ = 0, each_has_ = 1;
};

}  // namespace forge::tools
