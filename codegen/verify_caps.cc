// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "codegen/analysis.h"
#include "codegen/lower_rules.h"
#include "codegen/verify.h"

namespace forge::codegen {
namespace {

constexpr int64_t kScalarBytes = 4;

int64_t SharedBytes(const Kernel& k) {
  int64_t sum = 0;
  for (const View& v : k.views) {
    if (v.space != Space::kShared) continue;
    const int64_t bytes = std::max(BitWidth(v.elem.elem) / 8, 1) * int64_t{v.elem.lanes};
    const int64_t whole = bytes * v.extent;
    sum += (whole + 15) / 16 * 16;  // as a driver may align it
  }
  return sum;
}

int64_t Operands(const Kernel& k) {
  int last = -1;
  for (const View& v : k.views)
    if (v.space == Space::kGlobal) last = std::max(last, v.operand);
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
      {"bytes of shared memory", SharedBytes(k), caps.max_shared_bytes},
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
      if (i.code != Code::kMatrixMulAdd) continue;
      const std::span<const Id> args = k.ArgsOf(i);
      const Type &a = k.TypeOf(args[0]), &b = k.TypeOf(args[1]), &c = k.TypeOf(args[2]);
      const auto same = [&](const MatrixShape& s) {
        return s.a == a.elem && s.b == b.elem && s.c == c.elem && s.m == c.rows && s.n == c.cols &&
               s.k == a.cols && !s.workgroup_scope;
      };
      if (std::none_of(caps.matrices.begin(), caps.matrices.end(), same))
        return fmt::format("no matrices {} = {} {}", ToText(c), ToText(a), ToText(b));
    }
  return {};
}

// Can all 64-bit integers be halved?
bool Splits(const Kernel& k) {
  for (const Block& b : k.blocks)
    for (const Inst& i : b.insts)
      if (!HasHalves(k, i)) return false;
  return true;
}

}  // namespace

Fault VerifyCaps(const Kernel& k, const Caps& caps) {
  if (Fault f = Limits(k, caps); !f.empty()) return f;
  if (Fault f = Matrices(k, caps); !f.empty()) return f;
  const Needs n = NeedsOf(k);
  const struct {
    std::string_view what;
    bool needed, present;
  } rows[] = {
      {"f16 arithmetic", n.f16, caps.f16},
      {"f64", n.f64, caps.f64},
      {"8-bit integers", n.i8, caps.i8},
      {"16-bit integers", n.i16, caps.i16},
      {"64-bit integers", n.i64 && !Splits(k), caps.i64},
      {"8-bit storage", n.storage8, caps.storage8},
      {"16-bit storage", n.storage16, caps.storage16},
      {"subgroups", n.subgroup_basic, caps.subgroup_size > 1},
      {"subgroup arithmetic", n.subgroup_arithmetic, caps.subgroup_arithmetic},
      {"subgroup shuffles", n.subgroup_shuffle, caps.subgroup_shuffle},
      {"subgroup ballots", n.subgroup_ballot, caps.subgroup_ballot},
      {"cooperative matrices", n.matrices, !caps.matrices.empty()},
      {"elements of cooperative matrices", n.matrix_elements, caps.matrix_elements},
  };
  for (const auto& r : rows)
    if (r.needed && !r.present) return fmt::format("needs {}, which the device lacks", r.what);
  return {};
}

}  // namespace forge::codegen
