// SPDX-License-Identifier: Apache-2.0
// The walk: blocks in order. Carried values are variables, which a block assigns at its end; all
// other values are constants.
#include <algorithm>

#include "base/status.h"
#include "codegen/cuda/printer.h"
#include "codegen/kernel/verify.h"

namespace forge::codegen {
namespace {

constexpr size_t kLongestName = 120;

// A name in C++ from words: letters and digits, joined by '_'.
std::string Identifier(std::string_view words) {
  std::string out;
  for (const char c : words) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.substr(0, kLongestName);
}

std::string OneLine(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\r' || c == '\\'; }, ' ');
  return out;
}

}  // namespace

CudaCode CudaPrinter::Print() {
  NameViews();
  PrintBlock(0);
  CudaCode code;
  code.entry = Identifier(fmt::format("forge_{} {}", k.name, description));
  const std::string locals = Locals(), parameters = Parameters();
  const auto& w = k.workgroup;
  code.text = fmt::format(
      "// {}\n// kernel {}, blocks of {} x {} x {}, grid {} x {} x {}\n{}\n"
      "extern \"C\" __global__ void __launch_bounds__({})\n{}({}) {{\n{}{}}}\n",
      OneLine(description), OneLine(k.name), w[0], w[1], w[2], k.grid[0].ToText(),
      k.grid[1].ToText(), k.grid[2].ToText(), prelude.Text(), w[0] * w[1] * w[2], code.entry,
      parameters, locals, body);
  return code;
}

void CudaPrinter::Define(Id v, const std::string& text) {
  texts[v] = NewName();
  Line("const {} {} = {};", TypeName(k.TypeOf(v)), texts[v], text);
}

void CudaPrinter::PrintBlock(BlockId b) {
  const std::vector<Inst>& insts = k.blocks[b].insts;
  for (const Inst& i : std::span(insts).first(insts.size() - 1)) {
    switch (i.code) {
      case Code::kIf:
        PrintIf(i);
        break;
      case Code::kFor:
        PrintFor(i);
        break;
      case Code::kWhile:
        PrintWhile(i);
        break;
      case Code::kForElements:
        PrintForElements(i);
        break;
      default:
        PrintInst(i);
    }
  }
}

// Variables are assigned one after the other: where a value is read behind its assignment, all
// values are copied first.
void CudaPrinter::Assign(std::span<const Id> to, std::span<const Id> from) {
  std::vector<std::string> values;
  bool clashes = false;
  for (const Id v : from) {
    const std::string& text = Text(v);
    const std::string root = text.substr(0, text.find('.'));
    clashes |= std::any_of(to.begin(), to.end(), [&](Id t) { return Text(t) == root; });
    values.push_back(text);
  }
  if (clashes)
    for (size_t n = 0; n < from.size(); ++n) {
      if (values[n] == Text(to[n])) continue;
      const std::string copy = NewName();
      Line("const {} {} = {};", TypeName(k.TypeOf(from[n])), copy, values[n]);
      values[n] = copy;
    }
  for (size_t n = 0; n < to.size(); ++n)
    if (values[n] != Text(to[n])) Line("{} = {};", Text(to[n]), values[n]);
}

void CudaPrinter::PrintIf(const Inst& i) {
  std::vector<Id> results;
  for (uint32_t n = 0; n < i.result_count; ++n) {
    results.push_back(i.result + n);
    texts[i.result + n] = NewName();
    Line("{} {};", TypeName(k.TypeOf(i.result + n)), texts[i.result + n]);
  }
  Line("if ({}) {{", Arg(i, 0));
  ++depth;
  PrintBlock(i.block);
  Assign(results, k.YieldOf(i.block));
  --depth;
  if (k.blocks[i.block + 1].insts.size() > 1 || i.result_count > 0) {
    Line("}} else {{");
    ++depth;
    PrintBlock(i.block + 1);
    Assign(results, k.YieldOf(i.block + 1));
    --depth;
  }
  Line("}}");
}

// The results of a loop are what its variables hold in the end.
void CudaPrinter::DeclareCarried(const Inst& i, std::span<const Id> first,
                                 std::span<const Id> carried) {
  for (size_t n = 0; n < carried.size(); ++n) {
    const std::string name = NewName();
    Line("{} {} = {};", TypeName(k.TypeOf(carried[n])), name, Text(first[n]));
    texts[carried[n]] = texts[i.result + n] = name;
  }
}

void CudaPrinter::PrintFor(const Inst& i) {
  const std::span<const Id> args = k.ArgsOf(i), inside = k.blocks[i.block].arguments;
  DeclareCarried(i, args.subspan(3), inside.subspan(1));
  const std::string at = texts[inside[0]] = NewName();
  if (i.aux & kRolled) Line("#pragma unroll 1");
  Line("for (i32 {0} = {1}; {0} < {2}; {0} += {3}) {{", at, Arg(i, 0), Arg(i, 1), Arg(i, 2));
  ++depth;
  PrintBlock(i.block);
  Assign(inside.subspan(1), k.YieldOf(i.block));
  --depth;
  Line("}}");
}

void CudaPrinter::PrintWhile(const Inst& i) {
  const std::span<const Id> tested = k.blocks[i.block].arguments;
  const std::span<const Id> inside = k.blocks[i.block + 1].arguments;
  DeclareCarried(i, k.ArgsOf(i), tested);
  for (size_t n = 0; n < tested.size(); ++n) texts[inside[n]] = texts[tested[n]];
  Line("while (true) {{");
  ++depth;
  PrintBlock(i.block);
  Line("if (!{}) break;", Text(k.YieldOf(i.block)[0]));
  PrintBlock(i.block + 1);
  Assign(inside, k.YieldOf(i.block + 1));
  --depth;
  Line("}}");
}

// A lane of the warp holds four elements of 16 x 8. Where a workgroup holds the matrix, a warp has
// 16 of its rows, in blocks of 8 columns as of 16 x 8.
void CudaPrinter::PrintForElements(const Inst& i) {
  const std::vector<Id>& inside = k.blocks[i.block].arguments;
  for (const Id v : inside) texts[v] = NewName();
  for (uint32_t r = 0; r < i.result_count; ++r) {
    texts[i.result + r] = NewName();
    Line("{} {};", TypeName(k.TypeOf(i.result + r)), Text(i.result + r));
  }
  const Type& matrix = ArgType(i, 0);
  const bool grouped = matrix.is_held_by_workgroup();
  const std::string lane = Builtin(BuiltinKind::kLane), n = NewName();
  Line("#pragma unroll");
  const std::string type = TypeName(k.TypeOf(inside[2]));
  if (i.aux == 4) {
    Line("for (i32 {0} = 0; {0} < {1}; {0} += 4) {{", n, SumsOfThread(matrix));
    ++depth;
    Line("const i32 {} = {} * 16 + {} / 4 + {} / 4 % 2 * 8;", Text(inside[0]),
         Builtin(BuiltinKind::kSubgroup), lane, n);
    Line("const i32 {} = {} / 8 * 16 + {} % 4 * 4;", Text(inside[1]), n, lane);
    Line("{} {}_four[4];", ElementName(matrix.elem), n);
    Line("four_of_row({}, {}, {}, {}_four);", Arg(i, 0), n, lane, n);
    Line("const {0} {1} = {{{2}_four[0], {2}_four[1], {2}_four[2], {2}_four[3]}};", type,
         Text(inside[2]), n);
  } else {
    Line("for (i32 {0} = 0; {0} < {1}; {0} += {2}) {{", n, SumsOfThread(matrix), i.aux);
    ++depth;
    const std::string warp =
        grouped ? fmt::format("{} * 16 + ", Builtin(BuiltinKind::kSubgroup)) : std::string();
    Line("const i32 {} = {}{} / 4 + {} / 2 % 2 * 8;", Text(inside[0]), warp, lane, n);
    Line("const i32 {0} = {1} / 4 * 8 + {2} % 4 * 2 + {1} % 2;", Text(inside[1]), n, lane);
    for (size_t m = 0; m < i.arg_count; ++m) {
      const std::string second = i.aux == 2 ? fmt::format(", {}.r[{} + 1]", Arg(i, m), n) : "";
      Line("const {} {} = {{{}.r[{}]{}}};", TypeName(k.TypeOf(inside[m + 2])), Text(inside[m + 2]),
           Arg(i, m), n, second);
    }
  }
  PrintBlock(i.block);
  for (uint32_t r = 0; r < i.result_count; ++r)
    for (int l = 0; l < i.aux; ++l)
      Line("{}.r[{} + {}] = {};", Text(i.result + r), n, l, Text(k.YieldOf(i.block)[r], l));
  --depth;
  Line("}}");
}

CudaCode PrintCuda(const Kernel& k, const Caps& caps, std::string_view description) {
  const Kernel lowered = Lower(k, caps);
#ifndef NDEBUG
  FORGE_CHECK(VerifyStructure(lowered).empty());
#endif
  return CudaPrinter(lowered, description).Print();
}

}  // namespace forge::codegen
