// SPDX-License-Identifier: Apache-2.0
// Writes an ONNX model again with other weights.
#pragma once
#include <filesystem>

#include "formats/arrays/npy.h"

namespace forge {

// Copies the model file `from` to `to` with new elements in the initialisers that `weights` names;
// everything else stays as it is. Such an initialiser is stored in the file itself afterwards.
//   weights: of the dtypes and shapes of the initialisers
//   errors: NotFound, DataLoss (`from`), InvalidArgument (no such initialiser, another type or
//   shape; external data that would be out of reach of `to`), Internal (cannot write)
absl::Status ReplaceOnnxWeights(const std::filesystem::path& from, const NamedValues& weights,
                                const std::filesystem::path& to);

}  // namespace forge
