// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/prelude.h"

#include <algorithm>

namespace forge::codegen {
namespace {

constexpr std::string_view kTypes = R"(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
struct f16 { u16 bits; };
)";

constexpr std::string_view kHalves = R"(
__device__ inline f32 to_f32(f16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ inline f16 to_f16(f32 x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
__device__ inline f16 to_f16(f64 x) {
  f16 y;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
  return y;
}
)";

constexpr std::string_view kBitcast = R"(
template <class T, class F>
__device__ inline T bitcast(F x) { return __builtin_bit_cast(T, x); }
)";

constexpr std::string_view kMixedDot = R"(
// Of four signed and four unsigned bytes.
__device__ inline i32 mixed_dot4(u32 a, u32 b, i32 c) {
  i32 d;
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
)";

// All lanes of a warp take part; narrow integers travel as i32.
constexpr std::string_view kShuffle = R"(
template <class T>
__device__ inline T shuffle(T x, i32 lane) { return T(__shfl_sync(0xffffffffu, x, lane)); }
template <class T>
__device__ inline T shuffle_xor(T x, i32 mask) {
  return T(__shfl_xor_sync(0xffffffffu, x, mask));
}
template <class T>
__device__ inline T shuffle_up(T x, i32 distance) {
  return T(__shfl_up_sync(0xffffffffu, x, distance));
}
struct Sum { template <class T> __device__ T operator()(T a, T b) const { return T(a + b); } };
struct Prod { template <class T> __device__ T operator()(T a, T b) const { return T(a * b); } };
struct Min { template <class T> __device__ T operator()(T a, T b) const { return b < a ? b : a; } };
struct Max { template <class T> __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
)";

constexpr std::string_view kReduce = R"(
template <class T, class Combine>
__device__ inline T subgroup_reduce(T x, Combine combine) {
  for (i32 mask = 16; mask > 0; mask /= 2) x = combine(x, shuffle_xor(x, mask));
  return x;
}
)";

constexpr std::string_view kScan = R"(
template <class T, class Combine>
__device__ inline T subgroup_scan(T x, i32 lane, Combine combine) {
  for (i32 distance = 1; distance < 32; distance *= 2) {
    const T before = shuffle_up(x, distance);
    if (lane >= distance) x = combine(before, x);
  }
  return x;
}
)";

// Source: PTX ISA, "Matrix Fragments for mma.m16n8k*". A register of A or B holds neighbours along
// k; registers of A alternate between rows 0 .. 7 and 8 .. 15, then go on along k.
constexpr std::string_view kMatrices = R"(
template <class E, int N>
struct fragment { u32 r[N]; };  // of A or B, held by a warp
template <class T>
struct sums { T r[4]; };        // of C, 16 x 8
__device__ inline i32 lane_of_warp() {
  u32 lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return i32(lane);
}
struct bf16 { u16 bits; };
__device__ inline u32 bits_of(f16 x) { return x.bits; }
__device__ inline u32 bits_of(bf16 x) { return x.bits; }
__device__ inline u32 bits_of(u8 x) { return x; }
__device__ inline u32 bits_of(i8 x) { return u8(x); }
// Neighbours along k: `next` elements apart.
template <class E>
__device__ inline u32 along_k(const E* p, i32 next) {
  if (next == 1) return *reinterpret_cast<const u32*>(p);
  constexpr int kCount = 4 / sizeof(E);
  u32 word = 0;
  for (int n = 0; n < kCount; ++n) word |= bits_of(p[n * next]) << (n * 8 * int(sizeof(E)));
  return word;
}
template <class E, int N>
__device__ inline void load_a(fragment<E, N>& a, const E* p, i32 row_step, i32 k_step) {
  constexpr int kCount = 4 / sizeof(E);
  const i32 lane = lane_of_warp(), row = lane / 4, k = lane % 4 * kCount;
#pragma unroll
  for (int n = 0; n < N; ++n)
    a.r[n] = along_k(p + (row + n % 2 * 8) * row_step + (k + n / 2 * 4 * kCount) * k_step, k_step);
}
template <class E, int N>
__device__ inline void load_b(fragment<E, N>& b, const E* p, i32 k_step, i32 column_step) {
  constexpr int kCount = 4 / sizeof(E);
  const i32 lane = lane_of_warp(), column = lane / 4, k = lane % 4 * kCount;
#pragma unroll
  for (int n = 0; n < N; ++n)
    b.r[n] = along_k(p + column * column_step + (k + n * 4 * kCount) * k_step, k_step);
}
// The same from shared memory, where neighbours along k are contiguous and rows begin at multiples
// of 16 bytes.
#define FORGE_LOAD_MATRICES(NAME, TURN)                                                        \
  __device__ inline void NAME(u32 (&r)[4], const void* row) {                                  \
    const u32 at = u32(__cvta_generic_to_shared(row));                                         \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" TURN ".shared.b16 {%0, %1, %2, %3}, [%4];"    \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");       \
  }                                                                                            \
  __device__ inline void NAME(u32 (&r)[2], const void* row) {                                  \
    const u32 at = u32(__cvta_generic_to_shared(row));                                         \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" TURN ".shared.b16 {%0, %1}, [%2];"            \
                 : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");                               \
  }                                                                                            \
  __device__ inline void NAME(u32 (&r)[1], const void* row) {                                  \
    const u32 at = u32(__cvta_generic_to_shared(row));                                         \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" TURN ".shared.b16 {%0}, [%1];"                \
                 : "=r"(r[0]) : "r"(at) : "memory");                                           \
  }
FORGE_LOAD_MATRICES(load_matrices, "")
FORGE_LOAD_MATRICES(load_turned, ".trans")
#undef FORGE_LOAD_MATRICES
template <class E, int N>
__device__ inline void load_a_shared(fragment<E, N>& a, const E* p, i32 row_step) {
  const i32 lane = lane_of_warp() % (8 * N);
  load_matrices(a.r, p + lane % 16 * row_step + lane / 16 * i32(16 / sizeof(E)));
}
template <class E, int N>
__device__ inline void load_b_shared(fragment<E, N>& b, const E* p, i32 column_step) {
  const i32 lane = lane_of_warp() % (8 * N);
  load_matrices(b.r, p + lane % 8 * column_step + lane / 8 * i32(16 / sizeof(E)));
}
// The same of halves, where neighbours along the other axis are contiguous.
template <class E, int N>
__device__ inline void load_a_turned(fragment<E, N>& a, const E* p, i32 k_step) {
  const i32 lane = lane_of_warp() % (8 * N);
  load_turned(a.r, p + (lane % 8 + lane / 16 * 8) * k_step + lane / 8 % 2 * 8);
}
template <class E, int N>
__device__ inline void load_b_turned(fragment<E, N>& b, const E* p, i32 k_step) {
  load_turned(b.r, p + lane_of_warp() % (8 * N) * k_step);
}
template <class T>
__device__ inline void load_c(sums<T>& c, const T* p, i32 row_step, i32 column_step) {
  const i32 lane = lane_of_warp();
#pragma unroll
  for (int n = 0; n < 4; ++n)
    c.r[n] = p[(lane / 4 + n / 2 * 8) * row_step + (lane % 4 * 2 + n % 2) * column_step];
}
template <class T>
__device__ inline void store_c(T* p, i32 row_step, const sums<T>& c) {
  const i32 lane = lane_of_warp();
#pragma unroll
  for (int n = 0; n < 4; ++n)
    p[(lane / 4 + n / 2 * 8) * row_step + lane % 4 * 2 + n % 2] = c.r[n];
}
)";

// The four elements of a lane are two each of two rows, which three other lanes share.
constexpr std::string_view kRowReduction = R"(
template <class T, class Combine>
__device__ inline sums<T> reduce_rows(sums<T> c, Combine combine) {
#pragma unroll
  for (int n = 0; n < 4; n += 2) {
    T x = combine(c.r[n], c.r[n + 1]);
    x = combine(x, shuffle_xor(x, 1));
    c.r[n] = c.r[n + 1] = combine(x, shuffle_xor(x, 2));
  }
  return c;
}
)";

// Registers of an A hold what those of sums do, two in one.
constexpr std::string_view kSumConversion = R"(
__device__ inline void convert_two(u32& to, f32 low, f32 high, f16) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low));
#else
  to = u32(to_f16(low).bits) | u32(to_f16(high).bits) << 16;
#endif
}
__device__ inline void convert_two(u32& to, f32 low, f32 high, bf16) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low));
#endif
}
template <class E>
__device__ inline void convert_sums(fragment<E, 2>& a, const sums<f32>& c) {
  convert_two(a.r[0], c.r[0], c.r[1], E{});
  convert_two(a.r[1], c.r[2], c.r[3], E{});
}
template <class E>
__device__ inline void convert_sums(fragment<E, 4>& a, const sums<f32>& left, const sums<f32>& right) {
  convert_two(a.r[0], left.r[0], left.r[1], E{});
  convert_two(a.r[1], left.r[2], left.r[3], E{});
  convert_two(a.r[2], right.r[0], right.r[1], E{});
  convert_two(a.r[3], right.r[2], right.r[3], E{});
}
)";

constexpr std::string_view kHalfMma = R"(
#define FORGE_MULTIPLY_ADD(E, TYPES)                                                           \
  __device__ inline sums<f32> multiply_add(const fragment<E, 4>& a, const fragment<E, 2>& b,   \
                                           sums<f32> c) {                                      \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPES ".f32 "                        \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                 : "+f"(c.r[0]), "+f"(c.r[1]), "+f"(c.r[2]), "+f"(c.r[3])                      \
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]),            \
                   "r"(b.r[1]));                                                               \
    return c;                                                                                  \
  }
FORGE_MULTIPLY_ADD(f16, "f16.f16")
FORGE_MULTIPLY_ADD(bf16, "bf16.bf16")
#undef FORGE_MULTIPLY_ADD
__device__ inline sums<f32> multiply_add(const fragment<f16, 2>& a, const fragment<f16, 1>& b,
                                         sums<f32> c) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c.r[0]), "+f"(c.r[1]), "+f"(c.r[2]), "+f"(c.r[3])
               : "r"(a.r[0]), "r"(a.r[1]), "r"(b.r[0]));
  return c;
}
)";

constexpr std::string_view kByteMma = R"(
#define FORGE_MULTIPLY_ADD(A, B, C, TYPES)                                                     \
  __device__ inline sums<C> multiply_add(const fragment<A, 4>& a, const fragment<B, 2>& b,     \
                                         sums<C> c) {                                          \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." TYPES ".s32 "                        \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                 : "+r"(c.r[0]), "+r"(c.r[1]), "+r"(c.r[2]), "+r"(c.r[3])                      \
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]),            \
                   "r"(b.r[1]));                                                               \
    return c;                                                                                  \
  }
FORGE_MULTIPLY_ADD(i8, i8, i32, "s8.s8")
FORGE_MULTIPLY_ADD(i8, u8, i32, "s8.u8")
FORGE_MULTIPLY_ADD(u8, i8, i32, "u8.s8")
FORGE_MULTIPLY_ADD(u8, u8, u32, "u8.u8")
#undef FORGE_MULTIPLY_ADD
)";

// Of an element in a view with elements of so many bytes; see View::swizzled.
constexpr std::string_view kSwizzle = R"(
template <int kBytes>
__device__ inline i32 swizzled(i32 at) { return at ^ at / (128 / kBytes) % 8 * (16 / kBytes); }
)";

// The wait makes what has been copied visible to matrix units, which read past the thread.
constexpr std::string_view kCopies = R"(
__device__ inline void copy_async(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(u32(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                  "r"(inside ? 16 : 0) : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" :: "n"(kPending) : "memory");
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
)";

// Source: PTX ISA, "Asynchronous warpgroup level matrix shared memory layout". Lines of 128 bytes,
// eight of which are one pattern of the swizzle; where they run along k, a step of 16 halves is a
// quarter of a line, otherwise 16 lines.
constexpr std::string_view kTiles = R"(
template <class T, int N>
struct group_sums { T r[N]; };  // of C, in one thread
template <bool kAlongK>         // of the lines
struct tile {                   // of A or B, in shared memory
  u64 bits;
  u32 panel;  // bytes from one line to where it goes on
  __device__ inline u64 at_step(i32 k) const {
    return bits + (kAlongK ? k / 4 * (panel >> 4) + k % 4 * 2 : k * 128);
  }
};
template <bool kAlongK>
__device__ inline tile<kAlongK> tile_at(const void* first, u32 panel) {
  const u64 start = u32(__cvta_generic_to_shared(first)) >> 4 & 0x3fff;
  return {start | u64(panel >> 4 & 0x3fff) << 16 | u64(1024 >> 4) << 32 | u64(1) << 62, panel};
}
// Element n and the three right of it in a row, for n = 0, 4 ...: of the eight that this lane has of
// two blocks of 8 columns, two each of two rows, lanes 0 and 1 of four get the first block's, lanes
// 2 and 3 the second's.
template <class T, int N>
__device__ __forceinline__ void four_of_row(const group_sums<T, N>& c, i32 n, i32 lane, T (&out)[4]) {
  const i32 first = n / 8 * 8 + n / 4 % 2 * 2;
  const bool second = lane % 4 >= 2, odd = lane % 2 != 0;
#pragma unroll
  for (i32 i = 0; i < 2; ++i) {
    const T left = c.r[first + i], right = c.r[first + 4 + i];
    const T other = __shfl_xor_sync(0xffffffffu, second ? left : right, 2);
    const T low = second ? other : left, high = second ? right : other;
    const T next = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
    out[i] = odd ? next : low;
    out[2 + i] = odd ? high : next;
  }
}
// Of A: the rows of this thread's group of 128.
template <bool kAlongK>
__device__ inline tile<kAlongK> rows_of_group(tile<kAlongK> a) {
  a.bits += threadIdx.x / 128 * (kAlongK ? 64 * 128 >> 4 : a.panel >> 4);
  return a;
}
)";

constexpr std::string_view kApproximate = R"(
#define FORGE_FAST(name, instruction)            \
  __device__ inline f32 name(f32 x) {            \
    f32 y;                                       \
    asm(instruction " %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                    \
  }
FORGE_FAST(fast_sqrt, "sqrt.approx.f32")
FORGE_FAST(fast_rsqrt, "rsqrt.approx.f32")
FORGE_FAST(fast_exp2, "ex2.approx.f32")
FORGE_FAST(fast_log2, "lg2.approx.f32")
FORGE_FAST(fast_sin, "sin.approx.f32")
FORGE_FAST(fast_cos, "cos.approx.f32")
)";

// Of Helper.
constexpr std::string_view kTexts[] = {
    kHalves,  kBitcast,      kMixedDot,      kShuffle, kReduce, kScan,  kMatrices,   kHalfMma,
    kByteMma, kRowReduction, kSumConversion, kSwizzle, kCopies, kTiles, kApproximate};
static_assert(std::size(kTexts) == static_cast<size_t>(Helper::kCount));

}  // namespace

std::string_view ElementName(DType t) { return t == DType::kBool ? "bool" : Name(t); }

void Prelude::Need(Helper h) {
  helpers_[static_cast<size_t>(h)] = true;
  if (h == Helper::kReduce || h == Helper::kScan) Need(Helper::kShuffle);
  if (h == Helper::kHalfMma || h == Helper::kByteMma) Need(Helper::kMatrices);
  if (h == Helper::kRowReduction || h == Helper::kSumConversion) Need(Helper::kMatrices);
  if (h == Helper::kRowReduction) Need(Helper::kShuffle);
  if (h == Helper::kSumConversion) Need(Helper::kHalves);
}

std::string Prelude::TypeName(const Type& t) {
  const std::string element(ElementName(t.elem));
  if (t.lanes == 1) return element;
  if (std::find(vectors_.begin(), vectors_.end(), t) == vectors_.end()) vectors_.push_back(t);
  return fmt::format("{}x{}", element, t.lanes);
}

void Prelude::NeedGroupProduct(DType elem, int columns) {
  Need(Helper::kTiles);
  const GroupProduct p{elem, columns};
  if (std::find(products_.begin(), products_.end(), p) == products_.end()) products_.push_back(p);
}

// "+f"(r[0]), "+f"(r[1]) ...
std::string Prelude::SumOperands(int sums) {
  std::string out;
  for (int n = 0; n < sums; ++n)
    out += fmt::format("{}\"+f\"(c.r[{}])", n == 0 ? "" : n % 8 == 0 ? ",\n        " : ", ", n);
  return out;
}

// Of 64 rows by `columns` and, at a step, 16 along k.
std::string Prelude::TextOf(const GroupProduct& p) {
  const int sums = p.columns / 2;
  std::string registers;
  for (int n = 0; n < sums; ++n) registers += fmt::format("{}%{}", n == 0 ? "" : ", ", n);
  return fmt::format(R"(
template <int kSteps, bool kAAlongK, bool kBAlongK>
__device__ __forceinline__ group_sums<f32, {sums}> multiply_add_{type}(
    tile<kAAlongK> a, tile<kBAlongK> b, group_sums<f32, {sums}> c) {{
  a = rows_of_group(a);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < kSteps; ++k)
    asm volatile(
        "{{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{type}.{type} "
        "{{{registers}}}, %{sums}, %{b}, p, 1, 1, %{across_m}, %{across_n};\n}}"
        : {operands}
        : "l"(a.at_step(k)), "l"(b.at_step(k)), "n"(int(!kAAlongK)), "n"(int(!kBAlongK)));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  return c;
}}
)",
                     fmt::arg("sums", sums), fmt::arg("type", ElementName(p.elem)),
                     fmt::arg("columns", p.columns), fmt::arg("registers", registers),
                     fmt::arg("b", sums + 1), fmt::arg("across_m", sums + 2),
                     fmt::arg("across_n", sums + 3), fmt::arg("operands", SumOperands(sums)));
}

std::string Prelude::WaitText(int sums) {
  return fmt::format(R"(
template <int kPending>
__device__ __forceinline__ group_sums<f32, {0}> wait_products(group_sums<f32, {0}> c) {{
  asm volatile("wgmma.wait_group.sync.aligned %{0};"
      : {1}
      : "n"(kPending) : "memory");
  return c;
}}
)",
                     sums, SumOperands(sums));
}

std::string Prelude::Text() const {
  std::string out(kTypes);
  for (const Type& t : vectors_) {
    const int64_t bytes = t.elem == DType::kBool ? t.lanes : ElementBytes(t);
    const std::string_view element = ElementName(t.elem);
    out += fmt::format("struct alignas({}) {}x{} {{ {} {}; }};\n", bytes, element, t.lanes, element,
                       t.lanes == 2 ? "x, y" : "x, y, z, w");
  }
  for (size_t h = 0; h < helpers_.size(); ++h)
    if (helpers_[h]) out += kTexts[h];
  std::vector<int> waits;
  for (const GroupProduct& p : products_) {
    out += TextOf(p);
    const int sums = p.columns / 2;
    if (std::find(waits.begin(), waits.end(), sums) == waits.end()) out += WaitText(sums);
    waits.push_back(sums);
  }
  return out;
}

}  // namespace forge::codegen
