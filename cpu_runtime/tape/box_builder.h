// SPDX-License-Identifier: Apache-2.0
// Compiles a region for one box of indices. Private to tape.cc.
#pragma once
#include "absl/functional/function_ref.h"
#include "cpu_runtime/tape/index.h"
#include "cpu_runtime/tape/tape.h"

namespace forge::cpu {

// One axis of a box: i in low..high. An axis of the result may be represented by several box axes;
// its index is the sum of their step * i.
struct BoxAxis {
  size_t axis;  // of the result
  int64_t step, low, high;
  int64_t extent() const { return high - low; }
};
// The axes of a box in memory order, outermost first.
using Box = absl::InlinedVector<BoxAxis, 6>;

// A position at which a box is divided so that a condition is constant on either side.
struct Cut {
  size_t axis;  // of the box
  int64_t at;   // low < at < high
};
// An axis that is replaced by two, i = by * outer + inner, so that quotients and remainders are
// indices of axes. `by` divides the extent.
struct Split {
  size_t axis;  // of the box
  int64_t by;
};

// Builds the instructions for one box.
class BoxBuilder {
 public:
  BoxBuilder(const TapeSpec& spec, const Box& box, bool may_cut);

  absl::Status Build(std::span<const Placed* const> results);
  // How to divide the box, set by Build; when either is set, the builder has no result.
  const std::optional<Cut>& cut() const { return cut_; }
  const std::optional<Split>& split() const { return split_; }
  BoxProgram Finish();
  std::vector<ir::AnyOp> TakeOps() { return std::move(ops_); }

 private:
  struct Known {  // a value at an index has one register
    ir::Dims at;
    Register reg;
  };
  struct Definition {  // an element of a value that is read as an index
    uint32_t value = 0;
    ir::Dims at;
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
  Register Literal(DType t, const Number& v);
  Register NumberOf(const ir::Dim& d, DType t);  // the value of an index
  Register Whole(int64_t v);
  Register IndexOf(const ir::Dim& d);
  Register IndexOf(const ir::SymbolRef& symbol);
  // Loads from an address that advances by a stride along the innermost axis, from a start that is
  // computed for each row.
  std::optional<Register> LoadRows(const Placed& source, const ir::Dim& address);
  bool DependsOn(const ir::Dim& d, const ir::SymbolRef& symbol, int depth = 0) const;
  // Returns true when `d` is constant along the innermost axis.
  bool IsOfRows(const ir::Dim& d) const;
  // Computes one element for each row and repeats it along the row.
  Register RepeatRows(DType t, absl::FunctionRef<Register(BoxBuilder&)> compute);
  // The builder of the same box without its innermost axis.
  BoxBuilder& Rows();
  Register MaskOf(std::span<const ir::IndexMap::Range> when);
  Truth Decide(const ir::IndexMap::Range& range);
  // Records in cut_ and split_ how to make `d` affine, or a condition on it constant.
  void Untangle(const ir::Dim& d, int depth = 0);
  std::optional<int64_t> PhaseOf(const Affine& numerator, int64_t divisor) const;
  void TrySplit(const ir::Dim& numerator, int64_t divisor);
  void TryCut(const ir::Dim& distance);
  void CutAt(size_t axis, int64_t at);
  // The index in axes_ of a symbol.
  std::optional<size_t> AxisOf(const ir::SymbolRef& symbol) const;
  std::optional<Access> AccessOf(const Placed& p, const ir::Dim& address) const;
  void Write(const Placed& result, Register reg);

  void SetFlat(Access& a) const;
  void Hoist();
  void Merge();  // merges adjacent axes that every access traverses contiguously
  void Place();  // assigns registers their places
  void PlaceInScratch();
  bool MayStayDirect(size_t load) const;

  const TapeSpec& spec_;
  const Box& box_;
  std::vector<size_t> axes_;  // axes of the box with an extent above 1
  bool may_cut_;
  std::vector<ir::SymbolRef> symbols_;  // one for each of axes_
  ir::Dims origin_;                     // the index of an element of the result
  absl::flat_hash_map<uint32_t, std::vector<Known>> known_;
  std::map<ir::SymbolRef, Definition> definitions_;  // symbols that index maps read from operands
  std::map<ir::SymbolRef, Register> loaded_;         // symbols that have a register
  std::unique_ptr<BoxBuilder> rows_;                 // created on first use
  bool are_rows_ = false;                            // true for the builder in rows_ of another
  std::vector<Register> kept_;                       // of rows: read by the box, after all of rows
  std::vector<DType> types_;                         // of registers, as held
  BoxProgram program_;
  std::vector<ir::AnyOp> ops_;
  std::optional<Cut> cut_;
  std::optional<Split> split_;  // the largest that an access requests
  absl::Status status_;
  int depth_ = 0;
};

template <class I>
Register BoxBuilder::Emit(I instruction) {
  const Register out = instruction.out;
  if constexpr (std::is_same_v<I, ConstantInstruction>)
    program_.setup.push_back(std::move(instruction));
  else
    program_.body.push_back(std::move(instruction));
  return out;
}

}  // namespace forge::cpu
