// SPDX-License-Identifier: Apache-2.0
// c[m, n] = a[m, k] b[k, n]^T in f16 with f32 sums: 32x32 tiles, 4 warps of 16x16, cp.async with two
// buffers, ldmatrix from swizzled shared memory. m, n and k are multiples of 32.
#include <cuda_fp16.h>

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ int swizzled(int row, int chunk) { return row * 32 + ((chunk ^ (row >> 1)) & 3) * 8; }

__device__ void copy_tile(__half* to, const __half* from, int stride, int thread) {
  const int row = thread / 4, chunk = thread % 4;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   shared_address(to + swizzled(row, chunk))),
               "l"(from + row * stride + chunk * 8));
}

__device__ void load_matrices(unsigned (&r)[4], const __half* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void mma_matmul(const __half* __restrict__ a, const __half* __restrict__ b,
                                      float* __restrict__ c, int n, int k) {
  __shared__ __align__(16) __half ta[2][32 * 32];
  __shared__ __align__(16) __half tb[2][32 * 32];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row = blockIdx.y * 32, column = blockIdx.x * 32;
  const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
  float sum[2][4] = {};
  copy_tile(ta[0], a + row * k, k, thread);
  copy_tile(tb[0], b + column * k, k, thread);
  asm volatile("cp.async.commit_group;");
  for (int step = 0; step < k / 32; ++step) {
    if (step + 1 < k / 32) {
      copy_tile(ta[(step + 1) & 1], a + row * k + (step + 1) * 32, k, thread);
      copy_tile(tb[(step + 1) & 1], b + column * k + (step + 1) * 32, k, thread);
    }
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    for (int half = 0; half < 2; ++half) {
      unsigned fa[4], fb[4];
      load_matrices(fa, ta[step & 1] + swizzled(warp_row + lane % 16, half * 2 + lane / 16));
      load_matrices(fb, tb[step & 1] + swizzled(warp_column + lane % 8 + lane / 16 * 8,
                                                half * 2 + lane / 8 % 2));
      multiply(sum[0], fa, fb[0], fb[1]);
      multiply(sum[1], fa, fb[2], fb[3]);
    }
    __syncthreads();
  }
  for (int j = 0; j < 2; ++j)
    for (int e = 0; e < 4; ++e)
      c[(row + warp_row + lane / 4 + e / 2 * 8) * n + column + warp_column + j * 8 + lane % 4 * 2 +
        e % 2] = sum[j][e];
}
