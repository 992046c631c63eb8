// SPDX-License-Identifier: Apache-2.0
// Softmax of each row, one warp a row.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int rows,
                                   int columns) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* in = x + row * columns;
  float most = __int_as_float(0xff800000);
  for (int i = lane; i < columns; i += 32) most = fmaxf(most, in[i]);
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, d));
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(in[i] - most);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  for (int i = lane; i < columns; i += 32) y[row * columns + i] = expf(in[i] - most) / sum;
}
