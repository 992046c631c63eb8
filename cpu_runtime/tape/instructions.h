// SPDX-License-Identifier: Apache-2.0
// The instructions of a tape. An instruction processes a block: up to kBlock consecutive elements
// of an iteration space, with one register for each value. Registers are numbered by definition; a
// later pass assigns their places.
#pragma once
#include <array>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "cpu_runtime/tape/elements.h"
#include "ir/type/type.h"

namespace forge::cpu {

// The elements of a block; chosen so that a few registers of f32 fit the L1 cache.
inline constexpr size_t kBlock = 1024;

using Register = uint16_t;
using Strides = absl::InlinedVector<int64_t, 6>;

// The elements of an operand along the axes of the iteration space.
struct Access {
  uint32_t operand;
  DType dtype;
  int64_t base;     // offset in elements of the element at index 0
  Strides strides;  // distance in elements along each axis of the iteration space
  bool flat;        // consecutive in the iteration space means consecutive in memory
};

// out[i] = the element at the index of i
struct LoadInstruction {
  Register out = 0;
  Access from;
  bool direct = false;  // the register refers to the operand itself
};
struct StoreInstruction {
  Register in = 0;
  Access to;
};
// out[i] = a constant; computed once
struct ConstantInstruction {
  Register out = 0;
  std::array<uint8_t, 16> value = {};
  size_t bytes = 0;  // of an element
};
struct ScalarInstruction {
  Register out = 0;
  std::array<Register, 3> in = {};
  uint8_t arity = 0;
  ScalarLoop loop = {};
  const void* self = nullptr;  // attributes; the tape keeps them alive
};
struct ConvertInstruction {
  Register out, in;
  ConvertLoop loop;
};
// out[i] = low + (i / inner) mod extent: the index along one axis, as i64
struct CoordinateInstruction {
  Register out = 0;
  int64_t inner = 1, extent = 1, low = 0;
};
// i64 arithmetic as Dim does it
struct IndexInstruction {
  Register out, a, b;
  ir::Dim::Op op;
};
// out[i] = low <= value < high, as bytes
struct InsideInstruction {
  Register out, value, low, high;
};
struct AndInstruction {
  Register out, a, b;
};
// out[i] = the operand's element at address[i]; zero beyond the limit
struct GatherInstruction {
  Register out, address;
  uint32_t operand;
  DType dtype;
  uint64_t limit;
};
// out[i] = value[row of i], where the row program computes value
struct RowRepeatInstruction {
  Register out = 0, row_value = 0;
  size_t bytes = 0;  // of an element
};
// out[i] = the operand's element at address[row of i] + stride * (column of i); zero beyond the
// limit
struct RowGatherInstruction {
  Register out = 0, row_address = 0;  // row_address is a register of the row program
  int64_t stride = 0;
  uint32_t operand = 0;
  DType dtype = DType::kF32;
  uint64_t limit = 0;
};
struct BlendInstruction {
  Register out, mask, a, b;
  size_t bytes;  // of an element
};

using Instruction =
    std::variant<LoadInstruction, StoreInstruction, ConstantInstruction, ScalarInstruction,
                 ConvertInstruction, CoordinateInstruction, IndexInstruction, InsideInstruction,
                 AndInstruction, GatherInstruction, RowRepeatInstruction, RowGatherInstruction,
                 BlendInstruction>;

// Calls f(Register&) for each register that an instruction reads.
template <class I, class F>
void ForEachInput(I& instruction, F f) {
  std::visit(
      [&](auto& i) {
        using T = std::remove_cvref_t<decltype(i)>;
        if constexpr (requires { i.arity; })
          for (int k = 0; k < i.arity; ++k) f(i.in[static_cast<size_t>(k)]);
        else if constexpr (requires { i.in; })
          f(i.in);
        if constexpr (std::is_same_v<T, InsideInstruction>) {
          f(i.value);
          f(i.low);
          f(i.high);
        }
        if constexpr (std::is_same_v<T, GatherInstruction>) f(i.address);
        if constexpr (std::is_same_v<T, BlendInstruction>) f(i.mask);
        if constexpr (requires { i.b; }) {
          f(i.a);
          f(i.b);
        }
      },
      instruction);
}
// The register that an instruction writes; null for stores.
template <class I>
auto* OutputOf(I& instruction) {
  using R = std::conditional_t<std::is_const_v<I>, const Register, Register>;
  return std::visit(
      [](auto& i) -> R* {
        if constexpr (requires { i.out; })
          return &i.out;
        else
          return nullptr;
      },
      instruction);
}

}  // namespace forge::cpu
