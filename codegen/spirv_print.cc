// SPDX-License-Identifier: Apache-2.0
// The walk: blocks in order, regions with carried values become phis.
#include "codegen/analysis.h"
#include "codegen/spirv_printer.h"

namespace forge::codegen {

namespace {

using spv::Op;
using Word = SpirvModule::Word;

}  // namespace

std::vector<uint32_t> SpirvPrinter::Print() {
  ids_.resize(k_.values.size());
  DeclareFeatures();
  DeclareViews();
  DeclareScalars();
  const Word none = m_.DeclareType(Op::OpTypeVoid, {});
  const Word function = m_.NewId();
  here_ = m_.NewId();
  m_.Add(SpirvModule::kFunction, Op::OpFunction,
         {none, function, 0, m_.DeclareType(Op::OpTypeFunction, {none})});
  m_.Add(SpirvModule::kFunction, Op::OpLabel, {here_});
  PrintBlock(0);
  Add(Op::OpReturn, {});
  DeclareEntryPoint(function);
  return m_.Finish();
}

std::vector<Word> SpirvPrinter::OfAll(std::span<const Id> v) const {
  std::vector<Word> out;
  for (Id id : v) out.push_back(Of(id));
  return out;
}

void SpirvPrinter::Enter(Word label) {
  Add(Op::OpLabel, {label});
  here_ = label;
}

void SpirvPrinter::PrintBlock(BlockId b) {
  using Self = SpirvPrinter;
  using Print = Word (Self::*)(const Inst&);
  static constexpr CodeTable<Print> kOther = {
      {Code::kLiteral, &Self::Literal},
      {Code::kScalar, &Self::LoadScalar},
      {Code::kBuiltin, &Self::LoadBuiltin},
      {Code::kConvert, &Self::Convert},
      {Code::kBitcast, &Self::Bitcast},
      {Code::kPack, &Self::Composite},
      {Code::kExtract, &Self::Composite},
      {Code::kInsert, &Self::Composite},
      {Code::kMulHigh, &Self::MulHigh},
      {Code::kDot4, &Self::Dot4},
      {Code::kLoad, &Self::Load},
      {Code::kStore, &Self::Store},
      {Code::kAtomic, &Self::Atomic},
      {Code::kMatrixLoad, &Self::MatrixLoad},
      {Code::kMatrixStore, &Self::MatrixStore},
      {Code::kMatrixMulAdd, &Self::MatrixMulAdd},
      {Code::kBarrier, &Self::Barrier},
      {Code::kShuffle, &Self::Subgroup},
      {Code::kShuffleXor, &Self::Subgroup},
      {Code::kBallot, &Self::Subgroup},
      {Code::kSubgroupReduce, &Self::Subgroup},
      {Code::kSubgroupScan, &Self::Subgroup},
      {Code::kIf, &Self::PrintIf},
      {Code::kFor, &Self::PrintLoop},
      {Code::kWhile, &Self::PrintLoop},
      {Code::kForElements, &Self::PrintForElements},
  };
  const std::vector<Inst>& insts = k_.blocks[b].insts;
  for (const Inst& i : std::span(insts).first(insts.size() - 1)) {
    const Print other = kOther[i.code];
    const Word made = other != nullptr ? (this->*other)(i) : Plain(i);
    if (made != 0) ids_[i.result] = made;
  }
}

Word SpirvPrinter::PrintIf(const Inst& i) {
  const Word yes = m_.NewId(), done = m_.NewId();
  const bool has_else = k_.blocks[i.block + 1].insts.size() > 1 || i.result_count > 0;
  const Word no = has_else ? m_.NewId() : done;
  Add(Op::OpSelectionMerge, {done, 0});
  BranchIf(Of(k_.ArgsOf(i)[0]), yes, no);
  Enter(yes);
  PrintBlock(i.block);
  const Word after_yes = here_;
  Branch(done);
  if (has_else) {
    Enter(no);
    PrintBlock(i.block + 1);
    Branch(done);
  }
  const Word after_no = here_;
  Enter(done);
  for (uint32_t n = 0; n < i.result_count; ++n) {
    const Id a = k_.YieldOf(i.block)[n], b = k_.YieldOf(i.block + 1)[n];
    ids_[i.result + n] = m_.AddValue(Op::OpPhi, TypeOf(a), {Of(a), after_yes, Of(b), after_no});
  }
  return 0;
}

// For and While: a phi for each value that is carried, a For's counter the first of them; what the
// next trip gets is known at the end of the body, which is the last block.
Word SpirvPrinter::PrintLoop(const Inst& i) {
  const bool counts = i.code == Code::kFor;
  const BlockId last = i.block + i.block_count - 1;
  const std::span<const Id> carried = k_.blocks[i.block].arguments, args = k_.ArgsOf(i);
  const Word head = m_.NewId(), next = m_.NewId(), done = m_.NewId(), before = here_;
  Branch(head);
  Enter(head);
  std::vector<size_t> open;  // where the phis want the ids of the next values
  for (size_t n = 0; n < carried.size(); ++n) {
    const Id first = !counts ? args[n] : n == 0 ? args[0] : args[n + 2];
    ids_[carried[n]] = m_.AddValue(Op::OpPhi, TypeOf(carried[n]), {Of(first), before, 0, next});
    open.push_back(m_.body_size() - 2);
  }
  const auto control =
      i.aux & kRolled ? spv::LoopControlMask::DontUnroll : spv::LoopControlMask::MaskNone;
  const auto merge = [&] { Add(Op::OpLoopMerge, {done, next, static_cast<Word>(control)}); };
  const Word test = counts ? 0 : m_.NewId(), body = m_.NewId();
  if (counts) {
    const Word go =
        m_.AddValue(Op::OpSLessThan, ElementType(DType::kBool), {Of(carried[0]), Of(args[1])});
    merge();
    BranchIf(go, body, done);
  } else {
    merge();
    Branch(test);
    Enter(test);
    PrintBlock(i.block);
    BranchIf(Of(k_.YieldOf(i.block)[0]), body, done);
    for (size_t n = 0; n < carried.size(); ++n) ids_[k_.blocks[last].arguments[n]] = Of(carried[n]);
  }
  Enter(body);
  PrintBlock(last);
  Branch(next);
  Enter(next);
  std::vector<Word> values = OfAll(k_.YieldOf(last));
  if (counts)
    values.insert(values.begin(),
                  m_.AddValue(Op::OpIAdd, ElementType(DType::kI32), {Of(carried[0]), Of(args[2])}));
  for (size_t n = 0; n < values.size(); ++n) m_.Patch(open[n], values[n]);
  Branch(head);
  Enter(done);
  for (uint32_t n = 0; n < i.result_count; ++n)
    ids_[i.result + n] = Of(carried[counts ? n + 1 : n]);
  return 0;
}

// Takes a row, a column, an element and what `captured` is to the caller; gives the element.
Word SpirvPrinter::PrintElementFunction(const Inst& i, std::span<const Id> captured) {
  std::vector<Id> parameters = k_.blocks[i.block].arguments;
  parameters.insert(parameters.end(), captured.begin(), captured.end());
  const Word element = TypeOf(parameters[2]);
  std::vector<Word> signature{element};
  for (const Id p : parameters) signature.push_back(TypeOf(p));
  const Word type = m_.DeclareType(Op::OpTypeFunction, signature), function = m_.NewId();
  const Word caller = here_;
  const std::vector<Word> outside = OfAll(captured);
  m_.AddFunction([&] {
    Add(Op::OpFunction, {element, function, 0, type});
    for (const Id p : parameters) ids_[p] = m_.AddValue(Op::OpFunctionParameter, TypeOf(p), {});
    Enter(m_.NewId());
    PrintBlock(i.block);
    Add(Op::OpReturnValue, {Of(parameters[2])});
  });
  here_ = caller;
  for (size_t n = 0; n < captured.size(); ++n) ids_[captured[n]] = outside[n];
  return function;
}

Word SpirvPrinter::PrintForElements(const Inst& i) {
  const std::vector<Id> captured = CapturesOf(k_, i.block).values;
  const Word function = PrintElementFunction(i, captured);
  const Id matrix = k_.ArgsOf(i)[0];
  std::vector<Word> words{Of(matrix), function};
  for (const Id v : captured) words.push_back(Of(v));
  m_.AddValue(kOpMatrixPerElement, TypeOf(matrix), words);
  return 0;
}

std::vector<uint32_t> PrintSpirv(const Kernel& k, const Caps& caps) {
  const Kernel lowered = Lower(k, caps);
  return SpirvPrinter(lowered, caps).Print();
}

}  // namespace forge::codegen
