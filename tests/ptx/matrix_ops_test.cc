// SPDX-License-Identifier: Apache-2.0
// mma.sync of each shape and type, by the fragments as the PTX ISA tabulates them.
#include <gtest/gtest.h>

#include <random>

#include "base/narrow_float.h"
#include "tests/ptx/one_op.h"
#include "tests/ptx/runner.h"

namespace forge::ptx {
namespace {

struct Form {
  const char* shape;
  const char* types;  // d, a, b, c
  int rows, depth, element_bits;
  DType type;  // of A and B
};

// Row and column of element i of A that lane `lane` holds; "Matrix Fragments for mma.m16n8k16" and
// its siblings.
std::pair<int, int> PlaceInA(const Form& f, int lane, int i) {
  const int group = lane / 4, t = lane % 4;
  switch (f.element_bits) {
    case 16:
      if (f.depth == 8) return {i < 2 ? group : group + 8, t * 2 + (i & 1)};
      return {i < 2 || (i >= 4 && i < 6) ? group : group + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
    case 8:
      if (f.rows == 8) return {group, t * 4 + i};
      if (f.depth == 16) return {i < 4 ? group : group + 8, t * 4 + (i & 3)};
      return {i < 4 || (i >= 8 && i < 12) ? group : group + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
    case 32:
      return {i % 2 == 0 ? group : group + 8, i < 2 ? t : t + 4};
    default:
      return {group, t};
  }
}

std::pair<int, int> PlaceInB(const Form& f, int lane, int i) {
  const int group = lane / 4, t = lane % 4;
  switch (f.element_bits) {
    case 16:
      return {t * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
    case 8:
      return {t * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
    case 32:
      return {i < 1 ? t : t + 4, group};
    default:
      return {t, group};
  }
}

std::pair<int, int> PlaceInC(const Form& f, int lane, int i) {
  return {f.rows == 16 && i >= 2 ? lane / 4 + 8 : lane / 4, lane % 4 * 2 + (i & 1)};
}

uint64_t Encode(const Form& f, int v) {
  if (f.type == DType::kF64) return BitsOf(static_cast<double>(v));
  if (f.type == DType::kF32) return BitsOf(static_cast<float>(v));
  if (IsNarrowFloat(f.type)) return EncodeNarrowFloat(f.type, v);
  return static_cast<uint8_t>(v);
}

// Writes a kernel whose lanes load `na + nb + nc` registers and store `nd`.
std::string Text(const Form& f, int na, int nb, int nc, int nd, int reg_bytes) {
  const char* const reg = reg_bytes == 8 ? "b64" : "b32";
  std::string text = fmt::format(
      ".version 8.7\n.target sm_100\n.address_size 64\n.visible .entry product(.param .u64 in, "
      ".param .u64 out) {{\n"
      ".reg .{} %a<9>, %b<9>, %c<9>, %d<9>;\n.reg .u64 from, to, step;\n.reg .u32 lane;\nmov.u32 "
      "lane, %tid.x;\n"
      "ld.param.u64 from, [in];\nld.param.u64 to, [out];\nmul.wide.u32 step, lane, {};\nadd.u64 "
      "from, from, step;\n"
      "mul.wide.u32 step, lane, {};\nadd.u64 to, to, step;\n",
      reg, (na + nb + nc) * reg_bytes, nd * reg_bytes);
  const auto list = [](char name, int n) {
    std::string s = "{";
    for (int i = 0; i < n; ++i) s += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, i);
    return s + "}";
  };
  int at = 0;
  for (const auto& [name, n] : {std::pair('a', na), std::pair('b', nb), std::pair('c', nc)})
    for (int i = 0; i < n; ++i)
      text += fmt::format("ld.global.{} %{}{}, [from+{}];\n", reg, name, i, at++ * reg_bytes);
  text += fmt::format("mma.sync.aligned.{}.row.col.{} {}, {}, {}, {};\n", f.shape, f.types,
                      list('d', nd), list('a', na), list('b', nb), list('c', nc));
  for (int i = 0; i < nd; ++i)
    text += fmt::format("st.global.{} [to+{}], %d{};\n", reg, i * reg_bytes, i);
  return text + "ret;\n}\n";
}

class MatrixOpsTest : public ::testing::TestWithParam<Form> {};

TEST_P(MatrixOpsTest, MultipliesByTheLayoutsOfTheIsa) {
  const Form f = GetParam();
  const std::string types = f.types;
  const int reg_bytes = f.element_bits == 64 ? 8 : 4,
            per = f.element_bits == 64 ? 1 : 32 / f.element_bits;
  const int na = f.rows * f.depth / 32 / per, nb = f.depth * 8 / 32 / per, sums = f.rows * 8 / 32;
  const bool half_d = types.starts_with("f16"),
             half_c = types.ends_with(".f16") && types.starts_with("f16");
  const int nc = half_c ? sums / 2 : sums, nd = half_d ? sums / 2 : sums;
  std::mt19937 random(3);
  std::vector<int> a(f.rows * f.depth), b(f.depth * 8), c(f.rows * 8);
  for (int& v : a) v = static_cast<int>(random() % 9) - 4;
  for (int& v : b) v = static_cast<int>(random() % 9) - 4;
  for (int& v : c) v = static_cast<int>(random() % 9) - 4;
  const int words = na + nb + nc;
  std::vector<uint8_t> in(32 * words * reg_bytes), out(32 * nd * reg_bytes);
  const auto put = [&](int lane, int reg, int element, int bits, uint64_t v) {
    std::memcpy(in.data() + (lane * words + reg) * reg_bytes + element * bits / 8, &v, bits / 8);
  };
  const DType sum_type = f.type == DType::kF64 ? DType::kF64 : DType::kF32;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < na * per; ++i) {
      const auto [row, column] = PlaceInA(f, lane, i);
      put(lane, i / per, i % per, f.element_bits, Encode(f, a[row * f.depth + column]));
    }
    for (int i = 0; i < nb * per; ++i) {
      const auto [row, column] = PlaceInB(f, lane, i);
      put(lane, na + i / per, i % per, f.element_bits, Encode(f, b[row * 8 + column]));
    }
    for (int i = 0; i < sums; ++i) {
      const auto [row, column] = PlaceInC(f, lane, i);
      const int v = c[row * 8 + column];
      if (half_c)
        put(lane, na + nb + i / 2, i % 2, 16, EncodeNarrowFloat(DType::kF16, v));
      else if (types.starts_with("s32"))
        put(lane, na + nb + i, 0, 32, static_cast<uint32_t>(v));
      else
        put(lane, na + nb + i, 0, 8 * reg_bytes,
            sum_type == DType::kF64 ? BitsOf(double(v)) : BitsOf(float(v)));
    }
  }
  const absl::Status status =
      RunPtx(Text(f, na, nb, nc, nd, reg_bytes), "product", {.grid = {1}, .threads = {32}},
             {Argument::Buffer(in), Argument::Buffer(out)});
  ASSERT_TRUE(status.ok()) << status.message();
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < sums; ++i) {
      const auto [row, column] = PlaceInC(f, lane, i);
      int64_t sum = c[row * 8 + column];
      for (int k = 0; k < f.depth; ++k) sum += a[row * f.depth + k] * b[k * 8 + column];
      uint64_t got = 0;
      const int bytes = half_d ? 2 : reg_bytes;
      std::memcpy(&got, out.data() + (lane * sums + i) * bytes, bytes);
      const uint64_t right = half_d ? EncodeNarrowFloat(DType::kF16, static_cast<double>(sum))
                             : types.starts_with("s32") ? static_cast<uint32_t>(sum)
                             : f.type == DType::kF64    ? BitsOf(static_cast<double>(sum))
                                                        : BitsOf(static_cast<float>(sum));
      ASSERT_EQ(got, right) << f.shape << " " << f.types << " lane " << lane << " element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, MatrixOpsTest,
    ::testing::Values(Form{"m16n8k16", "f32.f16.f16.f32", 16, 16, 16, DType::kF16},
                      Form{"m16n8k8", "f32.f16.f16.f32", 16, 8, 16, DType::kF16},
                      Form{"m16n8k16", "f16.f16.f16.f16", 16, 16, 16, DType::kF16},
                      Form{"m16n8k16", "f32.bf16.bf16.f32", 16, 16, 16, DType::kBF16},
                      Form{"m16n8k8", "f32.bf16.bf16.f32", 16, 8, 16, DType::kBF16},
                      Form{"m16n8k8", "f32.tf32.tf32.f32", 16, 8, 32, DType::kF32},
                      Form{"m16n8k4", "f32.tf32.tf32.f32", 16, 4, 32, DType::kF32},
                      Form{"m16n8k32", "s32.s8.s8.s32", 16, 32, 8, DType::kI8},
                      Form{"m16n8k16", "s32.s8.s8.s32", 16, 16, 8, DType::kI8},
                      Form{"m8n8k16", "s32.s8.s8.s32", 8, 16, 8, DType::kI8},
                      Form{"m16n8k32", "f32.e4m3.e4m3.f32", 16, 32, 8, DType::kF8E4M3},
                      Form{"m16n8k32", "f32.e5m2.e5m2.f32", 16, 32, 8, DType::kF8E5M2},
                      Form{"m8n8k4", "f64.f64.f64.f64", 8, 4, 64, DType::kF64}),
    [](const auto& info) {
      std::string name = std::string(info.param.shape) + "_" + info.param.types;
      for (char& c : name) c = c == '.' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace forge::ptx
