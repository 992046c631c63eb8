// SPDX-License-Identifier: Apache-2.0
// Whole, small files to begin fuzzing with, as their bytes.
#pragma once
#include <string>
#include <vector>

namespace forge::fuzz {

using Files = std::vector<std::string>;

// One model.bin for some cases of every op, and one for each ONNX seed that imports.
Files ModelBinSeeds();
// One node or a few for every operator that the importer knows.
Files OnnxSeeds();
// .npy files of every element type and order, .npz archives stored and deflated.
Files NpySeeds();
// IDX files of every element type, gzipped too.
Files IdxSeeds();
// No tensors, all of one element type each, and metadata.
Files SafetensorsSeeds();
// PNG of every kind of pixel, interlaced too; JPEG in grey and colour, baseline and progressive.
Files ImageSeeds();
// Each kernel of tests/ptx/kernels as a module of its own.
Files PtxSeeds();

}  // namespace forge::fuzz
