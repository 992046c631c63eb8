// SPDX-License-Identifier: Apache-2.0
// Memory, and what the invocations of a warp or a block do together.
#include "base/status.h"
#include "codegen/cuda/printer.h"
#include "codegen/kernel/literal.h"

namespace forge::codegen {
namespace {

// Of ReduceKind, AtomicKind, DotKind.
constexpr std::string_view kCombine[] = {"Sum", "Min", "Max", "Prod"};
constexpr std::string_view kAtomics[] = {"Add", "Min", "Max", "And", "Or", "Exch"};

}  // namespace

std::string CudaPrinter::Place(uint16_t view, const std::string& index) {
  const View& v = k.views[view];
  if (!v.swizzled) return fmt::format("{}[{}]", views[view], index);
  prelude.Need(Helper::kSwizzle);
  return fmt::format("{}[swizzled<{}>({})]", views[view], ElementBytes(v.elem), index);
}

void CudaPrinter::PrintMemory(const Inst& i) {
  const std::string place = Place(i.view, Arg(i, 0));
  switch (i.code) {
    case Code::kLoad:
      return Define(i.result, place);
    case Code::kStore:
      return Line("{} = {};", place, Arg(i, 1));
    case Code::kAtomic:
      return Define(i.result, fmt::format("atomic{}(&{}, {})", kAtomics[i.aux], place, Arg(i, 1)));
    default:
      return Define(i.result, fmt::format("atomicCAS(&{}, {}, {})", place, Arg(i, 1), Arg(i, 2)));
  }
}

void CudaPrinter::PrintCopies(const Inst& i) {
  prelude.Need(Helper::kCopies);
  if (i.code == Code::kCommitCopies) return Line("commit_copies();");
  if (i.code == Code::kWaitCopies) return Line("wait_copies<{}>();", i.aux);
  Line("copy_async(&{}, &{}, {});", Place(i.view, Arg(i, 0)),
       Place(static_cast<uint16_t>(i.literal), Arg(i, 1)), Arg(i, 2));
}

void CudaPrinter::PrintGroupInst(const Inst& i) {
  prelude.Need(Helper::kTiles);
  if (i.code == Code::kMatrixWait)
    return Define(i.result, fmt::format("wait_products<{}>({})", i.aux, Arg(i, 0)));
  if (i.code == Code::kMatrixMulAdd) {
    const Type& a = ArgType(i, 0);
    prelude.NeedGroupProduct(a.elem, k.TypeOf(i.result).cols);
    return Define(i.result, fmt::format("multiply_add_{}<{}>({}, {}, {})", ElementName(a.elem),
                                        a.cols / 16, Arg(i, 0), Arg(i, 1), Arg(i, 2)));
  }
  const View& v = k.views[i.view];
  const bool by_columns = (i.aux & kColumnMajor) != 0;
  const bool along_k = by_columns == (k.TypeOf(i.result).use == MatrixUse::kB);
  texts[i.result] = NewName();
  Line("const auto {} = tile_at<{}>(&{}[{}], {} * {});", texts[i.result], along_k, views[i.view],
       Arg(i, 0), Arg(i, 1), ElementBytes(v.elem));
}

void CudaPrinter::PrintMatrixValue(const Inst& i) {
  if (i.code == Code::kMatrixReduce) {
    prelude.Need(Helper::kRowReduction);
    return Define(i.result, fmt::format("reduce_rows({}, {}{{}})", Arg(i, 0), kCombine[i.aux]));
  }
  prelude.Need(Helper::kSumConversion);
  std::string sums;
  for (size_t n = 0; n < i.arg_count; ++n) sums += ", " + Arg(i, n);
  texts[i.result] = NewName();
  Line("{} {};", TypeName(k.TypeOf(i.result)), texts[i.result]);
  Line("convert_sums({}{});", texts[i.result], sums);
}

// Index and stride count elements of the view, which may be vectors.
void CudaPrinter::PrintMatrixInst(const Inst& i) {
  if ((i.result_count == 1 && k.TypeOf(i.result).is_held_by_workgroup())) return PrintGroupInst(i);
  if (i.code == Code::kMatrixMulAdd) {
    prelude.Need(BitWidth(ArgType(i, 0).elem) == 16 ? Helper::kHalfMma : Helper::kByteMma);
    return Define(i.result,
                  fmt::format("multiply_add({}, {}, {})", Arg(i, 0), Arg(i, 1), Arg(i, 2)));
  }
  prelude.Need(Helper::kMatrices);
  const View& v = k.views[i.view];
  const std::string stride =
      v.elem.lanes == 1 ? Arg(i, 1) : fmt::format("{} * {}", Arg(i, 1), v.elem.lanes);
  const std::string_view element =
      ElementName(i.code == Code::kMatrixStore ? v.elem.elem : k.TypeOf(i.result).elem);
  const auto pointer = [&](std::string_view constness) {
    const std::string place = Place(i.view, Arg(i, 0));
    if (v.elem.lanes == 1 && element == ElementName(v.elem.elem)) return fmt::format("&{}", place);
    return fmt::format("reinterpret_cast<{}{}*>(&{})", constness, element, place);
  };
  if (i.code == Code::kMatrixStore)
    return Line("store_c({}, {}, {});", pointer(""), stride, Arg(i, 2));
  const Type& t = k.TypeOf(i.result);
  texts[i.result] = NewName();
  Line("{} {};", TypeName(t), texts[i.result]);
  const bool by_columns = (i.aux & kColumnMajor) != 0;
  const std::string p = pointer("const ");
  if (t.use == MatrixUse::kAccumulator)
    return Line("load_c({}, {}, {}, {});", texts[i.result], p, by_columns ? "1" : stride,
                by_columns ? stride : "1");
  const std::string_view letter = t.use == MatrixUse::kA ? "a" : "b";
  // Neighbours along k are contiguous in the rows of A and in the columns of B.
  if (v.space == Space::kShared && by_columns == (t.use == MatrixUse::kB))
    return Line("load_{}_shared({}, {}, {});", letter, texts[i.result], p, stride);
  if (v.space == Space::kShared && BitWidth(t.elem) == 16)
    return Line("load_{}_turned({}, {}, {});", letter, texts[i.result], p, stride);
  Line("load_{}({}, {}, {}, {});", letter, texts[i.result], p, by_columns ? "1" : stride,
       by_columns ? stride : "1");
}

void CudaPrinter::PrintTogether(const Inst& i) {
  switch (i.code) {
    case Code::kMatrixLoad:
    case Code::kMatrixStore:
    case Code::kMatrixMulAdd:
    case Code::kMatrixWait:
      return PrintMatrixInst(i);
    case Code::kMatrixReduce:
    case Code::kMatrixConvert:
      return PrintMatrixValue(i);
    case Code::kCopyAsync:
    case Code::kCommitCopies:
    case Code::kWaitCopies:
      return PrintCopies(i);
    case Code::kBarrier:
      return Line("__syncthreads();");
    case Code::kShuffle:
    case Code::kShuffleXor:
    case Code::kSubgroupReduce:
    case Code::kSubgroupScan:
      return PrintSubgroup(i);
    case Code::kBallot:
      return Define(i.result,
                    fmt::format("{{__ballot_sync(0xffffffffu, {}), 0, 0, 0}}", Arg(i, 0)));
    case Code::kDot4:
      return PrintDot4(i);
    default:
      return PrintMemory(i);
  }
}

// Of each lane of the value. Halves are exchanged as their bits, and combined in f32.
void CudaPrinter::PrintSubgroup(const Inst& i) {
  const Type& t = k.TypeOf(i.result);
  const bool half = t.elem == DType::kF16;
  std::string all;
  for (int n = 0; n < t.lanes; ++n) {
    const std::string x = Text(k.ArgsOf(i)[0], n);
    if (n > 0) all += ", ";
    if (IsOneOf(i.code, {Code::kShuffle, Code::kShuffleXor})) {
      const std::string made = Exchanged(i, half ? x + ".bits" : x);
      all += half ? fmt::format("f16{{{}}}", made) : made;
    } else {
      const std::string made = Combined(i, half ? Converted(t.elem, DType::kF32, x) : x);
      all += half ? Converted(DType::kF32, t.elem, made) : made;
    }
  }
  Define(i.result, t.lanes == 1 ? all : "{" + all + "}");
}

std::string CudaPrinter::Exchanged(const Inst& i, const std::string& x) {
  prelude.Need(Helper::kShuffle);
  if (i.code == Code::kShuffle) return fmt::format("shuffle({}, {})", x, Arg(i, 1));
  return fmt::format("shuffle_xor({}, {})", x, i.aux);
}

std::string CudaPrinter::Combined(const Inst& i, const std::string& x) {
  if (i.code == Code::kSubgroupReduce) {
    prelude.Need(Helper::kReduce);
    return fmt::format("subgroup_reduce({}, {}{{}})", x, kCombine[i.aux]);
  }
  prelude.Need(Helper::kScan);
  return fmt::format("subgroup_scan({}, {}, {}{{}})", x, Builtin(BuiltinKind::kLane),
                     kCombine[i.aux]);
}

void CudaPrinter::PrintDot4(const Inst& i) {
  const std::string_view type = ElementName(k.TypeOf(i.result).elem);
  const auto call = [&](std::string_view name, std::string_view of) {
    return fmt::format("{}({}({}({}), {}({}), {}({})))", type, name, of, Arg(i, 0), of, Arg(i, 1),
                       of, Arg(i, 2));
  };
  switch (static_cast<DotKind>(i.aux)) {
    case DotKind::kSigned:
      return Define(i.result, call("__dp4a", "i32"));
    case DotKind::kUnsigned:
      return Define(i.result, call("__dp4a", "u32"));
    default:
      prelude.Need(Helper::kMixedDot);
      return Define(i.result, fmt::format("{}(mixed_dot4({}, {}, i32({})))", type, Arg(i, 0),
                                          Arg(i, 1), Arg(i, 2)));
  }
}

}  // namespace forge::codegen
