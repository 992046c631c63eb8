// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/grid_shift.h"

#include <algorithm>

namespace forge::vk {
namespace {

using codegen::BuiltinKind;
using codegen::Code;
using codegen::Id;
using codegen::Inst;
using codegen::Kernel;

Id NewValue(Kernel& k, codegen::Uniform uniform) {
  k.values.push_back({.type = codegen::kI32, .uniform = uniform});
  return static_cast<Id>(k.values.size() - 1);
}

bool IsWorkgroupId(const Inst& i) {
  return i.code == Code::kBuiltin && i.aux <= static_cast<uint8_t>(BuiltinKind::kWorkgroupZ);
}

}  // namespace

bool NeedsShift(const Kernel& k, const codegen::Caps& caps) {
  return std::any_of(k.grid.begin(), k.grid.end(),
                     [&](const ir::Dim& d) { return d.max() > caps.max_grid; });
}

Kernel ShiftGrid(Kernel k) {
  static_assert(static_cast<int>(BuiltinKind::kWorkgroupX) == 0);
  static const std::array<ir::SymbolRef, 3> kBase = [] {
    std::array<ir::SymbolRef, 3> s;
    for (size_t i = 0; i < 3; ++i)
      s[i] = std::make_shared<const ir::Symbol>(ir::Symbol{.name = fmt::format("first_group.{}", i),
                                                           .min = 0,
                                                           .max = INT32_MAX,
                                                           .divisor = 1,
                                                           .when = ir::When::kBind});
    return s;
  }();
  const size_t first = k.scalars.size();
  for (const ir::SymbolRef& s : kBase) k.scalars.emplace_back(s);
  for (codegen::Block& block : k.blocks) {
    std::vector<Inst> insts;
    for (Inst id : block.insts) {
      if (!IsWorkgroupId(id)) {
        insts.push_back(id);
        continue;
      }
      Inst add{.code = Code::kAdd};
      add.result = id.result;
      add.args = static_cast<uint32_t>(k.operands.size());
      add.arg_count = 2;
      id.result = NewValue(k, codegen::Uniform::kWorkgroup);
      Inst base{.code = Code::kScalar};
      base.result = NewValue(k, codegen::Uniform::kGrid);
      base.literal = first + id.aux;
      k.operands.insert(k.operands.end(), {id.result, base.result});
      insts.insert(insts.end(), {id, base, add});
    }
    block.insts = std::move(insts);
  }
  return k;
}

}  // namespace forge::vk
