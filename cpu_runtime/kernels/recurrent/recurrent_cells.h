// SPDX-License-Identifier: Apache-2.0
// The loops of a recurrent step: products of states with weights, and the cells.
#pragma once
#include <cstddef>
#include <cstdint>

namespace forge::cpu {

// Columns whose weights lie together, row after row.
inline constexpr size_t kColumnGroup = 16;

// y[i, j] = bias[j] + sum over k of x[i, k] * w[k, j]
template <class T>
struct RowProducts {
  size_t rows = 0, depth = 0, groups = 0;
  const T* x = nullptr;  // [rows, depth], rows `x_stride` elements apart
  size_t x_stride = 0;
  const T* w = nullptr;     // [groups, depth, kColumnGroup]
  const T* bias = nullptr;  // [groups, kColumnGroup]
  T* y = nullptr;           // [rows, groups, kColumnGroup], rows `y_stride` elements apart
  size_t y_stride = 0;
};
template <class T>
void MultiplyRows(const RowProducts<T>& p);  // float and double

// One step of some units of one row, after their products.
template <class T>
struct CellStep {
  size_t units = 0;
  const T* gates = nullptr;  // of the input; gates are `gate_stride` elements apart
  size_t gate_stride = 0;
  const T* products = nullptr;  // of the state, with the bias; `product_stride` elements apart
  size_t product_stride = 0;
  const T* peepholes = nullptr;  // of the input, forget and output gate, as `gates`; null: none
  const T* hidden = nullptr;     // before the step
  T* next = nullptr;             // after it
  T* cell = nullptr;             // of LSTM, before the step, then after it
  T* kept = nullptr;             // r h of a GRU that resets before the product; else null
};
// The gradients of one step of some units of one row, before the product with the weights.
template <class T>
struct CellGradient {
  size_t units = 0;
  const T* sums = nullptr;  // parts are `stride` elements apart, here and in d_sums
  size_t stride = 0;
  const T* before = nullptr;  // the cell of LSTM or the state of GRU, before the step
  T* after = nullptr;         // the cell after it
  const T* dy = nullptr;      // null: zeros
  T* d_sums = nullptr;
  T* dh = nullptr;  // of the state after the step, then the share of that before it that takes no
                    // weights
  T* dc = nullptr;  // likewise of the cell
};
template <class T>
struct CellLoops {
  using Loop = void (*)(const CellStep<T>& s);
  Loop lstm, gru, rnn_tanh, rnn_relu;
  Loop gru_reset;  // sets `kept`, of which the products of the last gate are taken
  using GradientLoop = void (*)(const CellGradient<T>& s);
  GradientLoop lstm_gradient, gru_gradient, tanh_gradient, relu_gradient;
  GradientLoop lstm_cell;  // the cell after a step from that before, without gradients
};
template <class T>
const CellLoops<T>& CellLoopsOf();  // float and double

}  // namespace forge::cpu
