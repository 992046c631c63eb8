// SPDX-License-Identifier: Apache-2.0
// The printer from kernel IR to CUDA C++. Private to its sources: declarations (declare.cc),
// instructions (instructions.cc), memory and what a warp does together (together.cc), blocks
// (print.cc).
#pragma once
#include "absl/container/flat_hash_set.h"
#include "codegen/cuda/bounds.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/print_cuda.h"

namespace forge::codegen {

struct CudaPrinter {
  CudaPrinter(const Kernel& kernel, std::string_view what)
      : k(kernel), description(what), bounds(BoundsOf(k)), texts(k.values.size()) {}
  CudaCode Print();

  // Declarations.
  void NameViews();
  std::string Parameters();
  std::string Locals();  // shared and private memory, views of the parameters, builtins
  std::string Builtin(BuiltinKind kind);
  std::string TypeName(const Type& t);
  int SumsOfThread(const Type& accumulator) const;

  // Prints an instruction other than control flow.
  void PrintInst(const Inst& i);
  void PrintMatrixInst(const Inst& i);   // load, store, product
  void PrintGroupInst(const Inst& i);    // the same of matrices that a workgroup holds
  void PrintMatrixValue(const Inst& i);  // MatrixReduce, MatrixConvert
  void PrintCopies(const Inst& i);       // CopyAsync and its groups
  void PrintTogether(const Inst& i);     // of subgroups and workgroups
  void PrintSubgroup(const Inst& i);     // reductions and scans
  std::string Exchanged(const Inst& i, const std::string& x);
  std::string Combined(const Inst& i, const std::string& x);
  void PrintDot4(const Inst& i);
  void PrintMemory(const Inst& i);               // loads, stores, atomics
  std::string Element(const Inst& i, int lane);  // of the result of a pure instruction
  // The element as C++ computes it; operands have the type `of`.
  std::string Arithmetic(const Inst& i, DType of, std::span<const std::string> x);
  std::string Converted(DType from, DType to, const std::string& x);
  std::string Place(uint16_t view, const std::string& index);  // "view[index]"

  // Blocks.
  void PrintBlock(BlockId b);  // without its Yield
  void PrintIf(const Inst& i);
  void PrintFor(const Inst& i);
  void PrintWhile(const Inst& i);
  void PrintForElements(const Inst& i);
  void DeclareCarried(const Inst& i, std::span<const Id> first, std::span<const Id> carried);
  void Assign(std::span<const Id> to, std::span<const Id> from);

  template <class... T>
  void Line(fmt::format_string<T...> format, T&&... args) {
    body.append(static_cast<size_t>(depth) * 2, ' ');
    fmt::format_to(std::back_inserter(body), format, std::forward<T>(args)...);
    body += '\n';
  }
  // Declares a value with a new name.
  void Define(Id v, const std::string& text);
  std::string NewName() { return fmt::format("v{}", next++); }
  const std::string& Text(Id v) const { return texts[v]; }
  std::string Text(Id v, int lane) const;
  const std::string& Arg(const Inst& i, size_t n) const { return Text(k.ArgsOf(i)[n]); }
  const Type& ArgType(const Inst& i, size_t n) const { return k.TypeOf(k.ArgsOf(i)[n]); }

  const Kernel& k;
  const std::string_view description;
  const std::vector<Bounds> bounds;
  Prelude prelude;
  std::vector<std::string> texts;  // of values, where they are used
  std::vector<std::string> views;  // names
  std::array<bool, 8> builtins{};  // that are used
  std::string body;
  int depth = 1;
  uint32_t next = 0;
};

// The text of a literal element.
std::string LiteralText(DType t, uint64_t bits);

}  // namespace forge::codegen
