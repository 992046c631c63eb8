// SPDX-License-Identifier: Apache-2.0
// The structure of a kernel (blocks, scopes, views, uniform control) and what a device offers.
// Types are verify_types.cc.
#include "codegen/kernel/verify.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/kernel/analysis.h"
#include "codegen/kernel/shared_memory.h"

namespace forge::codegen {
namespace {

// ---- structure ----------------------------------------------------------------------------------

class Verifier {
 public:
  explicit Verifier(const Kernel& k)
      : k_(k), visible_(k.values.size()), defined_(k.values.size()), entered_(k.blocks.size()) {}

  Fault Run() {
    for (size_t n = 0; n < k_.views.size(); ++n)
      if (Fault f = OneView(k_.views[n]); !f.empty())
        return fmt::format("view {} '{}': {}", n, k_.views[n].name, f);
    return Block(0, Uniform::kGrid, 0);
  }

 private:
  Fault OneView(const View& v) const {
    if (Fault f = VerifyType(v.elem); !f.empty()) return f;
    if (v.elem.is_matrix()) return "memory holds elements of matrices";
    if (v.swizzled && (v.space != Space::kShared || ElementBytes(v.elem) > kSwizzledPieceBytes))
      return "is swizzled without pieces in shared memory";
    if (v.space != Space::kGlobal) return v.extent > 0 ? "" : "has no elements";
    if (v.operand < 0) return "names no operand";
    if (v.elem.elem == DType::kBool) return "bool in global memory is u8";
    if (!v.reads && !v.writes) return "is neither read nor written";
    if (v.parts < 1 || (v.parts > 1 && v.extent == 0)) return "has no parts, or empty ones";
    for (const View& other : k_.views) {
      if (other.space != Space::kGlobal || other.operand >= v.operand + v.parts ||
          v.operand >= other.operand + other.parts)
        continue;
      if (other.writes != v.writes) return "another view of its operand differs in what it writes";
      if (other.operand != v.operand || other.parts != v.parts ||
          (v.parts > 1 && PartBytes(other) != PartBytes(v)))
        return "another view of its operand has other parts";
    }
    return {};
  }

  // `control`: how uniformly invocations arrive here. `arguments`: how many the block must have.
  Fault Block(BlockId b, Uniform control, size_t arguments) {
    if (b >= k_.blocks.size() || entered_[b])
      return fmt::format("block {} is absent or used twice", b);
    entered_[b] = true;
    const codegen::Block& block = k_.blocks[b];
    if (block.arguments.size() != arguments)
      return fmt::format("block {} has {} arguments instead of {}", b, block.arguments.size(),
                         arguments);
    if (block.insts.empty() || block.insts.back().code != Code::kYield)
      return fmt::format("block {} does not end in a yield", b);
    const size_t before = scope_.size();
    for (Id a : block.arguments)
      if (Fault f = Define(a, b); !f.empty()) return f;
    for (const Inst& i : block.insts)
      if (Fault f = One(i, b, control, &i == &block.insts.back()); !f.empty()) return f;
    for (; scope_.size() > before; scope_.pop_back()) visible_[scope_.back()] = false;
    return {};
  }

  Fault Define(Id v, BlockId b) {
    if (v >= k_.values.size() || defined_[v])
      return fmt::format("block {} makes value {}, which is absent or made before", b, v);
    visible_[v] = defined_[v] = true;
    scope_.push_back(v);
    return VerifyType(k_.TypeOf(v));
  }

  Fault One(const Inst& i, BlockId b, Uniform control, bool last) {
    const auto refuse = [&](std::string_view why) {
      return fmt::format("{}: {}", ToText(k_, i), why);
    };
    const CodeInfo& info = Info(i.code);
    if ((i.code == Code::kYield) != last) return refuse("stands at the wrong end of its block");
    if (uint64_t{i.args} + i.arg_count > k_.operands.size())
      return fmt::format("{}: operands are outside the list", info.name);
    if (info.arity >= 0 && static_cast<uint32_t>(info.arity) != i.arg_count)
      return refuse(fmt::format("takes {} operands", info.arity));
    for (Id a : k_.ArgsOf(i))
      if (a >= k_.values.size() || !visible_[a])
        return fmt::format("{} uses value {}, which is not seen there", info.name, a);
    const bool convergent = info.effect == Effect::kConvergent || i.code == Code::kForElements;
    if (convergent && control < HoldersOf(i))
      return refuse("not all invocations that meet here are sure to arrive");
    for (uint32_t n = 0; n < i.result_count; ++n)
      if (Fault f = Define(i.result + n, b); !f.empty()) return f;
    if (Fault f = VerifyTypes(k_, i); !f.empty()) return refuse(f);
    if (info.effect != Effect::kControl || last) return {};
    if (Fault f = Regions(i, control); !f.empty()) return f;
    const Fault f = VerifyYields(k_, i);
    return f.empty() ? f : refuse(f);
  }

  // Who executes a convergent instruction together.
  Scope HoldersOf(const Inst& i) const {
    if (i.code == Code::kBarrier) return Scope::kWorkgroup;
    const bool has_result = i.result_count == 1 && i.result < k_.values.size();
    const std::span<const Id> args = k_.ArgsOf(i);
    const bool of_workgroup = (has_result && k_.TypeOf(i.result).is_held_by_workgroup()) ||
                              (!args.empty() && k_.TypeOf(args[0]).is_held_by_workgroup());
    return of_workgroup ? Scope::kWorkgroup : Scope::kSubgroup;
  }

  // The blocks of control. Results are defined already, but a region that used one would have used
  // a value made after it.
  Fault Regions(const Inst& i, Uniform control) {
    for (uint32_t n = 0; n < i.result_count; ++n) visible_[i.result + n] = false;
    const uint32_t blocks = i.code == Code::kFor || i.code == Code::kForElements ? 1 : 2;
    if (i.block_count != blocks || uint64_t{i.block} + blocks > k_.blocks.size())
      return fmt::format("{} has {} blocks from {} on", Info(i.code).name, i.block_count, i.block);
    const Uniform inside = std::min(control, UniformOfControl(k_, i));
    const size_t arguments = i.code == Code::kIf            ? 0
                             : i.code == Code::kFor         ? i.result_count + 1
                             : i.code == Code::kForElements ? i.arg_count + 2
                                                            : i.result_count;
    for (uint32_t n = 0; n < blocks; ++n)
      if (Fault f = Block(i.block + n, inside, arguments); !f.empty()) return f;
    for (uint32_t n = 0; n < i.result_count; ++n) visible_[i.result + n] = true;
    return {};
  }

  const Kernel& k_;
  std::vector<bool> visible_, defined_;  // by value
  std::vector<bool> entered_;            // by block
  std::vector<Id> scope_;                // what is visible, in order of definition
};

// ---- limits and features ------------------------------------------------------------------------

constexpr int64_t kScalarBytes = 4;

int64_t Operands(const Kernel& k) {
  int last = -1;
  for (const View& v : k.views)
    if (v.space == Space::kGlobal) last = std::max(last, v.operand + v.parts - 1);
  return last + 1;
}

Fault Limits(const Kernel& k, const Caps& caps) {
  const auto& w = k.workgroup;
  const struct {
    std::string_view what;
    int64_t used, limit;
  } rows[] = {
      {"invocations along x", w[0], caps.max_workgroup_x},
      {"invocations along y", w[1], caps.max_workgroup_y},
      {"invocations along z", w[2], caps.max_workgroup_z},
      {"invocations", int64_t{w[0]} * w[1] * w[2], caps.max_workgroup_invocations},
      {"bytes of shared memory", SharedBytes(k), caps.most_shared_bytes()},
      {"operands", Operands(k), caps.max_operands},
      {"bytes of scalars", kScalarBytes * static_cast<int64_t>(k.scalars.size()),
       caps.max_scalar_bytes},
  };
  for (const auto& r : rows)
    if (r.used > r.limit) return fmt::format("{} {}, the device has {}", r.used, r.what, r.limit);
  if (w[0] == 0 || w[1] == 0 || w[2] == 0) return "its workgroup is empty";
  if (k.subgroup != 0 &&
      (k.subgroup < caps.min_subgroup_size || k.subgroup > caps.max_subgroup_size))
    return fmt::format("no subgroups of {}", k.subgroup);
  return {};
}

// Does the device multiply matrices of these shapes?
Fault Matrices(const Kernel& k, const Caps& caps) {
  for (const Block& block : k.blocks)
    for (const Inst& i : block.insts) {
      if (i.code == Code::kForElements) {
        const bool grouped = k.TypeOf(k.ArgsOf(i)[0]).is_held_by_workgroup();
        const int64_t most = grouped ? caps.workgroup_elements_together : caps.elements_together;
        if (i.aux != 1 && i.aux != most)
          return fmt::format("{} elements of a matrix at once, the device shows {}", i.aux, most);
      }
      if (i.code != Code::kMatrixMulAdd) continue;
      const std::span<const Id> args = k.ArgsOf(i);
      const Type &a = k.TypeOf(args[0]), &b = k.TypeOf(args[1]), &c = k.TypeOf(args[2]);
      const auto types = [&](const MatrixShape& s) {
        return s.a == a.elem && s.b == b.elem && s.c == c.elem;
      };
      const auto same = [&](const MatrixShape& s) {
        return types(s) && s.m == c.rows && s.n == c.cols && s.k == a.cols;
      };
      const auto multiple = [&](const MatrixShape& s) {
        return types(s) && c.rows * kHoldersOfRows == int64_t{s.m} * k.workgroup[0] &&
               c.cols % s.n == 0 && c.cols <= kMostWorkgroupColumns && a.cols % s.k == 0;
      };
      const bool known = c.is_held_by_workgroup()
                             ? std::any_of(caps.workgroup_matrices.begin(),
                                           caps.workgroup_matrices.end(), multiple)
                             : std::any_of(caps.matrices.begin(), caps.matrices.end(), same);
      if (!known) return fmt::format("no matrices {} = {} {}", ToText(c), ToText(a), ToText(b));
    }
  return {};
}

Fault Features(const Kernel& k, const Caps& caps) {
  const Needs n = NeedsOf(k);
  const struct {
    std::string_view what;
    bool needed, present;
  } rows[] = {
      {"f16 arithmetic", n.f16, caps.f16},
      {"f64", n.f64, caps.f64},
      {"8-bit integers", n.i8, caps.i8},
      {"16-bit integers", n.i16, caps.i16},
      {"64-bit integers", n.i64 && !HasHalves(k), caps.i64},
      {"8-bit storage", n.storage8, caps.storage8},
      {"16-bit storage", n.storage16, caps.storage16},
      {"subgroups", n.subgroup_basic, caps.subgroup_size > 1},
      {"subgroup arithmetic", n.subgroup_arithmetic, caps.subgroup_arithmetic},
      {"subgroup shuffles", n.subgroup_shuffle, caps.subgroup_shuffle},
      {"subgroups that are whole behind loops",
       !caps.subgroup_reconvergence && JoinsSubgroupsBehindLoops(k), false},
      {"subgroup ballots", n.subgroup_ballot, caps.subgroup_ballot},
      {"subgroup operations on 64-bit integers", n.subgroup_i64 && caps.i64, false},
      {"cooperative matrices", n.matrices, !caps.matrices.empty()},
      {"elements of cooperative matrices", n.matrix_elements, caps.matrix_elements},
      {"computed cooperative matrices", n.matrix_values, caps.matrix_values},
      {"asynchronous copies", n.async_copies, caps.async_copies},
      {"Vulkan's memory model", n.memory_model, caps.memory_model},
  };
  for (const auto& r : rows)
    if (r.needed && !r.present) return fmt::format("needs {}, which the device lacks", r.what);
  return {};
}

}  // namespace

Fault VerifyStructure(const Kernel& k) { return Verifier(k).Run(); }

absl::Status Verify(const Kernel& k, const Caps& caps) {
  Fault f = VerifyStructure(k);
  if (f.empty()) f = Limits(k, caps);
  if (f.empty()) f = Matrices(k, caps);
  if (f.empty()) f = Features(k, caps);
  return f.empty() ? absl::OkStatus() : Internal("kernel '{}': {}", k.name, f);
}

}  // namespace forge::codegen
