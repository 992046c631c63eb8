// SPDX-License-Identifier: Apache-2.0
// The structure of a kernel: blocks, scopes, views, uniform control. Types are verify_types.cc,
// what a device offers verify_caps.cc.
#include "codegen/verify.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/analysis.h"

namespace forge::codegen {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& k)
      : k_(k), visible_(k.values.size()), defined_(k.values.size()), entered_(k.blocks.size()) {}

  absl::Status Run() {
    FORGE_RETURN_IF_ERROR(Views());
    return Block(0, Uniform::kGrid, 0);
  }

 private:
  absl::Status Views() const {
    for (size_t n = 0; n < k_.views.size(); ++n) FORGE_RETURN_IF_ERROR(OneView(n));
    return absl::OkStatus();
  }

  absl::Status OneView(size_t n) const {
    const View& v = k_.views[n];
    const auto refuse = [&](std::string_view why) {
      return Internal("kernel '{}': view {} '{}': {}", k_.name, n, v.name, why);
    };
    if (absl::Status s = VerifyType(v.elem); !s.ok()) return refuse(Message(s));
    if (v.elem.is_matrix()) return refuse("memory holds elements of matrices");
    if (v.space != Space::kGlobal)
      return v.extent > 0 ? absl::OkStatus() : refuse("has no elements");
    if (v.operand < 0) return refuse("names no operand");
    if (v.elem.elem == DType::kBool) return refuse("bool in global memory is u8");
    if (!v.reads && !v.writes) return refuse("is neither read nor written");
    for (const View& other : k_.views)
      if (other.space == Space::kGlobal && other.operand == v.operand && other.writes != v.writes)
        return refuse("another view of its operand differs in what it writes");
    return absl::OkStatus();
  }

  // `control`: how uniformly invocations arrive here. `arguments`: how many the block must have.
  absl::Status Block(BlockId b, Uniform control, size_t arguments) {
    if (b >= k_.blocks.size() || entered_[b])
      return Internal("kernel '{}': block {} is absent or used twice", k_.name, b);
    entered_[b] = true;
    const codegen::Block& block = k_.blocks[b];
    if (block.arguments.size() != arguments)
      return Internal("kernel '{}': block {} has {} arguments instead of {}", k_.name, b,
                      block.arguments.size(), arguments);
    if (block.insts.empty() || block.insts.back().code != Code::kYield)
      return Internal("kernel '{}': block {} does not end in a yield", k_.name, b);
    const size_t before = scope_.size();
    for (Id a : block.arguments) FORGE_RETURN_IF_ERROR(Define(a, b));
    for (size_t n = 0; n < block.insts.size(); ++n)
      if (absl::Status s = One(block.insts[n], b, control, n + 1 == block.insts.size()); !s.ok())
        return s;
    for (; scope_.size() > before; scope_.pop_back()) visible_[scope_.back()] = false;
    return absl::OkStatus();
  }

  absl::Status Define(Id v, BlockId b) {
    if (v >= k_.values.size() || defined_[v])
      return Internal("kernel '{}': block {} makes value {}, which is absent or made before",
                      k_.name, b, v);
    FORGE_RETURN_IF_ERROR(VerifyType(k_.values[v].type));
    visible_[v] = defined_[v] = true;
    scope_.push_back(v);
    return absl::OkStatus();
  }

  absl::Status One(const Inst& i, BlockId b, Uniform control, bool last) {
    const auto refuse = [&](std::string_view why) {
      return Internal("kernel '{}': {}: {}", k_.name, ToText(k_, i), why);
    };
    const CodeInfo& info = Info(i.code);
    if ((i.code == Code::kYield) != last) return refuse("stands at the wrong end of its block");
    if (uint64_t{i.args} + i.arg_count > k_.operands.size())
      return Internal("kernel '{}': {}: operands are outside the list", k_.name, info.name);
    if (info.arity >= 0 && static_cast<uint32_t>(info.arity) != i.arg_count)
      return refuse(fmt::format("takes {} operands", info.arity));
    for (Id a : k_.ArgsOf(i))
      if (a >= k_.values.size() || !visible_[a])
        return Internal("kernel '{}': {} uses value {}, which is not seen there", k_.name,
                        info.name, a);
    const bool together = info.effect == Effect::kTogether || i.code == Code::kForElements;
    const Uniform needed = i.code == Code::kBarrier ? Uniform::kWorkgroup : Uniform::kSubgroup;
    if (together && control < needed)
      return refuse("not all invocations that meet here are sure to arrive");
    FORGE_RETURN_IF_ERROR(Results(i, b));
    if (absl::Status s = VerifyTypes(k_, i); !s.ok()) return refuse(Message(s));
    return Regions(i, control);
  }

  absl::Status Results(const Inst& i, BlockId b) {
    for (uint32_t n = 0; n < i.result_count; ++n) FORGE_RETURN_IF_ERROR(Define(i.result + n, b));
    return absl::OkStatus();
  }

  // The blocks of control, then what they yield. Results are defined already, but a region that
  // used one would have used a value made after it.
  absl::Status Regions(const Inst& i, Uniform control) {
    if (Info(i.code).effect != Effect::kControl || i.code == Code::kYield) return absl::OkStatus();
    for (uint32_t n = 0; n < i.result_count; ++n) visible_[i.result + n] = false;
    const uint32_t blocks = i.code == Code::kFor || i.code == Code::kForElements ? 1 : 2;
    if (i.block_count != blocks || uint64_t{i.block} + blocks > k_.blocks.size())
      return Internal("kernel '{}': {} has {} blocks from {} on", k_.name, Info(i.code).name,
                      i.block_count, i.block);
    const Uniform inside = std::min(control, UniformOfControl(k_, i));
    const size_t arguments = i.code == Code::kIf            ? 0
                             : i.code == Code::kFor         ? i.result_count + 1
                             : i.code == Code::kForElements ? 3
                                                            : i.result_count;
    for (uint32_t n = 0; n < blocks; ++n)
      FORGE_RETURN_IF_ERROR(Block(i.block + n, inside, arguments));
    if (absl::Status s = VerifyYields(k_, i); !s.ok())
      return Internal("kernel '{}': {}: {}", k_.name, ToText(k_, i), Message(s));
    for (uint32_t n = 0; n < i.result_count; ++n) visible_[i.result + n] = true;
    return absl::OkStatus();
  }

  const Kernel& k_;
  std::vector<bool> visible_, defined_;  // by value
  std::vector<bool> entered_;            // by block
  std::vector<Id> scope_;                // what is visible, in order of definition
};

}  // namespace

absl::Status VerifyStructure(const Kernel& k) { return Verifier(k).Run(); }

absl::Status Verify(const Kernel& k, const Caps& caps) {
  FORGE_RETURN_IF_ERROR(VerifyStructure(k));
  return VerifyCaps(k, caps);
}

}  // namespace forge::codegen
