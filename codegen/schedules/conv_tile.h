// SPDX-License-Identifier: Apache-2.0
// A register tile of a convolution's result: what schedules without shared memory give to each
// invocation.
#pragma once
#include "codegen/schedules/window.h"
#include "ir/ops/conv2d.h"

namespace forge::codegen {

struct ConvShape {
  const ir::Conv2d& op;
  ir::Dim batch, channels, rows, columns;  // of the result
  ir::Dim group_outputs, group_inputs;     // channels of one group
  bool biased;
  WindowAxis row, column;

  explicit ConvShape(const Region& r);  // whose anchor is a conv2d
  // The kernel's extents are numbers.
  bool known_window() const { return row.kernel > 0 && column.kernel > 0; }
};

// Output channels, rows and columns to an invocation.
struct ConvTileSize {
  int64_t channels = 1, rows = 1, columns = 1;
};

class ConvTile {
 public:
  ConvTile(Emission& m, const ConvShape& shape, const ConvTileSize& size);
  ir::Dim count() const { return ir::Product(Grid()); }  // of tiles
  // Emits tile `at`, below count(): loads, sums, epilogue, stores.
  void Run(const ir::Dim& at);

 private:
  struct Tap {
    ir::Dim channel, row, column;
  };
  TiledAxis channels() const { return {shape_.group_outputs, size_.channels}; }
  TiledAxis rows() const { return {shape_.rows, size_.rows}; }
  TiledAxis columns() const { return {shape_.columns, size_.columns}; }
  ir::Dims Grid() const;
  bool LoadsVectors() const;
  void Place(const ir::Dim& at);
  Vals Start();
  Vals Accumulate(const Tap& tap, Vals sums);
  Val Input(const Tap& tap, size_t row, size_t column);
  Val InputFromVector(const Tap& tap, const Position& row, size_t column);
  void Finish(const Vals& sums);
  void FinishRow(size_t channel, size_t row, std::span<const Val> sums);

  Emission& m_;
  const ConvShape& shape_;
  const ConvTileSize size_;
  const bool vectors_;  // input columns are loaded as aligned vectors of 4
  ir::Dim n_, group_, first_column_;
  std::vector<Position> channel_, row_, column_;  // channels of the whole result
};

// Emits a launch in which every invocation runs one tile.
Launch EmitConvTiles(const Region& r, const ConvTileSize& size, int64_t workgroup,
                     const std::string& name);

}  // namespace forge::codegen
