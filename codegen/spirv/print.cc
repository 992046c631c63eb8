// SPDX-License-Identifier: Apache-2.0
// The walk: blocks in order, regions with carried values become phis.
#include "base/status.h"
#include "codegen/kernel/verify.h"
#include "codegen/spirv/printer.h"

namespace forge::codegen {

std::vector<uint32_t> SpirvPrinter::Print() {
  ids.resize(k.values.size());
  DeclareFeatures();
  DeclareViews();
  DeclareScalars();
  const Word none = m.DeclareType(Op::OpTypeVoid, {});
  const Word function = m.NewId();
  here = m.NewId();
  m.Add(SpirvModule::kFunction, Op::OpFunction,
        {none, function, 0, m.DeclareType(Op::OpTypeFunction, {none})});
  m.Add(SpirvModule::kFunction, Op::OpLabel, {here});
  PrintBlock(0);
  Add(Op::OpReturn, {});
  DeclareEntryPoint(function);
  return m.Finish();
}

std::vector<Word> SpirvPrinter::OfAll(std::span<const Id> v) const {
  std::vector<Word> out;
  for (Id id : v) out.push_back(Of(id));
  return out;
}

void SpirvPrinter::Enter(Word label) {
  Add(Op::OpLabel, {label});
  here = label;
}

void SpirvPrinter::PrintBlock(BlockId b) {
  const std::vector<Inst>& insts = k.blocks[b].insts;
  for (const Inst& i : std::span(insts).first(insts.size() - 1)) {
    if (i.code == Code::kIf) {
      PrintIf(i);
    } else if (IsOneOf(i.code, {Code::kFor, Code::kWhile})) {
      PrintLoop(i);
    } else if (i.code == Code::kForElements) {
      PrintForElements(i);
    } else if (const Word made = PrintInst(i); made != 0) {
      ids[i.result] = made;
    }
  }
}

void SpirvPrinter::PrintIf(const Inst& i) {
  const Word yes = m.NewId(), done = m.NewId();
  const bool has_else = k.blocks[i.block + 1].insts.size() > 1 || i.result_count > 0;
  const Word no = has_else ? m.NewId() : done;
  Add(Op::OpSelectionMerge, {done, 0});
  BranchIf(Of(k.ArgsOf(i)[0]), yes, no);
  Enter(yes);
  PrintBlock(i.block);
  const Word after_yes = here;
  Branch(done);
  if (has_else) {
    Enter(no);
    PrintBlock(i.block + 1);
    Branch(done);
  }
  const Word after_no = here;
  Enter(done);
  for (uint32_t n = 0; n < i.result_count; ++n) {
    const Id a = k.YieldOf(i.block)[n], b = k.YieldOf(i.block + 1)[n];
    ids[i.result + n] = m.AddValue(Op::OpPhi, TypeOf(a), {Of(a), after_yes, Of(b), after_no});
  }
}

// For and While: a phi for each value that is carried, a For's counter the first of them; what the
// next trip gets is known at the end of the body, which is the last block.
void SpirvPrinter::PrintLoop(const Inst& i) {
  const bool counts = i.code == Code::kFor;
  const BlockId last = i.block + i.block_count - 1;
  const std::span<const Id> carried = k.blocks[i.block].arguments, args = k.ArgsOf(i);
  const Word head = m.NewId(), next = m.NewId(), done = m.NewId(), before = here;
  Branch(head);
  Enter(head);
  std::vector<size_t> open;  // where the phis want the ids of the next values
  for (size_t n = 0; n < carried.size(); ++n) {
    const Id first = !counts ? args[n] : n == 0 ? args[0] : args[n + 2];
    ids[carried[n]] = m.AddValue(Op::OpPhi, TypeOf(carried[n]), {Of(first), before, 0, next});
    open.push_back(m.body_size() - 2);
  }
  const auto control =
      i.aux & kRolled ? spv::LoopControlMask::DontUnroll : spv::LoopControlMask::MaskNone;
  const auto merge = [&] { Add(Op::OpLoopMerge, {done, next, static_cast<Word>(control)}); };
  const Word test = counts ? 0 : m.NewId(), body = m.NewId();
  if (counts) {
    const Word go =
        m.AddValue(Op::OpSLessThan, ElementType(DType::kBool), {Of(carried[0]), Of(args[1])});
    merge();
    BranchIf(go, body, done);
  } else {
    merge();
    Branch(test);
    Enter(test);
    PrintBlock(i.block);
    BranchIf(Of(k.YieldOf(i.block)[0]), body, done);
    for (size_t n = 0; n < carried.size(); ++n) ids[k.blocks[last].arguments[n]] = Of(carried[n]);
  }
  Enter(body);
  PrintBlock(last);
  Branch(next);
  Enter(next);
  std::vector<Word> values = OfAll(k.YieldOf(last));
  if (counts)
    values.insert(values.begin(),
                  m.AddValue(Op::OpIAdd, ElementType(DType::kI32), {Of(carried[0]), Of(args[2])}));
  for (size_t n = 0; n < values.size(); ++n) m.Patch(open[n], values[n]);
  Branch(head);
  Enter(done);
  for (uint32_t n = 0; n < i.result_count; ++n) ids[i.result + n] = Of(carried[counts ? n + 1 : n]);
}

// The body is a function: it takes a row, a column, an element and what it captures; it gives the
// element.
void SpirvPrinter::PrintForElements(const Inst& i) {
  const std::vector<Id> captured = CapturesOf(k, i.block).values;
  const std::vector<Word> outside = OfAll(captured);
  std::vector<Id> parameters = k.blocks[i.block].arguments;
  parameters.insert(parameters.end(), captured.begin(), captured.end());
  const Word element = TypeOf(parameters[2]);
  std::vector<Word> signature{element};
  for (const Id p : parameters) signature.push_back(TypeOf(p));
  const Word type = m.DeclareType(Op::OpTypeFunction, signature), function = m.NewId();
  const Word caller = here;
  m.AddFunction([&] {
    Add(Op::OpFunction, {element, function, 0, type});
    for (const Id p : parameters) ids[p] = m.AddValue(Op::OpFunctionParameter, TypeOf(p), {});
    Enter(m.NewId());
    PrintBlock(i.block);
    Add(Op::OpReturnValue, {Of(parameters[2])});
  });
  here = caller;
  for (size_t n = 0; n < captured.size(); ++n) ids[captured[n]] = outside[n];
  const Id matrix = k.ArgsOf(i)[0];
  std::vector<Word> words{Of(matrix), function};
  words.insert(words.end(), outside.begin(), outside.end());
  m.AddValue(kOpMatrixPerElement, TypeOf(matrix), words);
}

std::vector<uint32_t> PrintSpirv(const Kernel& k, const Caps& caps) {
  const Kernel lowered = Lower(k, caps);
#ifndef NDEBUG
  FORGE_CHECK(VerifyStructure(lowered).empty());
#endif
  return SpirvPrinter(lowered, caps).Print();
}

}  // namespace forge::codegen
