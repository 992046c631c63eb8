// SPDX-License-Identifier: Apache-2.0
// The kernel IR: structured SSA, small enough to print with one table and one walk.
//
// A kernel reads and writes views: a memory space, an element type and an index. There are no
// pointers, because Vulkan's logical addressing has none; CUDA C++ writes a view as a pointer and
// an index.
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
  // stored as the bits of integers.
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
  // A cooperative matrix.
  static Type Matrix(DType elem, MatrixUse use, uint16_t rows, uint16_t cols,
                     Scope held_by = Scope::kSubgroup) {
    return {.elem = elem, .use = use, .held_by = held_by, .rows = rows, .cols = cols};
  }
  bool is_held_by_workgroup() const { return is_matrix() && held_by == Scope::kWorkgroup; }
  bool is_matrix() const { return use != MatrixUse::kNone; }
};
inline constexpr Type kBool{DType::kBool}, kI32{DType::kI32}, kU32{DType::kU32}, kF32{DType::kF32};
std::string ToText(const Type& t);  // "f32", "u8x4", "f16<16, 8>"
// A 64-bit integer, which many devices lack.
inline bool IsWide(const Type& t) { return t.elem == DType::kI64 || t.elem == DType::kU64; }
inline int64_t ElementBytes(const Type& t) { return BitWidth(t.elem) / 8 * t.lanes; }  // in memory

// How elements of matrices are held in memory: bf16 as its bits.
inline DType InMemory(DType matrix) { return matrix == DType::kBF16 ? DType::kU16 : matrix; }

// Uniformity: the widest scope in which the value is the same for every invocation. Computed when a
// value is created. The verifier rejects barriers under conditions that are not workgroup-uniform,
// and subgroup ops under conditions that are not subgroup-uniform.
using Uniform = Scope;

enum class Space : uint8_t { kGlobal, kShared, kPrivate };
struct View {
  std::string name = {};
  Space space = Space::kGlobal;
  Type elem = {};    // the unit of an index: f32, 4 x f16 ...; global: bool is u8
  int operand = -1;  // global: which operand of the launch; views of one operand may alias
  int parts = 1;  // global: number of consecutive operands, from `operand` on, that hold its chunks
  uint32_t extent =
      0;  // elements: shared, private; of each chunk except the last, if there are several
  // Global: how the kernel uses the operand, equal in all views of it. Loads from operands that are
  // only read are deduplicated.
  bool reads = true, writes = false;
  bool aliased = false;  // global: an operand of the same element type may be the same memory
  // Shared: the elements lie in another order, so that what stands below each other in lines of 128
  // bytes lies in different banks: piece p of 16 bytes of line l is where p ^ l % 8 would be.
  // Indices are those of the plain order.
  bool swizzled = false;
};
inline constexpr int64_t kSwizzledLineBytes = 128, kSwizzledPieceBytes = 16;
// Bytes of each chunk of a view, except the last.
inline int64_t PartBytes(const View& v) { return v.extent * ElementBytes(v.elem); }

// ---- instructions -------------------------------------------------------------------------------

// Name, number of operands (-1: any), effect, type rule, element class of the first operand. Pure
// instructions depend only on their operands: equal ones are merged, unused ones dropped. The
// verifier, the folder, the text form and the printers are tables keyed by this list. Indices and
// trip counts are i32.
//
// Integers wrap. Div and Rem truncate; undefined for the divisor 0, and -1 for the lowest value.
// Shift amounts must be less than the width. docs/semantics.md defines Convert. Eq, Lt and Le are
// false for NaN. scalar.h has total versions.
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
  X(CopyAsync, 3, kWrites, kOwn, kInt)       X(CommitCopies, 0, kConvergent, kOwn, kAny)     \
  X(WaitCopies, 0, kConvergent, kOwn, kAny)  X(MatrixWait, 1, kConvergent, kSame, kAny)      \
  X(MatrixLoad, 2, kConvergent, kOwn, kInt)                                                    \
  X(MatrixStore, 3, kConvergent, kOwn, kInt)   X(MatrixMulAdd, 3, kConvergent, kOwn, kAny)       \
  X(Barrier, 0, kConvergent, kOwn, kAny)       X(Shuffle, 2, kConvergent, kOwn, kNumber)         \
  X(ShuffleXor, 1, kConvergent, kSame, kNumber)                                                \
  X(SubgroupReduce, 1, kConvergent, kSame, kNumber)                                            \
  X(SubgroupScan, 1, kConvergent, kSame, kNumber)                                              \
  X(Ballot, 1, kConvergent, kOwn, kAny)        X(If, 1, kControl, kOwn, kAny)                  \
  X(For, -1, kControl, kOwn, kAny)           X(While, -1, kControl, kOwn, kAny)              \
  X(MatrixReduce, 1, kConvergent, kSame, kNumber)                                              \
  X(MatrixConvert, -1, kConvergent, kOwn, kAny)                                                \
  X(ForElements, -1, kControl, kOwn, kAny)   X(Yield, -1, kControl, kOwn, kAny)
// clang-format on

enum class Code : uint8_t {
#define X(name, ...) k##name,
  FORGE_KERNEL_OPS(X)
#undef X
};
enum class Effect : uint8_t { kPure, kReads, kWrites, kConvergent, kControl };
// Operands and result have the same type; the same, with a bool result; a separate rule.
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

// True for instructions without a result. Control flow other than Yield has a result for each
// carried value.
constexpr bool IsSilent(Code code) {
  return IsOneOf(code, {Code::kStore, Code::kCopyAsync, Code::kCommitCopies, Code::kWaitCopies,
                        Code::kMatrixStore, Code::kBarrier, Code::kYield});
}

// A table keyed by instruction; missing entries are T{}.
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

// Flags in Inst::aux of arithmetic. Floats: no contraction or reassociation; Min and Max propagate
// NaN.
inline constexpr uint8_t kPrecise = 1;
// Signed Div and Rem: both operands are non-negative.
inline constexpr uint8_t kNonNegative = 2;
// In Inst::aux of For: asks the driver not to unroll the loop.
inline constexpr uint8_t kRolled = 1;
// In Inst::aux of MatrixLoad: the matrix is stored in column-major order.
inline constexpr uint8_t kColumnMajor = 1;

using Id = uint32_t;  // a value of this kernel
using BlockId = uint32_t;

// Argument lists are in Kernel::operands.
struct Inst {
  Code code{};
  // Flags, builtin, kind of reduction or atomic, component, lane mask, number of elements, lanes or
  // groups.
  uint8_t aux = 0;
  uint16_t view = 0;  // the view of loads and stores; of CopyAsync, where it copies to
  uint32_t args = 0, arg_count = 0;  // into Kernel::operands
  Id result = 0;  // first of `result_count`; If, For and While have one per yielded value
  uint16_t result_count = 1;
  uint16_t block_count = 0;  // If: then, else. For, ForElements: body. While: test, body.
  BlockId block = 0;         // first of them
  // Bits of a literal's element, zero-extended; index of a scalar; view that CopyAsync reads.
  uint64_t literal = 0;
};
struct Block {
  // For: counter, then the carried values. While: the carried values. ForElements: row, column, an
  // element of each matrix.
  std::vector<Id> arguments;
  std::vector<Inst> insts;  // the last one is Yield; the test of a While yields a bool
};
struct ValueInfo {
  Type type;
  Uniform uniform = Uniform::kInvocation;
};

struct Kernel {
  std::string name = {};
  std::array<uint32_t, 3> workgroup{64, 1, 1};
  uint32_t subgroup = 0;       // required size; 0: any
  bool vulkan_memory = false;  // declares the Vulkan memory model; implied by matrices
  bool approximate = false;    // functions of f32 may be native ones, see codegen/kernel/scalar.h
  std::array<ir::Dim, 3> grid{1, 1, 1};  // workgroups; the device splits grids beyond its limit
  std::vector<View> views = {};
  // i32 arguments; the device decides how they are passed.
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

// True when a scalar depends on a step value. Such a kernel reads its scalars from a buffer, so
// that a recorded launch serves all values; otherwise scalars are push constants.
bool ReadsStepValues(const Kernel& k);
// The binding of that uniform buffer, after all operands that a kernel may bind.
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

// Builds a kernel. Folds literals, merges equal pure instructions of the open blocks, and hoists
// loop-invariant instructions. codegen/kernel/scalar.h has the operators of Val.
class Builder {
 public:
  // Opens the body. `k` has its workgroup and no blocks, and must outlive the builder.
  explicit Builder(Kernel& k);
  Builder(const Builder&) = delete;
  Kernel& kernel() { return k_; }
  uint16_t AddView(View v);
  // Sets whether further float arithmetic has kPrecise; default: true.
  void set_precise(bool precise);

  // Returns a literal, repeated for vectors. Integers saturate; NaN gives 0.
  Val Literal(Type t, double v);
  Val Bits(Type t, uint64_t bits);                 // the same from the bits of an element
  std::optional<uint64_t> LiteralOf(Val v) const;  // the bits of a literal; nullopt otherwise
  Val Int(int64_t v) { return Literal(kI32, static_cast<double>(v)); }
  Val Scalar(const ir::Dim& d);  // a literal when it is one; deduplicated
  Val ScalarAt(size_t index) {   // an existing scalar of the kernel
    return Add({.code = Code::kScalar, .literal = index}, kI32, {});
  }
  // Computes an index expression in i32. `at` has the values of its symbols; subexpressions without
  // these symbols become Scalars. Schedules ensure that every subexpression fits 31 bits.
  using At = std::span<const std::pair<ir::SymbolRef, Val>>;
  Val Index(const ir::Dim& d, At at);
  Val Builtin(BuiltinKind which);  // i32
  // Appends an instruction other than control flow, given by its code, aux, view and literal. An
  // instruction without a result ignores `type` and returns null.
  Val Add(const Inst& i, const Type& type, absl::Span<const Val> args);
  // Appends a pure instruction; adds kPrecise to `aux` as set by set_precise.
  Val Emit(Code code, Type type, absl::Span<const Val> args, uint8_t aux = 0);
  // A single part is repeated.
  Val Pack(Type t, absl::Span<const Val> parts) { return Emit(Code::kPack, t, parts); }
  Val Extract(Val v, int component) {
    return Emit(Code::kExtract, v.type().Lanes(1), {v}, static_cast<uint8_t>(component));
  }
  Val Insert(Val v, Val part, int component) {
    return Emit(Code::kInsert, v.type(), {v, part}, static_cast<uint8_t>(component));
  }
  // c plus the dot product of the four bytes of two u32; the result has the type of c.
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
  // Stores `value` if the element equals `expected`. Returns the previous value.
  Val CompareExchange(uint16_t view, Val index, Val expected, Val value) {
    return Add({.code = Code::kCompareExchange, .view = view}, value.type(),
               {index, expected, value});
  }

  Vals If(Val condition, absl::FunctionRef<Vals()> yes, absl::FunctionRef<Vals()> no);
  void If(Val condition, absl::FunctionRef<void()> yes);

  // Copies `count` adjacent elements, 16 aligned bytes in all, from global to shared memory of the
  // same element type; zeros unless `inside`. They are there for the invocation once it has waited
  // for their group, and for others behind a barrier after that.
  struct CopyPlace {
    uint16_t view = 0;
    Val index;
  };
  void CopyAsync(const CopyPlace& to, const CopyPlace& from, int count, Val inside) {
    Add({.code = Code::kCopyAsync,
         .aux = static_cast<uint8_t>(count),
         .view = to.view,
         .literal = from.view},
        {}, {to.index, from.index, inside});
  }
  // Closes the group of the copies that this invocation has begun since the last one.
  void CommitCopies() { Add({.code = Code::kCommitCopies}, {}, {}); }
  // Waits for all of its groups but the last `pending`.
  void WaitCopies(int pending) {
    Add({.code = Code::kWaitCopies, .aux = static_cast<uint8_t>(pending)}, {}, {});
  }
  // A loop from `begin` while below `end`, by `step` > 0. A loop without trips is not emitted, and
  // one with a single trip is emitted in place.
  struct Range {
    enum Unroll : uint8_t {
      kAsDriverLikes,
      kNot,    // unrolling would keep the loads of all trips in registers, and spill
      kWhole,  // unrolled here, where all three are literals
    };
    Val begin, end, step;
    Unroll unroll = kAsDriverLikes;
  };
  Vals For(const Range& r, Vals carried, absl::FunctionRef<Vals(Val i, Vals carried)> body);
  // `body` must not use values of `test`.
  Vals While(Vals carried, absl::FunctionRef<Val(Vals)> test, absl::FunctionRef<Vals(Vals)> body);

  // A barrier of the workgroup, for control flow and for shared and global memory.
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
  // Loads a matrix. Its rows, or columns if `column_major`, begin at `index` and are `stride`
  // elements of the view apart. Both are uniform among its holders and align rows to 16 bytes, or
  // to their length if that is less.
  //
  // In a swizzled view rows are 128 bytes apart; a longer one goes on `stride` elements further,
  // line by line. An A or B that a workgroup holds is loaded from there, and read when it is
  // multiplied.
  Val MatrixLoad(uint16_t view, const Type& matrix, Val index, Val stride, bool column_major) {
    const uint8_t layout = column_major ? kColumnMajor : 0;
    return Add({.code = Code::kMatrixLoad, .aux = layout, .view = view}, matrix, {index, stride});
  }
  // Stores a matrix in row-major order.
  void MatrixStore(uint16_t view, Val index, Val stride, Val matrix) {
    Add({.code = Code::kMatrixStore, .view = view}, {}, {index, stride, matrix});
  }
  // a b + c. Of matrices that a workgroup holds, the product runs on its own: its result may only
  // be added to, and waited for, and the memory of its operands must not change, until then.
  Val MatrixMulAdd(Val a, Val b, Val c) {
    return Add({.code = Code::kMatrixMulAdd}, c.type(), {a, b, c});
  }
  // Returns `sum` when all products of the workgroup but the last `pending` have ended.
  Val MatrixWait(Val sum, int pending) {
    return Add({.code = Code::kMatrixWait, .aux = static_cast<uint8_t>(pending)}, sum.type(),
               {sum});
  }
  // Calls `body` for each element of a matrix, in the invocation that holds it, or for each `lanes`
  // neighbours in a row, with the column of the first: see Caps::elements_together. Values from
  // outside must be subgroup-uniform; private views cannot be used.
  using ElementBody = absl::FunctionRef<void(Val row, Val column, Val elements)>;
  void ForElements(Val matrix, int lanes, ElementBody body);
  void ForElements(Val matrix, ElementBody body) { ForElements(matrix, 1, body); }
  // The same for the elements of several matrices of one size at the same place. Returns a matrix
  // for each value that `body` returns, made of these.
  using ElementsBody = absl::FunctionRef<Vals(Val row, Val column, const Vals& elements)>;
  Vals ForElements(absl::Span<const Val> matrices, int lanes, ElementsBody body);
  // Reduces each row of an accumulator; all elements of the row become the result.
  Val MatrixReduce(ReduceKind kind, Val matrix) {
    return Add({.code = Code::kMatrixReduce, .aux = static_cast<uint8_t>(kind)}, matrix.type(),
               {matrix});
  }
  // Converts f32 accumulators, side by side, to an A of 16-bit floats, rounding to nearest even.
  Val MatrixConvert(const Type& a, absl::Span<const Val> sums) {
    return Add({.code = Code::kMatrixConvert}, a, sums);
  }
  void Finish();  // closes the body

  struct State;  // in builder_state.h

 private:
  Kernel& k_;
  std::shared_ptr<State> state_;
};

// Verifies types, dominance, uniformity of barriers, and the limits and features of `caps`. errors:
// Internal with the instruction
absl::Status Verify(const Kernel& k, const Caps& caps);
std::string ToText(const Kernel& k);
uint64_t Hash(const Kernel& k);  // of everything that the printed program depends on, not the name

// ---- printers -----------------------------------------------------------------------------------

// Returns an equivalent kernel whose instructions have the semantics of SPIR-V on a device with
// these capabilities (see codegen/lower): Min, Max and comparisons handle NaN, conversions
// saturate, remainders accept negative numbers; missing dot products, 64-bit integers and f32
// atomics are expanded; a view of several chunks becomes several views. Unused values are dropped;
// scalars and operands are unchanged.
Kernel Lower(const Kernel& k, const Caps& caps);

// Returns an equivalent kernel with at most `most` loop trips: innermost loops take several steps
// in each trip.
Kernel LimitTrips(Kernel k, int64_t most);

// Prints a verified kernel as SPIR-V; cannot fail. Operand i of a launch is binding i of set 0.
// Scalars, 4 bytes each, are push constants in order, or members of the uniform buffer.
std::vector<uint32_t> PrintSpirv(const Kernel& k, const Caps& caps);

// A hash of the sources of the generator, for caches of printed kernels.
std::string_view Revision();

}  // namespace forge::codegen
