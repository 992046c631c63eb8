// SPDX-License-Identifier: Apache-2.0
// Casts from and to elements narrower than a byte, of which several share one.
#include <algorithm>
#include <cmath>

#include "base/narrow_float.h"
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/parallel.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::cpu {
namespace {

constexpr size_t kTinyBlock = 256;  // elements, in whole bytes of every type

bool IsTiny(DType t) { return t != DType::kString && BitWidth(t) < 8; }
// Elements of less than a byte are unpacked to these.
DType UnpackedAs(DType t) {
  if (!IsTiny(t)) return HeldAs(t);
  if (t == DType::kF4E2M1) return DType::kF32;
  return t == DType::kI2 || t == DType::kI4 ? DType::kI8 : DType::kU8;
}

void Unpack(DType t, const uint8_t* in, size_t n, uint8_t* block) {
  const auto bits = static_cast<size_t>(BitWidth(t)), each = 8 / bits;
  const int spare = 8 - static_cast<int>(bits);
  for (size_t i = 0; i < n; ++i) {
    const int code = in[i / each] >> (i % each * bits) & ((1 << bits) - 1);
    if (t == DType::kF4E2M1) {
      const auto v = static_cast<float>(DecodeNarrowFloat(t, static_cast<uint16_t>(code)));
      std::memcpy(block + i * sizeof v, &v, sizeof v);
    } else if (UnpackedAs(t) == DType::kI8) {
      block[i] = static_cast<uint8_t>(static_cast<int8_t>(code << spare) >> spare);
    } else {
      block[i] = static_cast<uint8_t>(code);
    }
  }
}

void PackTiny(DType t, const uint8_t* block, size_t n, uint8_t* out) {
  const auto bits = static_cast<size_t>(BitWidth(t)), each = 8 / bits;
  std::fill_n(out, (n + each - 1) / each, uint8_t{0});
  for (size_t i = 0; i < n; ++i) {
    uint32_t code = block[i];
    if (t == DType::kF4E2M1) {
      float v;
      std::memcpy(&v, block + i * sizeof v, sizeof v);
      code = EncodeNarrowFloat(t, v);
    }
    out[i / each] =
        static_cast<uint8_t>(out[i / each] | (code & ((1u << bits) - 1)) << (i % each * bits));
  }
}

// Floats saturate to the range of the type, integers wrap.
void SaturateFloats(DType from, DType to, size_t n, uint8_t* block) {
  if (!Has(kTinyIntTypes, to)) return;
  const double high = std::ldexp(1.0, BitWidth(to) - (UnpackedAs(to) == DType::kI8 ? 1 : 0)) - 1;
  const double low = UnpackedAs(to) == DType::kI8 ? -high - 1 : 0;
  const auto clamp = [&](auto like) {
    auto* v = reinterpret_cast<decltype(like)*>(block);
    for (size_t i = 0; i < n; ++i)
      if (!std::isnan(v[i]))
        v[i] = static_cast<decltype(like)>(std::clamp<double>(v[i], low, high));
  };
  if (from == DType::kF32) clamp(float{});
  if (from == DType::kF64) clamp(double{});
}

class TinyCastProgram final : public HostProgram {
 public:
  TinyCastProgram(DType from, DType to, int64_t elements, int threads)
      : from_(from), to_(to), n_(elements), threads_(threads) {}
  std::string_view kernel() const override { return "tiny_cast"; }
  absl::Status Run(const HostArguments& a) const override {
    const int threads = WorthThreads(static_cast<double>(n_)) ? threads_ : 1;
    ParallelParts({n_, kTinyBlock, threads}, [&](int, int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kTinyBlock)
        Block(a, static_cast<size_t>(at),
              static_cast<size_t>(std::min<int64_t>(kTinyBlock, end - at)));
    });
    return absl::OkStatus();
  }

 private:
  static size_t ByteOf(DType t, size_t element) {
    return element * static_cast<size_t>(BitWidth(t)) / 8;
  }
  void Block(const HostArguments& a, size_t first, size_t n) const {
    alignas(64) uint8_t in[kTinyBlock * sizeof(double)], out[kTinyBlock * sizeof(double)];
    const uint8_t* from = a.operands[0].data() + ByteOf(from_, first);
    uint8_t* to = a.operands[1].data() + ByteOf(to_, first);
    if (IsTiny(from_))
      Unpack(from_, from, n, in);
    else
      LoadRun(from_, {from, 1, n}, in);
    SaturateFloats(UnpackedAs(from_), to_, n, in);
    FindConvertLoop(UnpackedAs(from_), UnpackedAs(to_))(in, out, n);
    if (IsTiny(to_)) return PackTiny(to_, out, n, to);
    // To a narrow float: rounded when it is stored.
    StoreRun(to_, out, {to, 1, n});
  }

  DType from_, to_;
  int64_t n_;
  int threads_;
};

class TinyCast final : public Kernel {
 public:
  bool Knows(const Task& task) const override {
    const ir::Function& body = task.body();
    if (body.nodes().size() != 1 || !body.nodes()[0].op.Is<ir::Cast>()) return false;
    if (!task.type(0).is_tensor() || !task.type(1).is_tensor()) return false;
    return IsTiny(task.type(0).dtype()) || IsTiny(task.type(1).dtype());
  }
  Verdict Takes(const Task& task) const override {
    for (size_t i = 0; i < 2; ++i)
      if (const DType t = task.type(i).dtype();
          FindConvertLoop(UnpackedAs(t), UnpackedAs(t)) == nullptr)
        return Verdict::No(fmt::format("cast has no loop for {}", Name(t)));
    return Verdict::Yes("tiny_cast");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const int64_t elements = task.type(0).elements().constant();
    return ProgramRef(std::make_shared<TinyCastProgram>(task.type(0).dtype(), task.type(1).dtype(),
                                                        elements, settings.threads));
  }
};

}  // namespace

const Kernel& TinyCastKernel() {
  static const TinyCast kKernel;
  return kKernel;
}

}  // namespace forge::cpu
