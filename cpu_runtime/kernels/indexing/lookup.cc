// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/indexing/lookup.h"

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

template <class Word>
class LookupCall final : public AnchorCall {
 public:
  LookupCall(int64_t n, uint32_t x, uint32_t table, int threads)
      : n_(n), x_(x), table_(table), threads_(threads) {}
  std::string_view kernel() const override { return "lookup"; }
  absl::Status Run(const Arguments& a) const override {
    const uint8_t* x = a.operands[x_];  // negative numbers are the codes from 128 on
    const auto* table = reinterpret_cast<const Word*>(a.operands[table_]);
    auto* y = reinterpret_cast<Word*>(a.out);
    ParallelParts({n_, kGrain, WorthThreads(static_cast<double>(n_)) ? threads_ : 1},
                  [=](int, int64_t begin, int64_t end) {  // copies, as bytes may overlap anything
                    for (int64_t i = begin; i < end; ++i) y[i] = table[x[i]];
                  });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kGrain = 64;  // threads write no cache line together
  int64_t n_;
  uint32_t x_, table_;
  int threads_;
};

absl::StatusOr<MadeAnchor> MakeLookup(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const uint32_t x = *site.task.OperandOf(node.in[0]), table = *site.task.OperandOf(node.in[1]);
  if (!IsPacked(site.out) || site.operands[x].strides != site.out.strides ||
      !IsRowMajor(site.operands[table]))
    return Unimplemented("lookup does not support operands and results of unlike layouts");
  const auto make = [&](auto word) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<LookupCall<decltype(word)>>(site.out.elements(), x, table,
                                                        site.settings.threads);
  };
  switch (BitWidth(site.out.dtype)) {
    case 8:
      return MadeAnchor{make(uint8_t{}), node.first_out};
    case 16:
      return MadeAnchor{make(uint16_t{}), node.first_out};
    case 32:
      return MadeAnchor{make(uint32_t{}), node.first_out};
    default:
      return MadeAnchor{make(uint64_t{}), node.first_out};
  }
}

class Lookups final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Lookup>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (Has(kComplexTypes | kStoredOnlyTypes, t))
      return Verdict::No(fmt::format("a table of {}", Name(t)));
    return Verdict::Yes("lookup");
  }
  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    return BothLayouts(task, settings);
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeLookup);
  }
};

}  // namespace

const Kernel& LookupKernel() {
  static const Lookups kKernel;
  return kKernel;
}

}  // namespace forge::cpu
