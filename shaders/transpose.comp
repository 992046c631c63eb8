// SPDX-License-Identifier: Apache-2.0
// y[b, c, r] = x[b, r, c] for 32-bit elements of any kind. Reads and writes both run along rows: a
// tile crosses in shared memory, whose rows are one word longer so that columns meet no bank twice.
#version 450

const int kTile = 32;
const int kRows = 4;  // of the tile that a pass moves

layout(local_size_x = kTile, local_size_y = kRows) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Shape { int rows, cols; };  // of x

shared uint tile[kTile][kTile + 1];

void main() {
  const ivec3 group = ivec3(gl_WorkGroupID);
  const ivec2 at = ivec2(gl_LocalInvocationID.xy);
  const ivec2 origin = group.xy * kTile;  // column and row of x
  const int batch = group.z * rows * cols;

  for (int i = at.y; i < kTile; i += kRows) {
    const int row = origin.y + i, col = origin.x + at.x;
    if (row < rows && col < cols) tile[i][at.x] = x[batch + row * cols + col];
  }
  barrier();
  for (int i = at.y; i < kTile; i += kRows) {
    const int row = origin.y + at.x, col = origin.x + i;
    if (row < rows && col < cols) y[batch + col * rows + row] = tile[at.x][i];
  }
}
