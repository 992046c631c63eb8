// SPDX-License-Identifier: Apache-2.0
#include "codegen/captures.h"

#include <iterator>
#include <set>

namespace forge::codegen {
namespace {

struct Collector {
  const Kernel& k;
  std::set<Id> used, made;
  std::set<uint16_t> views;

  void Block(BlockId block) {
    made.insert(k.blocks[block].arguments.begin(), k.blocks[block].arguments.end());
    for (const Inst& i : k.blocks[block].insts) {
      used.insert(k.ArgsOf(i).begin(), k.ArgsOf(i).end());
      for (uint32_t n = 0; n < i.result_count; ++n) made.insert(i.result + n);
      if (Info(i.code).effect == Effect::kReads || Info(i.code).effect == Effect::kWrites)
        views.insert(i.view);
      for (uint32_t n = 0; n < i.block_count; ++n) Block(i.block + n);
    }
  }
};

}  // namespace

Captures CapturesOf(const Kernel& k, BlockId block) {
  Collector c{k, {}, {}, {}};
  c.Block(block);
  Captures out;
  std::set_difference(c.used.begin(), c.used.end(), c.made.begin(), c.made.end(),
                      std::back_inserter(out.values));
  out.views.assign(c.views.begin(), c.views.end());
  return out;
}

}  // namespace forge::codegen
