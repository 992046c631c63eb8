// SPDX-License-Identifier: Apache-2.0
// The kernel IR: structured SSA, small enough to print with one table and one walk.
//
// A kernel reads and writes views: a memory space, an element type and an index. There are no
// pointers to pass around, because the baseline of Vulkan (logical addressing) has none; the CUDA
// printer writes a view as a pointer and an index.
#pragma once
#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "codegen/kernel/caps.h"
#include "ir/type/type.h"

namespace forge::codegen {

// ---- types --------------------------------------------------------------------------------------

enum class MatrixUse : uint8_t { kNone, kA, kB, kAccumulator };
enum class Scope : uint8_t { kInvocation, kSubgroup, kWorkgroup, kGrid };

struct Type {
  // bool, i/u 8-64, f16, f32, f64; in matrices also bf16. Narrower formats, and bf16 elsewhere, are
  // bits in integers.
  DType elem = DType::kF32;
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
  // A matrix that the invocations of a subgroup hold together.
  static Type Matrix(DType elem, MatrixUse use, uint16_t rows, uint16_t cols) {
    return {.elem = elem, .use = use, .held_by = Scope::kSubgroup, .rows = rows, .cols = cols};
  }
  bool is_matrix() const { return use != MatrixUse::kNone; }
};
inline constexpr Type kBool{DType::kBool}, kI32{DType::kI32}, kU32{DType::kU32}, kF32{DType::kF32};
std::string ToText(const Type& t);  // "f32", "u8x4", "f16<16, 8>"
// A 64-bit integer, which many devices lack.
inline bool IsWide(const Type& t) { return t.elem == DType::kI64 || t.elem == DType::kU64; }
inline int64_t ElementBytes(const Type& t) { return BitWidth(t.elem) / 8 * t.lanes; }  // in memory

// Who is sure to see the same value, among the invocations that make it. Computed when a value is
// made; a barrier under a condition that is not workgroup-uniform does not verify, a subgroup op
// under one that is not subgroup-uniform neither.
using Uniform = Scope;

enum class Space : uint8_t { kGlobal, kShared, kPrivate };
struct View {
  std::string name = {};
  Space space = Space::kGlobal;
  Type elem = {};       // the unit of an index: f32, 4 x f16 ...; global: not bool, which is a u8
  int operand = -1;     // global: which operand of the launch; views of one operand may alias
  int parts = 1;        // global: operands from there on that hold it, one behind the other
  uint32_t extent = 0;  // elements: shared, private; of each part but the last where it has several
  // Global: what the kernel does to the operand, the same in all views of it. Loads of an operand
  // that is only read are shared like any value.
  bool reads = true, writes = false;
  bool aliased = false;  // global: an operand of the same element type may be the same memory
};
// Of each part of a view of several but the last.
inline int64_t PartBytes(const View& v) { return v.extent * ElementBytes(v.elem); }

// ---- instructions -------------------------------------------------------------------------------

// Name, operands (-1: any), effect, types, elements of the first operand. Pure instructions depend
// on their operands alone, so that equal ones are one, and unread ones none. The verifier, the
// folder, the text form and the printers are columns keyed by this list. Indices and trip counts
// are i32.
//
// Integers wrap. Div and Rem truncate; the divisor is neither 0 nor, for the lowest value, -1.
// Shifts are by less than the width. Convert is as docs/semantics.md says. Eq, Lt and Le are false
// for NaN. scalar.h has total versions of the partial ones.
// clang-format off
#define FORGE_KERNEL_OPS(X)                                                                  \
  X(Literal, 0, kPure, kOwn, kAny)           X(Scalar, 0, kPure, kOwn, kAny)                 \
  X(Builtin, 0, kPure, kOwn, kAny)           X(Add, 2, kPure, kSame, kNumber)                \
  X(Sub, 2, kPure, kSame, kNumber)           X(Mul, 2, kPure, kSame, kNumber)                \
  X(Div, 2, kPure, kSame, kNumber)           X(Rem, 2, kPure, kSame, kInt)                   \
  X(MulHigh, 2, kPure, kSame, kInt)          X(Min, 2, kPure, kSame, kNumber)                \
  X(Max, 2, kPure, kSame, kNumber)           X(Fma, 3, kPure, kSame, kFloat)                 \
  X(And, 2, kPure, kSame, kLogic)            X(Or, 2, kPure, kSame, kLogic)                  \
  X(Xor, 2, kPure, kSame, kLogic)            X(Not, 1, kPure, kSame, kLogic)                 \
  X(Shl, 2, kPure, kSame, kInt)              X(Shr, 2, kPure, kSame, kInt)                   \
  X(Eq, 2, kPure, kCompare, kAny)            X(Lt, 2, kPure, kCompare, kNumber)              \
  X(Le, 2, kPure, kCompare, kNumber)         X(Select, 3, kPure, kOwn, kAny)                 \
  X(Neg, 1, kPure, kSame, kNumber)           X(Abs, 1, kPure, kSame, kNumber)                \
  X(Sqrt, 1, kPure, kSame, kFloat)           X(Rsqrt, 1, kPure, kSame, kFloat)               \
  X(Exp2, 1, kPure, kSame, kFloat)           X(Log2, 1, kPure, kSame, kFloat)                \
  X(Sin, 1, kPure, kSame, kFloat)            X(Cos, 1, kPure, kSame, kFloat)                 \
  X(Floor, 1, kPure, kSame, kFloat)          X(RoundEven, 1, kPure, kSame, kFloat)           \
  X(Convert, 1, kPure, kOwn, kAny)           X(Bitcast, 1, kPure, kOwn, kNumber)             \
  X(Pack, -1, kPure, kOwn, kAny)             X(Extract, 1, kPure, kOwn, kAny)                \
  X(Insert, 2, kPure, kOwn, kAny)            X(Dot4, 3, kPure, kOwn, kInt)                   \
  X(Load, 1, kReads, kOwn, kInt)             X(Store, 2, kWrites, kOwn, kInt)                \
  X(Atomic, 2, kWrites, kOwn, kInt)          X(CompareExchange, 3, kWrites, kOwn, kInt)      \
  X(MatrixLoad, 2, kConvergent, kOwn, kInt)                                                    \
  X(MatrixStore, 3, kConvergent, kOwn, kInt)   X(MatrixMulAdd, 3, kConvergent, kOwn, kAny)       \
  X(Barrier, 0, kConvergent, kOwn, kAny)       X(Shuffle, 2, kConvergent, kOwn, kNumber)         \
  X(ShuffleXor, 1, kConvergent, kSame, kNumber)                                                \
  X(SubgroupReduce, 1, kConvergent, kSame, kNumber)                                            \
  X(SubgroupScan, 1, kConvergent, kSame, kNumber)                                              \
  X(Ballot, 1, kConvergent, kOwn, kAny)        X(If, 1, kControl, kOwn, kAny)                  \
  X(For, -1, kControl, kOwn, kAny)           X(While, -1, kControl, kOwn, kAny)              \
  X(ForElements, 1, kControl, kOwn, kAny)    X(Yield, -1, kControl, kOwn, kAny)
// clang-format on

enum class Code : uint8_t {
#define X(name, ...) k##name,
  FORGE_KERNEL_OPS(X)
#undef X
};
enum class Effect : uint8_t { kPure, kReads, kWrites, kConvergent, kControl };
// Operands and result are of one type; the same, but the result is bool; a rule of its own.
enum class TypeRule : uint8_t { kSame, kCompare, kOwn };
enum class ElementClass : uint8_t {
  kAny,
  kNumber,
  kInt,
  kFloat,
  kLogic
};  // logic: integers and bool
struct CodeInfo {
  std::string_view name;  // "SubgroupReduce"
  int arity;              // -1: any
  Effect effect;          // kConvergent: all invocations of the scope execute it together
  TypeRule rule;
  ElementClass of;
};
const CodeInfo& Info(Code code);
constexpr bool IsOneOf(Code code, std::initializer_list<Code> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// Has no result; control but Yield has as many as it carries.
constexpr bool IsSilent(Code code) {
  return IsOneOf(code, {Code::kStore, Code::kMatrixStore, Code::kBarrier, Code::kYield});
}

// A column of the list above; codes that are left out have T{}.
template <class T>
class CodeTable {
 public:
  constexpr CodeTable(std::initializer_list<std::pair<Code, T>> rows) {
    for (const auto& [code, value] : rows) values_[static_cast<size_t>(code)] = value;
  }
  constexpr const T& operator[](Code code) const { return values_[static_cast<size_t>(code)]; }

 private:
  std::array<T, static_cast<size_t>(Code::kYield) + 1> values_{};
};

// Flags in Inst::aux of arithmetic.
// Floats: rounded as written, never contracted; Min and Max propagate NaN.
inline constexpr uint8_t kPrecise = 1;
// Signed Div and Rem: both operands are at least 0.
inline constexpr uint8_t kNonNegative = 2;
// In Inst::aux of For: the driver is asked not to unroll it.
inline constexpr uint8_t kRolled = 1;
// In Inst::aux of MatrixLoad: neighbours in memory are of one column.
inline constexpr uint8_t kColumnMajor = 1;

using Id = uint32_t;  // a value of this kernel
using BlockId = uint32_t;

// Copied freely; argument lists lie in Kernel::operands.
struct Inst {
  Code code{};
  uint8_t aux = 0;    // flags, builtin, kind of reduction or atomic, component, lane mask
  uint16_t view = 0;  // loads, stores: which view
  uint32_t args = 0, arg_count = 0;  // into Kernel::operands
  Id result = 0;  // first of `result_count`; If, For and While have one per yielded value
  uint16_t result_count = 1;
  uint16_t block_count = 0;  // If: then, else. For, ForElements: body. While: test, body.
  BlockId block = 0;         // first of them
  uint64_t literal = 0;      // bits of a literal's element, zero-extended; index of a scalar
};
struct Block {
  // For: counter, then the carried values. While: the carried values. ForElements: row, column,
  // element.
  std::vector<Id> arguments;
  std::vector<Inst> insts;  // the last one yields; a While's test yields a bool
};
struct ValueInfo {
  Type type;
  Uniform uniform = Uniform::kInvocation;
};

struct Kernel {
  std::string name = {};
  std::array<uint32_t, 3> workgroup{64, 1, 1};
  uint32_t subgroup = 0;                 // required size; 0: any
  bool vulkan_memory = false;            // declares Vulkan's memory model, as matrices do anyway
  std::array<ir::Dim, 3> grid{1, 1, 1};  // workgroups; the device splits what is beyond its limit
  std::vector<View> views = {};
  // i32s that are not literals; the device decides how they travel.
  std::vector<ir::Dim> scalars = {};
  std::vector<ValueInfo> values = {};
  std::vector<Id> operands = {};
  std::vector<Block> blocks = {};  // blocks[0] is the body
  std::span<const Id> ArgsOf(const Inst& i) const {
    return std::span(operands).subspan(i.args, i.arg_count);
  }
  std::span<const Id> YieldOf(BlockId b) const { return ArgsOf(blocks[b].insts.back()); }
  const Type& TypeOf(Id v) const { return values[v].type; }
};

// Does a scalar depend on a step value? Then the kernel reads its scalars from a buffer, so that a
// recorded launch serves all values; otherwise they are push constants.
bool ReadsStepValues(const Kernel& k);
// Of that buffer, a uniform one: behind all operands that a kernel may bind.
inline constexpr uint32_t kParameterBinding = 64;

// ---- building -----------------------------------------------------------------------------------

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
enum class DotKind : uint8_t { kSigned, kUnsigned, kMixed };  // mixed: the first is signed
enum class AtomicKind : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kExchange };
class Builder;
struct Val {
  Builder* b = nullptr;
  Id id = 0;
  Type type() const;
  Uniform uniform() const;
  explicit operator bool() const { return b != nullptr; }
};
using Vals = std::vector<Val>;

// Makes one kernel. Literals are folded, equal pure instructions of the open blocks are one, and
// what a loop's body computes from outside values alone is computed outside of the loop.
// The scalar of ir/ops/elementwise/rows.inc on GPUs is Val; codegen/kernel/scalar.h has its
// operators.
class Builder {
 public:
  // Opens the body; `k` has its workgroup, no blocks, and outlives the builder.
  explicit Builder(Kernel& k);
  Builder(const Builder&) = delete;
  Kernel& kernel() { return k_; }
  uint16_t AddView(View v);
  // Whether float arithmetic made from now on carries kPrecise; it does unless told otherwise.
  void set_precise(bool precise);

  // Deduplicated; splat for vectors. Integers saturate, NaN is 0 in them.
  Val Literal(Type t, double v);
  Val Bits(Type t, uint64_t bits);                 // the same, by the bits of an element
  std::optional<uint64_t> LiteralOf(Val v) const;  // its bits when it is one
  Val Int(int64_t v) { return Literal(kI32, static_cast<double>(v)); }
  Val Scalar(const ir::Dim& d);  // a literal when it is one; deduplicated
  Val ScalarAt(size_t index) {   // one that the kernel has
    return Add({.code = Code::kScalar, .literal = index}, kI32, {});
  }
  // The value of an index expression, i32: `at` gives the values of its symbols; what has none of
  // them becomes a Scalar. Every part of the expression must fit 31 bits: schedules see to it.
  using At = std::span<const std::pair<ir::SymbolRef, Val>>;
  Val Index(const ir::Dim& d, At at);
  Val Builtin(BuiltinKind which);  // i32
  // What `i`, which is no control, says by its code, aux, view and literal, of `args`. Where it
  // makes nothing, `type` is not looked at and there is no value.
  Val Add(const Inst& i, const Type& type, absl::Span<const Val> args);
  // A pure instruction. kPrecise is added to `aux` as set_precise says.
  Val Emit(Code code, Type type, absl::Span<const Val> args, uint8_t aux = 0);
  // One part: splat.
  Val Pack(Type t, absl::Span<const Val> parts) { return Emit(Code::kPack, t, parts); }
  Val Extract(Val v, int component) {
    return Emit(Code::kExtract, v.type().Lanes(1), {v}, static_cast<uint8_t>(component));
  }
  Val Insert(Val v, Val part, int component) {
    return Emit(Code::kInsert, v.type(), {v, part}, static_cast<uint8_t>(component));
  }
  // c + the sum of four products of the bytes of two u32; the result has the type of c.
  Val Dot4(DotKind kind, Val a, Val b, Val c) {
    return Emit(Code::kDot4, c.type(), {a, b, c}, static_cast<uint8_t>(kind));
  }
  // See docs/semantics.md.
  Val Convert(Val v, DType to) { return Emit(Code::kConvert, v.type().With(to), {v}); }

  Val Load(uint16_t view, Val index) {
    return Add({.code = Code::kLoad, .view = view}, k_.views[view].elem, {index});
  }
  void Store(uint16_t view, Val index, Val value) {
    Add({.code = Code::kStore, .view = view}, {}, {index, value});
  }
  // What was there before.
  Val Atomic(AtomicKind kind, uint16_t view, Val index, Val value) {
    const Inst i{.code = Code::kAtomic, .aux = static_cast<uint8_t>(kind), .view = view};
    return Add(i, value.type(), {index, value});
  }
  // Puts `value` where `expected` is. What was there before.
  Val CompareExchange(uint16_t view, Val index, Val expected, Val value) {
    return Add({.code = Code::kCompareExchange, .view = view}, value.type(),
               {index, expected, value});
  }

  Vals If(Val condition, absl::FunctionRef<Vals()> yes, absl::FunctionRef<Vals()> no);
  void If(Val condition, absl::FunctionRef<void()> yes);
  // From `begin` while below `end`, by `step` > 0. A body that sees equal begin and end is not
  // emitted, one that runs once is emitted in place.
  struct Range {
    enum Unroll : uint8_t {
      kAsDriverLikes,
      kNot,    // a driver that did would keep what all trips load in registers, and spill
      kWhole,  // in place for each counter, where all three are literals
    };
    Val begin, end, step;
    Unroll unroll = kAsDriverLikes;
  };
  Vals For(const Range& r, Vals carried, absl::FunctionRef<Vals(Val i, Vals carried)> body);
  // Values made by `test` are not seen by `body`.
  Vals While(Vals carried, absl::FunctionRef<Val(Vals)> test, absl::FunctionRef<Vals(Vals)> body);

  // Of the workgroup: control, and shared and global memory.
  void Barrier() { Add({.code = Code::kBarrier}, {}, {}); }
  Val Shuffle(Val v, Val lane) { return Add({.code = Code::kShuffle}, v.type(), {v, lane}); }
  Val ShuffleXor(Val v, uint8_t mask) {
    return Add({.code = Code::kShuffleXor, .aux = mask}, v.type(), {v});
  }
  Val SubgroupReduce(ReduceKind kind, Val v) {
    return Add({.code = Code::kSubgroupReduce, .aux = static_cast<uint8_t>(kind)}, v.type(), {v});
  }
  // Inclusive.
  Val SubgroupScan(ReduceKind kind, Val v) {
    return Add({.code = Code::kSubgroupScan, .aux = static_cast<uint8_t>(kind)}, v.type(), {v});
  }
  Val Ballot(Val condition) { return Add({.code = Code::kBallot}, kU32.Lanes(4), {condition}); }
  // `matrix` is a Type::Matrix; literals of such types fill it. Its rows, or columns where
  // `column_major`, begin at `index` and lie `stride` elements of the view apart; both are the same
  // in the whole subgroup, and place rows at multiples of 16 bytes, or of a row that is shorter.
  Val MatrixLoad(uint16_t view, const Type& matrix, Val index, Val stride, bool column_major) {
    const uint8_t layout = column_major ? kColumnMajor : 0;
    return Add({.code = Code::kMatrixLoad, .aux = layout, .view = view}, matrix, {index, stride});
  }
  // By rows.
  void MatrixStore(uint16_t view, Val index, Val stride, Val matrix) {
    Add({.code = Code::kMatrixStore, .view = view}, {}, {index, stride, matrix});
  }
  // a b + c
  Val MatrixMulAdd(Val a, Val b, Val c) {
    return Add({.code = Code::kMatrixMulAdd}, c.type(), {a, b, c});
  }
  // Calls `body` for each element of a matrix, in whichever invocation holds it. What `body` takes
  // from outside is the same in the whole subgroup, and no private view.
  void ForElements(Val matrix, absl::FunctionRef<void(Val row, Val column, Val element)> body);
  void Finish();  // closes the body; Verify says whether it is well formed

  struct State;  // builder_state.h, for the builder's own sources

 private:
  Kernel& k_;
  std::shared_ptr<State> state_;
};

// Types, dominance, uniform barriers, the limits and features of `caps`.  errors: Internal, with
// the instruction
absl::Status Verify(const Kernel& k, const Caps& caps);
std::string ToText(const Kernel& k);
uint64_t Hash(const Kernel& k);  // of what the printed program depends on; the name is left out

// ---- printers -----------------------------------------------------------------------------------

// A copy that does the same with what SPIR-V promises on a device of these caps: min, max and tests
// propagate NaN, conversions saturate, remainders take negative numbers, dot products are spelled
// out where there are none, and so are 64-bit integers and atomics of f32; a view of several parts
// becomes one of each. Afterwards Min, Max, Convert and Rem mean what SPIR-V's do. What nothing
// reads is left out; scalars and operands stay as they are.
Kernel Lower(const Kernel& k, const Caps& caps);

// A copy that does the same in at most `most` trips of loops: innermost loops take several steps at
// each trip.
Kernel LimitTrips(Kernel k, int64_t most);

// A printer sees a kernel that Verify has passed, and cannot refuse. What its language says
// otherwise or not at all (NaN in max, saturation, dot products) it spells out. Operands are bound
// in order: operand i of a launch is binding i of set 0; scalars are push constants in order, or
// members of the uniform buffer, 4 bytes each.
std::vector<uint32_t> PrintSpirv(const Kernel& k, const Caps& caps);

// A hash of the generator's sources: another generator may print the same kernel otherwise.
std::string_view Revision();

}  // namespace forge::codegen
