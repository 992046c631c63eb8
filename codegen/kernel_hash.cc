// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "codegen/kernel_ir.h"

namespace forge::codegen {
namespace {

uint64_t HashInst(uint64_t h, const Kernel& k, const Inst& i) {
  for (uint64_t v : {static_cast<uint64_t>(i.code), uint64_t{i.aux}, uint64_t{i.view},
                     uint64_t{i.arg_count}, uint64_t{i.result}, uint64_t{i.result_count},
                     uint64_t{i.block}, uint64_t{i.block_count}, i.literal})
    h = HashMix(h, v);
  for (Id a : k.ArgsOf(i)) h = HashMix(h, a);
  return h;
}

}  // namespace

uint64_t HashType(uint64_t seed, const Type& t) {
  for (uint64_t v : {static_cast<uint64_t>(t.elem), uint64_t{t.lanes}, static_cast<uint64_t>(t.use),
                     static_cast<uint64_t>(t.held_by), uint64_t{t.rows}, uint64_t{t.cols}})
    seed = HashMix(seed, v);
  return seed;
}

uint64_t HashInterface(const Kernel& k) {
  uint64_t h = HashMix(k.subgroup, k.scalars.size());
  for (uint32_t w : k.workgroup) h = HashMix(h, w);
  for (const View& v : k.views) {
    h = HashType(h, v.elem);
    for (uint64_t x :
         {static_cast<uint64_t>(v.space), static_cast<uint64_t>(v.operand), uint64_t{v.extent},
          uint64_t{v.reads}, uint64_t{v.writes}, uint64_t{v.aliased}})
      h = HashMix(h, x);
  }
  return h;
}

uint64_t Hash(const Kernel& k) {
  uint64_t h = HashInterface(k);
  for (const ValueInfo& v : k.values) h = HashType(h, v.type);
  for (const Block& b : k.blocks) {
    h = HashMix(h, b.arguments.size());
    for (Id a : b.arguments) h = HashMix(h, a);
    h = HashMix(h, b.insts.size());
    for (const Inst& i : b.insts) h = HashInst(h, k, i);
  }
  return h;
}

}  // namespace forge::codegen
