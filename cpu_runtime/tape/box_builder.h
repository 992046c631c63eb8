// SPDX-License-Identifier: Apache-2.0
// Turns a region into the instructions of one box. Private to tape.cc.
#pragma once
#include "cpu_runtime/tape/tape.h"

namespace forge::cpu {

// A range of indices of a result, in the order in which memory is walked.
struct BoxRange {
  std::vector<int64_t> low, high;  // for each axis of the result
};

// Where a box must be cut so that a condition is decided on either side.
struct Cut {
  size_t axis;
  int64_t at;  // low < at < high
};

class BoxBuilder {
 public:
  // axes: of the result, outermost in memory first
  BoxBuilder(const TapeSpec& spec, const BoxRange& range, const std::vector<size_t>& axes,
             bool may_cut);

  absl::Status Build(std::span<const Placed* const> results);
  // After Build: where to cut instead; then nothing else may be used.
  const std::optional<Cut>& cut() const { return cut_; }
  BoxProgram Finish();
  std::vector<ir::AnyOp> TakeOps() { return std::move(ops_); }

 private:
  struct Known {  // a value at an index has one register
    ir::Dims at;
    Register reg;
  };
  enum class Truth { kYes, kNo, kUnknown };

  Register New(DType t);
  template <class I>
  Register Emit(I instruction);
  void Fail(absl::Status s);

  Register Demand(uint32_t value, const ir::Dims& at);
  Register Compute(uint32_t value, const ir::Dims& at);
  Register Load(const Placed& source, const ir::Dims& at);
  Register Scalar(const ir::Node& node, const ir::Dims& at);
  Register Cast(const ir::Node& node, Register in);
  Register Move(const ir::Node& node, const ir::Dims& at);
  Register Number(DType t, double v);
  Register NumberOf(const ir::Dim& d, DType t);  // the value of an index
  Register Whole(int64_t v);
  Register IndexOf(const ir::Dim& d);
  Register MaskOf(std::span<const ir::IndexMap::Range> when);
  Truth Decide(const ir::IndexMap::Range& range);
  void TryCut(const ir::IndexMap::Range& range);
  std::optional<Access> AccessOf(const Placed& p, const ir::Dim& address) const;
  void Write(const Placed& result, Register reg);

  void SetFlat(Access& a) const;
  void Hoist();
  void Merge();  // joins neighbouring axes that every access walks alike
  void Place();  // gives registers their places
  void PlaceInScratch();
  bool MayStayDirect(size_t load) const;

  const TapeSpec& spec_;
  const BoxRange& range_;
  std::vector<size_t> axes_;  // of extent above 1, outermost first
  bool may_cut_;
  std::vector<ir::SymbolRef> symbols_;  // one for each of axes_
  ir::Dims origin_;                     // the index of an element of the result
  absl::flat_hash_map<uint32_t, std::vector<Known>> known_;
  std::map<ir::SymbolRef, Register> loaded_;  // symbols that index maps read from operands
  std::vector<DType> types_;                  // of registers, as held
  BoxProgram program_;
  std::vector<ir::AnyOp> ops_;
  std::optional<Cut> cut_;
  absl::Status status_;
  int depth_ = 0;
};

}  // namespace forge::cpu
