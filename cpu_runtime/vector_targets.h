// SPDX-License-Identifier: Apache-2.0
// The instruction sets that vector code is compiled for. Included before hwy/foreach_target.h. Each
// set costs a compilation of the file; AVX3_DL, AVX3_ZEN4 and AVX3_SPR add nothing that f32 loops
// use, and SSSE3 and SSE4 little to SSE2, which processors without AVX2 run. Written as bits,
// because Highway 1.0 has no names for the newer sets.
#pragma once

#define HWY_DISABLED_TARGETS ((1LL << 12) | (1LL << 11) | (1LL << 7) | (1LL << 6) | (1LL << 4))
