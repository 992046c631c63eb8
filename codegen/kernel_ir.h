// SPDX-License-Identifier: Apache-2.0
// The kernel IR: structured SSA, small enough to print with one table and one walk.
//
// A kernel reads and writes views: a memory space, an element type and an index. There are no
// pointers to pass around, because the baseline of Vulkan (logical addressing) has none; the CUDA
// printer writes a view as a pointer and an index.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "codegen/caps.h"
#include "ir/type.h"

namespace forge::codegen {

// ---- types
// ----------------------------------------------------------------------------------------

enum class MatrixUse : uint8_t { kNone, kA, kB, kAccumulator };
enum class Scope : uint8_t { kInvocation, kSubgroup, kWorkgroup, kGrid };

struct Type {
  DType elem =
      DType::kF32;    // bool, i/u 8-64, f16, bf16, f32, f64; narrower formats live in u8..u32
  uint8_t lanes = 1;  // vectors of 1, 2, 4
  MatrixUse use = MatrixUse::kNone;
  Scope held_by = Scope::kInvocation;  // matrices: subgroup (mma.sync, KHR), workgroup (wgmma, NV2)
  uint16_t rows = 0, cols = 0;
  friend bool operator==(const Type&, const Type&) = default;
  Type With(DType e) const {
    Type t = *this;
    t.elem = e;
    return t;
  }
  Type Lanes(int n) const {
    Type t = *this;
    t.lanes = static_cast<uint8_t>(n);
    return t;
  }
};
inline constexpr Type kBool{DType::kBool}, kI32{DType::kI32}, kU32{DType::kU32}, kF32{DType::kF32};

// Who is sure to see the same value. Computed when a value is made; a barrier under a condition
// that is not workgroup-uniform does not verify, a subgroup op under one that is not
// subgroup-uniform neither.
using Uniform = Scope;

enum class Space : uint8_t { kGlobal, kShared, kPrivate };
struct View {
  std::string name;
  Space space = Space::kGlobal;
  Type elem;            // the unit of an index: f32, 4 x f16 ...; two views may alias one operand
  int operand = -1;     // global: which operand of the launch
  uint32_t extent = 0;  // shared, private: elements
  bool reads = true, writes = false;
  uint32_t alignment = 4;  // bytes, proven
};

// ---- instructions
// -----------------------------------------------------------------------------------

// Name, operands (-1: any). The verifier, the folder, the text form and the printers are columns
// keyed by this list. Indices and trip counts are i32.
#define FORGE_KERNEL_OPS(X)                                                                       \
  X(Literal, 0)                                                                                   \
  X(Scalar, 0) X(Builtin, 0) X(Add, 2) X(Sub, 2) X(Mul, 2) X(Div, 2) X(Rem, 2) X(MulHigh, 2)      \
      X(Min, 2) X(Max, 2) X(Fma, 3) X(And, 2) X(Or, 2) X(Xor, 2) X(Not, 1) X(Shl, 2) X(Shr, 2)    \
          X(Eq, 2) X(Lt, 2) X(Le, 2) X(Select, 3) X(Neg, 1) X(Abs, 1) X(Sqrt, 1) X(Rsqrt, 1)      \
              X(Exp2, 1) X(Log2, 1) X(Sin, 1) X(Cos, 1) X(Floor, 1) X(RoundEven, 1) X(Convert, 1) \
                  X(Bitcast, 1) X(Pack, -1) X(Extract, 1) X(Insert, 2) X(Dot4, 3) X(Load, 1)      \
                      X(Store, 2) X(Atomic, 2) X(MatrixLoad, 2) X(MatrixStore, 3)                 \
                          X(MatrixMulAdd, 3) X(Barrier, 0) X(Shuffle, 2) X(ShuffleXor, 1)         \
                              X(SubgroupReduce, 1) X(SubgroupScan, 1) X(Ballot, 1) X(If, 1)       \
                                  X(For, -1) X(While, -1) X(Yield, -1)

enum class Code : uint8_t {
#define X(name, arity) k##name,
  FORGE_KERNEL_OPS(X)
#undef X
};

using Id = uint32_t;  // a value of this kernel
using BlockId = uint32_t;

// Copied freely; spans lie in the kernel's own arrays.
struct Inst {
  Code code;
  uint8_t aux = 0;                   // builtin, scope, reduction kind, component, flags
  uint16_t view = 0;                 // loads, stores: which view
  uint32_t args = 0, arg_count = 0;  // into Kernel::operands
  Id result = 0;  // first of `result_count`; If, For and While have one per yielded value
  uint16_t result_count = 1;
  uint16_t block_count = 0;  // If: then, else. For: body. While: test, body.
  BlockId block = 0;         // first of them
  uint64_t literal = 0;      // bits of a literal's element; index of a scalar
};
struct Block {
  std::vector<Id> arguments;  // For: counter, then the carried values
  std::vector<Inst> insts;    // the last one yields
};
struct ValueInfo {
  Type type;
  Uniform uniform = Uniform::kInvocation;
};

struct Kernel {
  std::string name;
  std::array<uint32_t, 3> workgroup{64, 1, 1};
  uint32_t subgroup = 0;        // required size; 0: any
  std::array<ir::Dim, 3> grid;  // workgroups; the device splits what is beyond its limit
  std::vector<View> views;
  std::vector<ir::Dim> scalars;  // i32s that are not literals; the device decides how they travel
  std::vector<ValueInfo> values;
  std::vector<Id> operands;
  std::vector<Block> blocks;  // blocks[0] is the body
};

// ---- building
// -----------------------------------------------------------------------------------------

enum class BuiltinKind : uint8_t {
  kWorkgroupX,
  kWorkgroupY,
  kWorkgroupZ,
  kLocalX,
  kLocalY,
  kLocalZ,
  kLane,
  kSubgroup
};
enum class ReduceKind : uint8_t { kSum, kMin, kMax, kProd };
class Builder;
struct Val {
  Builder* b = nullptr;
  Id id = 0;
  Type type() const;
  explicit operator bool() const { return b != nullptr; }
};
using Vals = std::vector<Val>;

// The scalar of ir/ops/elementwise.h on GPUs; see codegen/scalar.h for the operators on it.
class Builder {
 public:
  explicit Builder(Kernel& k);
  Kernel& kernel() { return k_; }
  uint16_t AddView(View v);
  Val Literal(Type t, double v);  // deduplicated; splat for vectors
  Val Int(int64_t v) { return Literal(kI32, static_cast<double>(v)); }
  Val Scalar(const ir::Dim& d);  // a literal when it is one; deduplicated
  // The value of an index expression, i32: `at` gives the values of its symbols, others become
  // Scalars.
  Val Index(const ir::Dim& d, std::span<const std::pair<ir::SymbolRef, Val>> at);
  Val Builtin(BuiltinKind which);
  // Folds literals and shares equal pure instructions of the open blocks.
  Val Emit(Code code, Type type, std::initializer_list<Val> args, uint8_t aux = 0);
  Val Pack(Type t, std::span<const Val> parts);
  Val Extract(Val v, int component);
  Val Convert(Val v, DType to);  // saturating float to int, half to even; see docs/semantics.md
  Val Load(uint16_t view, Val index);
  void Store(uint16_t view, Val index, Val value);
  Vals If(Val condition, absl::FunctionRef<Vals()> yes, absl::FunctionRef<Vals()> no);
  void If(Val condition, absl::FunctionRef<void()> yes);
  // A body that sees equal begin and end is not emitted; `unroll`: emitted once for each literal
  // counter.
  struct Range {
    Val begin, end, step;
    bool unroll = false;
  };
  Vals For(const Range& r, Vals carried, absl::FunctionRef<Vals(Val i, Vals carried)> body);
  Vals While(Vals carried, absl::FunctionRef<Val(Vals)> test, absl::FunctionRef<Vals(Vals)> body);
  void Barrier();  // of the workgroup: control, and shared and global memory
  Val Shuffle(Val v, Val lane);
  Val SubgroupReduce(ReduceKind kind, Val v);
  void Finish();  // closes the body; FORGE_CHECKs that the kernel is well formed

 private:
  struct State;
  Kernel& k_;
  std::shared_ptr<State> state_;
};

// Types, dominance, uniform barriers, the limits and features of `caps`.  errors: Internal, with
// the instruction
absl::Status Verify(const Kernel& k, const Caps& caps);
std::string ToText(const Kernel& k);
uint64_t Hash(const Kernel& k);  // of what the printed program depends on; the name is left out

// ---- printers
// -----------------------------------------------------------------------------------------

// A printer sees a verified kernel in which everything missing has been emulated, so it cannot
// refuse. Operands are bound in order: operand i of a launch is binding i of set 0; scalars are
// push constants in order, 4 bytes each.
std::vector<uint32_t> PrintSpirv(const Kernel& k, const Caps& caps);

}  // namespace forge::codegen
