// SPDX-License-Identifier: Apache-2.0
// The late part of building a box: axes are joined, registers get their places.
#include <algorithm>

#include "cpu_runtime/tape/box_builder.h"

namespace forge::cpu {
namespace {

constexpr size_t kNever = SIZE_MAX;

Access* AccessIn(Instruction& i) {
  if (auto* load = std::get_if<LoadInstruction>(&i)) return &load->from;
  if (auto* store = std::get_if<StoreInstruction>(&i)) return &store->to;
  return nullptr;
}

bool StoredAsHeld(DType t) { return HeldAs(t) == t; }

}  // namespace

BoxProgram BoxBuilder::Finish() {
  if (rows_) {
    program_.row_length = program_.extents.back();
    program_.rows = std::make_unique<BoxProgram>(rows_->Finish());
    for (ir::AnyOp& op : rows_->ops_) ops_.push_back(std::move(op));
  }
  Hoist();
  Merge();
  Place();
  return std::move(program_);
}

// What is the same for every element is loaded once for each thread.
void BoxBuilder::Hoist() {
  if (axes_.empty()) return;
  auto& body = program_.body;
  const auto first = std::stable_partition(body.begin(), body.end(), [](const Instruction& i) {
    const auto* load = std::get_if<LoadInstruction>(&i);
    return !load || std::any_of(load->from.strides.begin(), load->from.strides.end(),
                                [](int64_t s) { return s != 0; });
  });
  std::move(first, body.end(), std::back_inserter(program_.setup));
  body.erase(first, body.end());
}

void BoxBuilder::Merge() {
  auto& extents = program_.extents;
  std::vector<Access*> all;
  for (Instruction& i : program_.body)
    if (Access* a = AccessIn(i)) all.push_back(a);
  for (size_t i = extents.size(); i-- > 1;) {
    const bool alike = std::all_of(all.begin(), all.end(), [&](const Access* a) {
      return a->strides[i - 1] == a->strides[i] * extents[i];
    });
    if (!alike) continue;
    extents[i - 1] *= extents[i];
    extents.erase(extents.begin() + static_cast<ptrdiff_t>(i));
    for (Access* a : all) {
      a->strides[i - 1] = a->strides[i];
      a->strides.erase(a->strides.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

// An operand's memory may serve as the register, unless a result in the same memory is written
// before the last read.
bool BoxBuilder::MayStayDirect(size_t load) const {
  const auto& l = std::get<LoadInstruction>(program_.body[load]);
  if (!l.from.flat || !StoredAsHeld(l.from.dtype)) return false;
  size_t last_read = load, first_write = kNever;
  for (size_t i = load + 1; i < program_.body.size(); ++i) {
    ForEachInput(program_.body[i], [&](const Register& r) {
      if (r == l.out) last_read = i;
    });
    const auto* store = std::get_if<StoreInstruction>(&program_.body[i]);
    if (store == nullptr || store->to.operand != l.from.operand) continue;
    // A value may be computed in the place of its store: then it is written when it is made.
    for (size_t k = 0; k < i; ++k)
      if (const Register* out = OutputOf(program_.body[k]); out && *out == store->in)
        first_write = std::min(first_write, k);
    first_write = std::min(first_write, i);
  }
  return last_read <= first_write;
}

void BoxBuilder::Place() {
  auto& body = program_.body;
  program_.places.assign(types_.size(), 0);
  for (size_t i = 0; i < body.size(); ++i)
    if (auto* load = std::get_if<LoadInstruction>(&body[i]); load && MayStayDirect(i)) {
      load->direct = true;
      program_.places[load->out] = BoxProgram::kDirect;
    }
  // A value whose store is flat is made in the result itself.
  std::vector<bool> is_made(types_.size(), false), in_result(types_.size(), false);
  for (Instruction& i : body)
    if (const Register* out = OutputOf(i)) is_made[*out] = program_.places[*out] == 0;
  std::erase_if(body, [&](const Instruction& i) {
    const auto* store = std::get_if<StoreInstruction>(&i);
    if (!store || !store->to.flat || !StoredAsHeld(store->to.dtype)) return false;
    if (!is_made[store->in] || in_result[store->in]) return false;
    in_result[store->in] = true;
    program_.places[store->in] = BoxProgram::kInResult;
    program_.in_result.push_back({store->in, store->to, StoredBytes(store->to.dtype)});
    return true;
  });
  PlaceInScratch();
}

void BoxBuilder::PlaceInScratch() {
  auto& body = program_.body;
  std::vector<size_t> last(types_.size(), 0);
  for (size_t i = 0; i < body.size(); ++i)
    ForEachInput(body[i], [&](const Register& r) { last[r] = i; });
  for (const Register r : kept_) last[r] = kNever;
  std::vector<std::pair<uint32_t, uint32_t>> free;  // bytes, offset
  auto take = [&](Register r) {
    const auto bytes = static_cast<uint32_t>(HeldBytes(types_[r]) * kBlock);
    const auto it =
        std::find_if(free.begin(), free.end(), [&](const auto& f) { return f.first == bytes; });
    if (it == free.end()) {
      program_.places[r] = program_.scratch_bytes;
      program_.scratch_bytes += bytes;
      return;
    }
    program_.places[r] = it->second;
    free.erase(it);
  };
  auto is_own = [&](Register r) {
    return program_.places[r] != BoxProgram::kDirect && program_.places[r] != BoxProgram::kInResult;
  };
  std::vector<bool> is_constant(types_.size(), false);
  for (const Instruction& i : program_.setup) {
    is_constant[*OutputOf(i)] = true;
    take(*OutputOf(i));
  }
  for (size_t i = 0; i < body.size(); ++i) {
    if (const Register* out = OutputOf(body[i]); out && is_own(*out)) take(*out);
    std::vector<Register> done;
    ForEachInput(body[i], [&](const Register& r) {
      if (last[r] == i && is_own(r) && !is_constant[r] &&
          std::find(done.begin(), done.end(), r) == done.end())
        done.push_back(r);
    });
    for (Register r : done)
      free.emplace_back(static_cast<uint32_t>(HeldBytes(types_[r]) * kBlock), program_.places[r]);
  }
}

}  // namespace forge::cpu
