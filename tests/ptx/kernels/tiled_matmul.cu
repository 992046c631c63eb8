// SPDX-License-Identifier: Apache-2.0
// c[m, n] = a[m, k] b[k, n] with 32x32 tiles in shared memory; 16x16 threads, each 2x2 sums.
extern "C" __global__ void tiled_matmul(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int m, int n, int k) {
  __shared__ float ta[32][33];
  __shared__ float tb[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32, column = blockIdx.x * 32;
  float sum[2][2] = {};
  for (int start = 0; start < k; start += 32) {
    for (int e = ty * 16 + tx; e < 1024; e += 256) {
      const int i = e / 32, j = e % 32;
      ta[i][j] = row + i < m && start + j < k ? a[(row + i) * k + start + j] : 0.0f;
      tb[i][j] = start + i < k && column + j < n ? b[(start + i) * n + column + j] : 0.0f;
    }
    __syncthreads();
#pragma unroll 8
    for (int l = 0; l < 32; ++l)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) sum[i][j] += ta[ty + 16 * i][l] * tb[l][tx + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      if (row + ty + 16 * i < m && column + tx + 16 * j < n)
        c[(row + ty + 16 * i) * n + column + tx + 16 * j] = sum[i][j];
}
