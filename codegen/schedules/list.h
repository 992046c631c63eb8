// SPDX-License-Identifier: Apache-2.0
// Every schedule, one file each.
#pragma once
#include "codegen/schedule.h"

namespace forge::codegen {

extern const Schedule kTranspose, kElementwise;
extern const Schedule kReduceRows, kReduceOutputs;
extern const Schedule kSoftmaxSubgroup, kSoftmaxRows, kSoftmaxSerial;
extern const Schedule kLayerNormSubgroup, kLayerNormRows, kLayerNormSerial;
extern const Schedule kMatmulColumns, kMatmulDots;
extern const Schedule kMatmulMatrix, kMatmulShuffle, kMatmulShared, kMatmulSimple;
extern const Schedule kConvDepthwise, kConvWinograd, kConvDirect;
extern const Schedule kPool;
extern const Schedule kAttentionShuffle, kAttentionShared;

}  // namespace forge::codegen
