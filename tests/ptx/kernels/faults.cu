// SPDX-License-Identifier: Apache-2.0
// Kernels with planted faults, beside the same ones without. All are launched with 2 blocks of 64 threads on x[128]
// and y[128], with 256 bytes of dynamic shared memory.
#include <cuda_fp16.h>

#define KERNEL(name, body) \
  extern "C" __global__ void name(const float* __restrict__ x, float* y, int n) { body(x, y, n); }

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

enum Neighbour { kNoFault, kNoBarrier, kBarrierOfHalfAWarp, kBarrierOfOneWarp, kAfterExit, kWarpBarrierOnly };
template <int F>
__device__ void neighbour(const float* x, float* y, int n) {
  __shared__ float t[64];
  const int i = threadIdx.x, at = blockIdx.x * 64 + i;
  if (F == kAfterExit && i == 63) return;
  t[i] = x[at];
  if (F == kBarrierOfHalfAWarp) {
    if (i % 32 < 16) __syncthreads();
  } else if (F == kBarrierOfOneWarp) {
    if (i < 32) __syncthreads();
  } else if (F == kWarpBarrierOnly) {
    __syncwarp();
  } else if (F != kNoBarrier) {
    __syncthreads();
  }
  y[at] = t[(i + 33) % 64];
}
KERNEL(neighbour_ok, neighbour<kNoFault>)
KERNEL(neighbour_no_barrier, neighbour<kNoBarrier>)
KERNEL(neighbour_barrier_of_half_a_warp, neighbour<kBarrierOfHalfAWarp>)
KERNEL(neighbour_barrier_of_one_warp, neighbour<kBarrierOfOneWarp>)
KERNEL(neighbour_barrier_after_exit, neighbour<kAfterExit>)
KERNEL(neighbour_warp_barrier_only, neighbour<kWarpBarrierOnly>)

template <bool kBarrierBeforeReuse, bool kOtherBuffer>
__device__ void rounds(const float* x, float* y, int n) {
  __shared__ float t[2][64];
  const int i = threadIdx.x, at = blockIdx.x * 64 + i;
  float v = x[at];
#pragma unroll 1
  for (int round = 0; round < n / 32; ++round) {
    const int buffer = kOtherBuffer ? round & 1 : 0;
    t[buffer][i] = v;
    __syncthreads();
    v += t[buffer][63 - i];
    if (kBarrierBeforeReuse) __syncthreads();
  }
  y[at] = v;
}
__device__ void rounds_ok_body(const float* x, float* y, int n) { rounds<true, false>(x, y, n); }
__device__ void rounds_two_body(const float* x, float* y, int n) { rounds<false, true>(x, y, n); }
__device__ void rounds_reuse_body(const float* x, float* y, int n) { rounds<false, false>(x, y, n); }
KERNEL(rounds_ok, rounds_ok_body)
KERNEL(rounds_two_buffers_ok, rounds_two_body)
KERNEL(rounds_no_barrier_before_reuse, rounds_reuse_body)

enum Reduce { kReduceOk, kReduceNoBarrier, kReduceNoSyncwarp, kReduceTooMany };
template <int F>
__device__ void reduce(const float* x, float* y, int n) {
  __shared__ float t[64];
  const int i = threadIdx.x;
  t[i] = x[blockIdx.x * 64 + i];
  if (F == kReduceTooMany) t[i] += t[i + 32];
  __syncthreads();
  if (i < 32) t[i] += t[i + 32];
  if (F != kReduceNoBarrier) __syncthreads();
  if (i < 32) {
#pragma unroll 1
    for (int d = 16; d > 0; d /= 2) {
      const float other = i < d ? t[i + d] : 0;
      if (F != kReduceNoSyncwarp) __syncwarp();
      if (i < d) t[i] += other;
      if (F != kReduceNoSyncwarp) __syncwarp();
    }
  }
  __syncthreads();
  y[blockIdx.x * 64 + i] = t[0];
}
KERNEL(reduce_ok, reduce<kReduceOk>)
KERNEL(reduce_dropped_syncwarp, reduce<kReduceNoSyncwarp>)
KERNEL(reduce_reads_out_of_shared, reduce<kReduceTooMany>)

enum Bounds { kBoundsOk, kReadPast, kWritePast, kReadBefore, kNull, kUnaligned };
template <int F>
__device__ void bounds(const float* x, float* y, int n) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  if (F == kReadPast) y[at] = x[at + 1];
  if (F == kReadBefore) y[at] = x[at - 1];
  if (F == kWritePast) y[at + (at == n - 1)] = x[at];
  if (F == kNull) y[at] = at == 77 ? *(volatile float*)nullptr : x[at];
  if (F == kUnaligned && at < 31) {
    const float4 v = *reinterpret_cast<const float4*>(x + at * 4 + 1);
    y[at] = v.x + v.w;
  }
  if (F == kBoundsOk) y[at] = x[at];
}
KERNEL(bounds_ok, bounds<kBoundsOk>)
KERNEL(bounds_read_past_the_end, bounds<kReadPast>)
KERNEL(bounds_write_past_the_end, bounds<kWritePast>)
KERNEL(bounds_read_before_the_start, bounds<kReadBefore>)
KERNEL(bounds_null, bounds<kNull>)
KERNEL(bounds_misaligned_vector, bounds<kUnaligned>)

enum SharedBounds { kSharedOk, kRedZone, kDynamicPast, kSharedUnaligned, kUninitialised };
extern __shared__ float dynamic_shared[];
template <int F>
__device__ void shared_bounds(const float* x, float* y, int n) {
  __shared__ float first[64], second[64];
  const int i = threadIdx.x, at = blockIdx.x * 64 + i;
  if (F != kUninitialised || i < 63) first[i] = x[at];
  second[i] = -x[at];
  dynamic_shared[i] = 2 * x[at];
  __syncthreads();
  float v = first[i] + second[63 - i] + dynamic_shared[i + (F == kDynamicPast)];
  if (F == kRedZone) v += first[i + n / 64];
  if (F == kSharedUnaligned) {
    const float2 two = *reinterpret_cast<float2*>(first + (i & 31) + n / 128);
    v += two.x * two.y;
  }
  y[at] = v;
}
KERNEL(shared_ok, shared_bounds<kSharedOk>)
KERNEL(shared_into_the_next_array, shared_bounds<kRedZone>)
KERNEL(shared_dynamic_past_the_end, shared_bounds<kDynamicPast>)
KERNEL(shared_misaligned, shared_bounds<kSharedUnaligned>)
KERNEL(shared_uninitialised, shared_bounds<kUninitialised>)

enum Shuffles { kShuffleOk, kNarrowMask, kHalfArrives, kFromAbsent, kWrongDistance };
template <int F>
__device__ void shuffles(const float* x, float* y, int n) {
  const int i = threadIdx.x, at = blockIdx.x * 64 + i;
  float v = x[at];
  if (F == kNarrowMask) {
    v += __shfl_xor_sync(0x0000ffff, v, 1);
  } else if (F == kHalfArrives) {
    if (i % 32 < 16) v += __shfl_xor_sync(0xffffffff, v, 1);
  } else if (F == kFromAbsent) {
    if (i % 32 < 24) v += __shfl_xor_sync(0x00ffffff, v, 16);
  } else {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, F == kWrongDistance ? d / 2 : d);
  }
  y[at] = v;
}
KERNEL(shuffle_ok, shuffles<kShuffleOk>)
KERNEL(shuffle_mask_without_itself, shuffles<kNarrowMask>)
KERNEL(shuffle_half_arrives, shuffles<kHalfArrives>)
KERNEL(shuffle_from_absent_lane, shuffles<kFromAbsent>)
KERNEL(shuffle_wrong_distance, shuffles<kWrongDistance>)

enum Async { kAsyncOk, kNoWait, kWaitForOlder, kNoBarrierAfterWait, kOverwritten };
template <int F>
__device__ void async_copy(const float* x, float* y, int n) {
  __shared__ __align__(16) float t[64];
  const int i = threadIdx.x, base = blockIdx.x * 64;
  if (i < 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(t + 4 * i)),
                           "l"(x + base + 4 * i) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (F == kOverwritten && i < 16) t[4 * i] = 0;
  if (F == kWaitForOlder) asm volatile("cp.async.wait_group 1;" ::: "memory");
  else if (F != kNoWait) asm volatile("cp.async.wait_group 0;" ::: "memory");
  if (F != kNoBarrierAfterWait) __syncthreads();
  y[base + i] = t[i];
}
KERNEL(async_ok, async_copy<kAsyncOk>)
KERNEL(async_no_wait, async_copy<kNoWait>)
KERNEL(async_wait_for_older_group, async_copy<kWaitForOlder>)
KERNEL(async_no_barrier_after_wait, async_copy<kNoBarrierAfterWait>)
KERNEL(async_overwritten_in_flight, async_copy<kOverwritten>)

enum Histogram { kHistogramOk, kNonAtomicShared, kNotCleared, kReadTooEarly };
template <int F>
__device__ void histogram(const float* x, float* y, int n) {
  __shared__ unsigned count[8];
  const int i = threadIdx.x;
  if (F != kNotCleared && i < 8) count[i] = 0;
  __syncthreads();
  unsigned* const bin = count + (__float_as_uint(x[blockIdx.x * 64 + i]) >> 20 & 7);
  if (F == kNonAtomicShared) *bin += 1;
  else atomicAdd(bin, 1u);
  if (F != kReadTooEarly) __syncthreads();
  y[blockIdx.x * 64 + i] = count[i % 8];
}
KERNEL(histogram_ok, histogram<kHistogramOk>)
KERNEL(histogram_non_atomic, histogram<kNonAtomicShared>)
KERNEL(histogram_not_cleared, histogram<kNotCleared>)
KERNEL(histogram_read_too_early, histogram<kReadTooEarly>)

template <int F>
__device__ void global_sum(const float* x, float* y, int n) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  const float v = static_cast<float>(__float_as_uint(x[at]) >> 24);
  if (F == 0) atomicAdd(y, v);
  else y[0] += v;
}
KERNEL(global_sum_ok, global_sum<0>)
KERNEL(global_sum_non_atomic, global_sum<1>)

// Blocks are not ordered: what one reads of another needs another launch.
template <int F>
__device__ void across_blocks(const float* x, float* y, int n) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  y[at] = x[at] + 1;
  if (F == 1) {
    __threadfence();
    if (blockIdx.x == 0) y[at] += *(volatile float*)(y + 64 + threadIdx.x);
  } else if (blockIdx.x == 0) {
    y[at] += x[64 + threadIdx.x] + 1;
  }
}
KERNEL(across_blocks_ok, across_blocks<0>)
KERNEL(across_blocks_no_launch_between, across_blocks<1>)

// An 8x8 product of the warp's 64 numbers as f16 with their transpose, through shared memory and mma.
enum Product { kProductOk, kWrongSwizzle, kNoTranspose, kRowOffset, kSwappedSums };
template <int F>
__device__ void product(const float* x, float* y, int n) {
  __shared__ __align__(16) __half t[16 * 16];
  const int i = threadIdx.x;
  for (int e = i; e < 256; e += 64) {
    const int row = e / 16, column = e % 16, chunk = column / 8 ^ (row >> 2 & 1);
    t[row * 16 + chunk * 8 + column % 8] = __float2half(x[(e * 7 + blockIdx.x) % n]);
  }
  __syncthreads();
  const int lane = i % 32, row = lane % 16;
  const int chunk = F == kWrongSwizzle ? lane / 16 : lane / 16 ^ (row >> 2 & 1);
  const __half* const at = t + row * 16 + chunk * 8 + (F == kRowOffset ? 1 : 0);
  unsigned a0, a1, a2, a3;
  if (F == kNoTranspose)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(shared_address(at)));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(shared_address(at)));
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a0), "r"(a2));
  if (i >= 32) return;
  float* const out = y + blockIdx.x * 64 + (lane / 4) * 8 + lane % 4 * 2;
  out[0] = F == kSwappedSums ? c1 : c0;
  out[1] = F == kSwappedSums ? c0 : c1;
}
KERNEL(product_ok, product<kProductOk>)
KERNEL(product_wrong_swizzle, product<kWrongSwizzle>)
KERNEL(product_transposed, product<kNoTranspose>)
KERNEL(product_misaligned_rows, product<kRowOffset>)
KERNEL(product_swapped_sums, product<kSwappedSums>)

template <int F>
__device__ void local_array(const float* x, float* y, int n) {
  float a[8];
  const int at = blockIdx.x * 64 + threadIdx.x;
  for (int i = 0; i < 8; ++i) a[i] = x[(at + i * n / 8) % n];
  const int from = (__float_as_uint(x[at]) >> 20 & 7) + (F == 1 ? n / 16 : 0);
  a[from] += 1;
  float v = 0;
  for (int i = 0; i < 8; ++i) v += a[(i + from) & 7];
  y[at] = v;
}
KERNEL(local_ok, local_array<0>)
KERNEL(local_out_of_bounds, local_array<1>)

template <int F>
__device__ void flag(const float* x, float* y, int n) {
  __shared__ volatile int ready;
  const int i = threadIdx.x, at = blockIdx.x * 64 + i;
  if (i == 0) ready = 0;
  __syncthreads();
  if (F == 0) {
    if (i == 40) atomicExch(const_cast<int*>(&ready), 1);
    if (i == 3) while (atomicAdd(const_cast<int*>(&ready), 0) == 0) {}
  } else if (i == 3) {
    while (atomicAdd(const_cast<int*>(&ready), 0) == 0) {}
  }
  y[at] = x[at];
}
KERNEL(flag_ok, flag<0>)
KERNEL(flag_never_set, flag<1>)

// One warp reads what the other overwrites.
template <int F>
__device__ void overwrite(const float* x, float* y, int n) {
  __shared__ float t[64];
  const int i = threadIdx.x, at = blockIdx.x * 64 + i;
  t[i] = x[at];
  __syncthreads();
  float v = 0;
  if (i < 32) v = t[i + 32];
  if (F == 0) __syncthreads();
  if (i >= 32) t[i] = 1;
  __syncthreads();
  y[at] = v + t[i];
}
KERNEL(overwrite_ok, overwrite<0>)
KERNEL(overwrite_before_others_read, overwrite<1>)
