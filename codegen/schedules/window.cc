// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/window.h"

namespace forge::codegen {
namespace {

// More taps than this are looped over, or kernels of large windows grow without bound.
constexpr int64_t kUnrolledTaps = 32;

}  // namespace

Vals ForTaps(Emission& m, int64_t rows, int64_t columns, Vals carried, TapBody body) {
  if (rows * columns <= kUnrolledTaps) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t s = 0; s < columns; ++s) carried = body(r, s, std::move(carried));
    return carried;
  }
  Val zero = m.b.Int(0), one = m.b.Int(1);
  return m.b.For({zero, m.b.Int(rows), one}, std::move(carried), [&](Val r, Vals outer) {
    const ir::Dim row = m.e.Coordinate(r, rows - 1);
    return m.b.For({zero, m.b.Int(columns), one}, std::move(outer), [&](Val s, Vals inner) {
      return body(row, m.e.Coordinate(s, columns - 1), std::move(inner));
    });
  });
}

}  // namespace forge::codegen
