// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox4x32-10 in element-wise ops, so that every device draws the same. A node
// draws the same numbers at each run; without a seed, the name of its result gives one.
#include <bit>
#include <cmath>
#include <numbers>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/scan.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::formats {
namespace {

constexpr uint64_t kWord = 0xffffffff;

// is_int: the attribute is an integer, not a float
uint64_t SeedOf(OnnxNode& n, bool is_int = false) {
  if (n.Has("seed"))
    return is_int ? static_cast<uint64_t>(n.Int64("seed", 0))
                  : std::bit_cast<uint64_t>(n.Float("seed", 0));
  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : n.where()) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// Words in u32, a list of them.
class Philox {
 public:
  Philox(OnnxNode& n, uint64_t seed) : f_(n.fn()), key_{seed & kWord, seed >> 32} {}

  // Element i is word i mod 4 of counter offset + i / 4.  source: Salmon et al., "Parallel random
  // numbers: as easy as 1, 2, 3", SC 2011
  ir::Value Words(const ir::Dim& count, uint64_t offset) {
    const ir::Value at = f_(ir::Iota{.dtype = DType::kU32, .count = count}, {});
    const ir::Value zero = f_(ir::Mul{}, {at, Word(0)});
    ir::Value c[4] = {f_(ir::Add{}, {f_(ir::ShiftRight{}, {at, Word(2)}), Word(offset & kWord)}),
                      f_(ir::Add{}, {zero, Word(offset >> 32)}), zero, zero};
    uint64_t key[2] = {key_[0], key_[1]};
    for (int round = 0; round < 10; ++round) {
      constexpr uint64_t kFirst = 0xd2511f53, kSecond = 0xcd9e8d57;
      const ir::Value high0 = f_(ir::MulHigh{}, {c[0], Word(kFirst)});
      const ir::Value low0 = f_(ir::Mul{}, {c[0], Word(kFirst)});
      const ir::Value high1 = f_(ir::MulHigh{}, {c[2], Word(kSecond)});
      const ir::Value low1 = f_(ir::Mul{}, {c[2], Word(kSecond)});
      c[0] = f_(ir::Xor{}, {f_(ir::Xor{}, {high1, c[1]}), Word(key[0])});
      c[1] = low1;
      c[2] = f_(ir::Xor{}, {f_(ir::Xor{}, {high0, c[3]}), Word(key[1])});
      c[3] = low0;
      key[0] = (key[0] + 0x9e3779b9) & kWord;
      key[1] = (key[1] + 0xbb67ae85) & kWord;
    }
    const ir::Value which = f_(ir::And{}, {at, Word(3)});
    const auto is = [&](uint64_t k) { return f_(ir::Equal{}, {which, Word(k)}); };
    return ir::select(is(0), c[0], ir::select(is(1), c[1], ir::select(is(2), c[2], c[3])));
  }

 private:
  ir::Value Word(uint64_t v) { return f_(ir::Fill{v, DType::kU32, {}}, {}); }

  ir::Function& f_;
  const std::array<uint64_t, 2> key_;
};

// At least 0 and less than 1, of a shape: multiples of 2^-24 in f32, of 2^-32 in f64.
ir::Value Uniform(OnnxNode& n, uint64_t seed, uint64_t offset, const ir::Dims& shape, DType t) {
  const ir::Value words = Philox(n, seed).Words(Product(shape), offset);
  const DType wide = t == DType::kF64 ? t : DType::kF32;
  const ir::Value shift = n.fn()(ir::Fill{8, DType::kU32, {}}, {});
  const ir::Value list =
      wide == DType::kF64 ? ir::convert(words, wide) * 0x1p-32
                          : ir::convert(n.fn()(ir::ShiftRight{}, {words, shift}), wide) * 0x1p-24;
  return ReshapedTo(n, list, shape);
}

// By Box and Muller.
ir::Value Normal(OnnxNode& n, uint64_t seed, const ir::Dims& shape, DType t) {
  const ir::Value radius = Uniform(n, seed, 0, shape, t);
  const ir::Value angle = Uniform(n, seed, uint64_t{1} << 63, shape, t);
  return ir::sqrt(ir::log(1.0 - radius) * -2.0) * ir::cos(angle * (2 * std::numbers::pi));
}

// The shape and type of what a node draws.
struct Drawn {
  ir::Dims shape;
  DType dtype;
};

Drawn DrawnBy(OnnxNode& n) {
  if (n.inputs() == 0) {
    const std::vector<int64_t> shape = n.Ints("shape");
    for (const int64_t extent : shape)
      if (extent < 0) n.Fail("shape has the extent {}", extent);
    return {ir::Dims(shape.begin(), shape.end()), TypeAttribute(n, "dtype", DType::kF32)};
  }
  const ir::Type& x = n.type(0);
  if (!x.is_tensor()) n.Fail("the shape of its operand is not known");
  const bool is_float = Has(kFloatTypes, x.dtype());
  return {x.shape(), TypeAttribute(n, "dtype", is_float ? x.dtype() : DType::kF32)};
}

ir::Values BuildRandomUniform(OnnxNode& n) {
  const double low = n.Float("low", 0), high = n.Float("high", 1);
  const Drawn drawn = DrawnBy(n);
  const uint64_t seed = SeedOf(n);
  if (!n.status().ok()) return {};
  const ir::Value u = Uniform(n, seed, 0, drawn.shape, drawn.dtype);
  return {ir::convert(u * (high - low) + low, drawn.dtype)};
}

ir::Values BuildRandomNormal(OnnxNode& n) {
  const double mean = n.Float("mean", 0), scale = n.Float("scale", 1);
  const Drawn drawn = DrawnBy(n);
  const uint64_t seed = SeedOf(n);
  if (!n.status().ok()) return {};
  return {ir::convert(Normal(n, seed, drawn.shape, drawn.dtype) * scale + mean, drawn.dtype)};
}

ir::Values BuildBernoulli(OnnxNode& n) {
  const ir::Type& p = n.type(0);
  if (!p.is_tensor()) n.Fail("the shape of its operand is not known");
  const DType to = TypeAttribute(n, "dtype", p.dtype());
  const uint64_t seed = SeedOf(n);
  if (!n.status().ok()) return {};
  const DType wide = p.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const ir::Value u = Uniform(n, seed, 0, p.shape(), wide);
  return {ir::convert(u < ir::convert(n.in(0), wide), to)};
}

// How many of the sums of probabilities lie at or below a number is the class that it draws.
ir::Values BuildMultinomial(OnnxNode& n) {
  const int64_t samples = n.Int("sample_size", 1);
  const DType to = TypeAttribute(n, "dtype", DType::kI32);
  const uint64_t seed = SeedOf(n);
  if (samples < 0) n.Fail("sample_size is {}", samples);
  if (!HasRank(n, 0, 2, 2) || !n.status().ok()) return {};
  const ir::Dims& shape = n.type(0).shape();
  const ir::Value x = ir::convert(n.in(0), DType::kF32);
  const ir::Value sums = n.fn()(ir::Scan{}, {n.fn()(ir::Softmax{.axis = -1}, {x})});
  const ir::Value u = Uniform(n, seed, 0, {shape[0], samples}, DType::kF32);
  const ir::Value below =
      ~(ReshapedTo(n, u, {shape[0], samples, 1}) < ReshapedTo(n, sums, {shape[0], 1, shape[1]}));
  const ir::Reduce count{.kind = ir::ReduceKind::kSum, .axes = {-1}, .keep_dims = false};
  const ir::Value place = n.fn()(count, {ir::convert(below, DType::kI32)});
  const ir::Value last = ir::ScalarOf(n.fn(), shape[1] - 1, DType::kI32);
  return {ir::convert(ir::min(place, last), to)};
}

// ---- Dropout

struct Dropping {
  ir::Value ratio, training;  // training: absent: yes
};

// Nothing to drop: absent. Before opset 7 an attribute states the mode, from 12 on an operand.
std::optional<Dropping> DroppingOf(OnnxNode& n) {
  const double ratio = n.Float("ratio", 0.5);
  const auto number = [&](double v) {
    return n.MakeConstant(ir::HostValue::Scalar(DType::kF32, v));
  };
  if (n.since() < 7)
    return n.Flag("is_test") ? std::nullopt : std::optional(Dropping{number(ratio), {}});
  if (!n.HasInput(2)) return std::nullopt;
  const ir::Value given = n.HasInput(1) ? ir::convert(n.in(1), DType::kF32) : number(ratio);
  if (const std::optional<Number> mode = n.ConstantNumber(2))
    return *mode == 0 ? std::nullopt : std::optional(Dropping{given, {}});
  return Dropping{given, n.in(2)};
}

ir::Values BuildDropout(OnnxNode& n) {
  const std::optional<Dropping> dropping = DroppingOf(n);
  const bool masked = n.HasOutput(1);
  if (!dropping && n.Has("seed")) n.Ignore("seed");
  if (!dropping && !masked) return {n.in(0)};
  const ir::Type& x = n.type(0);
  if (!x.is_tensor()) n.Fail("the shape of its operand is not known");
  // Until version 10 the mask had the type of x.
  const DType mask_type = n.since() < 10 ? x.dtype() : DType::kBool;
  if (!n.status().ok()) return {};
  if (!dropping) return {n.in(0), n.fn()(ir::Fill{1, mask_type, x.shape()}, {})};
  ir::Value keep = ~(Uniform(n, SeedOf(n, true), 0, x.shape(), DType::kF32) < dropping->ratio);
  ir::Value scale = 1.0 / (1.0 - dropping->ratio);
  if (dropping->training) {
    keep = n.fn()(ir::Or{}, {keep, ~dropping->training});
    scale = ir::select(dropping->training, scale, 1.0);
  }
  const ir::Value kept = n.in(0) * ir::convert(scale, x.dtype());
  return {ir::select(keep, kept, 0.0), ir::convert(keep, mask_type)};
}

constexpr OnnxOp kRandomOps[] = {
    {"", "Bernoulli", 15, 1, 1, BuildBernoulli},
    {"", "Dropout", 1, 1, 1, BuildDropout},
    {"", "Dropout", 7, 1, 1, BuildDropout},
    {"", "Dropout", 10, 1, 1, BuildDropout},
    {"", "Dropout", 12, 1, 3, BuildDropout},
    {"", "Multinomial", 7, 1, 1, BuildMultinomial},
    {"", "RandomNormal", 1, 0, 0, BuildRandomNormal},
    {"", "RandomNormalLike", 1, 1, 1, BuildRandomNormal},
    {"", "RandomUniform", 1, 0, 0, BuildRandomUniform},
    {"", "RandomUniformLike", 1, 1, 1, BuildRandomUniform},
};

}  // namespace

std::span<const OnnxOp> RandomOps() { return kRandomOps; }

}  // namespace forge::formats
