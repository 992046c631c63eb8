// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "codegen/kernel_ir.h"

namespace forge::codegen {
namespace {

uint64_t Mix(uint64_t h, std::initializer_list<uint64_t> values) {
  for (const uint64_t v : values) h = HashMix(h, v);
  return h;
}

uint64_t HashInst(uint64_t h, const Kernel& k, const Inst& i) {
  h = Mix(h, {static_cast<uint64_t>(i.code), i.aux, i.view, i.arg_count, i.result, i.result_count,
              i.block, i.block_count, i.literal});
  for (Id a : k.ArgsOf(i)) h = HashMix(h, a);
  return h;
}

}  // namespace

uint64_t HashType(uint64_t seed, const Type& t) {
  return Mix(seed, {static_cast<uint64_t>(t.elem), t.lanes, static_cast<uint64_t>(t.use),
                    static_cast<uint64_t>(t.held_by), t.rows, t.cols});
}

uint64_t HashInterface(const Kernel& k) {
  uint64_t h = Mix(k.subgroup, {k.scalars.size(), k.workgroup[0], k.workgroup[1], k.workgroup[2]});
  for (const View& v : k.views)
    h = Mix(HashType(h, v.elem), {static_cast<uint64_t>(v.space), static_cast<uint64_t>(v.operand),
                                  v.extent, v.reads, v.writes, v.aliased});
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
