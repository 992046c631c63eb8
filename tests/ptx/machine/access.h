// SPDX-License-Identifier: Apache-2.0
// Where the lanes of a warp access memory: addresses, checks, and what it costs.
#pragma once
#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/decode/decoder.h"

namespace forge::ptx {

// The addresses of all lanes: register a plus the offset.
void Addresses(const Warp& w, const Op& op, uint64_t (&out)[kLanes]);
// Fails the warp and returns false where an address of the lanes is no multiple of `bytes`, a power
// of two.
bool CheckAligned(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes);
// The host bytes of global memory at an address; null, and the warp has failed, outside of all
// allocations.
uint8_t* GlobalBytes(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write);
// Whether all lanes read one allocation; `delta`: its host memory less its address.
bool GlobalDelta(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes,
                 uint64_t& delta);
// The host bytes of the block's shared memory; `at` becomes an offset into it.
uint8_t* SharedBytes(Warp& w, int lane, uint64_t& at, uint32_t bytes);
// The host bytes of a generic address; `space` tells where it lies.
uint8_t* GenericBytes(Warp& w, int lane, uint64_t& at, uint32_t bytes, bool write, Space& space);
// Counts what an access of `bytes` for each lane costs.
void CountGlobal(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes);
void CountShared(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes);
// Takes the state space; kGeneric without one.
Space TakeStateSpace(Decoder& d);
// Takes what says how to cache, order or predict, which changes no result here.
void TakeCacheHints(Decoder& d);

}  // namespace forge::ptx
