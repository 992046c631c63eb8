// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "codegen/cuda/printer.h"
#include "codegen/kernel/literal.h"
#include "codegen/kernel/shared_memory.h"

namespace forge::codegen {
namespace {

constexpr std::string_view kCudaNames[] = {"block_x",  "block_y",  "block_z", "thread_x",
                                           "thread_y", "thread_z", "lane",    "warp"};
constexpr std::string_view kCudaTexts[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                           "threadIdx.x", "threadIdx.y", "threadIdx.z"};

// True when another view of the operand has another element type, or another operand may be the
// same memory.
bool IsAliased(const Kernel& k, const View& v) {
  if (v.aliased) return true;
  return std::any_of(k.views.begin(), k.views.end(), [&](const View& other) {
    return other.space == Space::kGlobal && other.operand == v.operand && other.elem != v.elem;
  });
}

// The number of the invocation in its workgroup.
std::string Linear(const std::array<uint32_t, 3>& workgroup) {
  if (workgroup[1] == 1 && workgroup[2] == 1) return "threadIdx.x";
  return fmt::format("(threadIdx.x + {} * (threadIdx.y + {} * threadIdx.z))", workgroup[0],
                     workgroup[1]);
}

template <class T>
std::string FloatText(T v, std::string_view suffix) {
  std::string text = fmt::format("{}", v);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text + std::string(suffix);
}

}  // namespace

std::string LiteralText(DType t, uint64_t bits) {
  switch (t) {
    case DType::kBool:
      return bits ? "true" : "false";
    case DType::kF16:
      return fmt::format("f16{{{:#06x}}}", bits);
    case DType::kF32: {
      const auto v = static_cast<float>(FloatOf(t, bits));
      if (std::isfinite(v)) return FloatText(v, "f");
      return fmt::format("__uint_as_float({:#x}u)", bits);
    }
    case DType::kF64: {
      const double v = FloatOf(t, bits);
      if (std::isfinite(v)) return FloatText(v, "");
      return fmt::format("__longlong_as_double({:#x}ll)", bits);
    }
    case DType::kI32:
      if (static_cast<int32_t>(bits) == INT32_MIN) return "i32(0x80000000u)";
      return fmt::format("{}", static_cast<int32_t>(bits));
    case DType::kU32:
      return fmt::format("{}u", bits);
    case DType::kI64:
      return fmt::format("i64({:#x}ull)", bits);
    case DType::kU64:
      return fmt::format("{:#x}ull", bits);
    default:
      return fmt::format("{}({})", ElementName(t), IntegerOf(t, bits));
  }
}

int64_t DynamicSharedBytes(const Kernel& k) {
  constexpr int64_t kMostStatic = 48 << 10;  // of any CUDA device
  const int64_t bytes = SharedBytes(k);
  return bytes > kMostStatic ? bytes : 0;
}

int OperandsOf(const Kernel& k) {
  int last = -1;
  for (const View& v : k.views)
    if (v.space == Space::kGlobal) last = std::max(last, v.operand);
  return last + 1;
}

std::string CudaPrinter::TypeName(const Type& t) {
  if (!t.is_matrix()) return prelude.TypeName(t);
  if (t.is_held_by_workgroup()) {
    prelude.Need(Helper::kTiles);
    return fmt::format("group_sums<{}, {}>", ElementName(t.elem), SumsOfThread(t));
  }
  prelude.Need(Helper::kMatrices);
  if (t.use == MatrixUse::kAccumulator) return fmt::format("sums<{}>", ElementName(t.elem));
  const int words = t.rows * t.cols * BitWidth(t.elem) / 32 / 32;  // in each lane
  return fmt::format("fragment<{}, {}>", ElementName(t.elem), words);
}

int CudaPrinter::SumsOfThread(const Type& accumulator) const {
  const int64_t holders = accumulator.is_held_by_workgroup() ? k.workgroup[0] : 32;
  return static_cast<int>(accumulator.rows * accumulator.cols / holders);
}

void CudaPrinter::NameViews() {
  for (const View& v : k.views) {
    std::string name;
    for (const char c : v.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    views.push_back(fmt::format("{}_{}", name, views.size()));
  }
}

std::string CudaPrinter::Parameters() {
  std::vector<std::string> all;
  for (int operand = 0; operand < OperandsOf(k); ++operand) {
    const auto is = [&](const View& v) {
      return v.space == Space::kGlobal && v.operand == operand;
    };
    const auto at = std::find_if(k.views.begin(), k.views.end(), is);
    if (at == k.views.end()) {
      all.push_back(fmt::format("const void* unused_{}", operand));
    } else if (IsAliased(k, *at)) {
      all.push_back(fmt::format("{}void* operand_{}", at->writes ? "" : "const ", operand));
    } else {
      all.push_back(fmt::format("{}{}* __restrict__ operand_{}", at->writes ? "" : "const ",
                                TypeName(at->elem), operand));
    }
  }
  for (size_t n = 0; n < k.scalars.size(); ++n) all.push_back(fmt::format("i32 s{}", n));
  std::string out;
  for (const std::string& p : all) out += (out.empty() ? "" : ", ") + p;
  return out;
}

std::string CudaPrinter::Locals() {
  std::string out;
  const bool dynamic = DynamicSharedBytes(k) > 0;
  if (dynamic) out += "  extern __shared__ __align__(1024) u8 shared_memory[];\n";
  uint64_t shared = 0;  // bytes
  for (size_t n = 0; n < k.views.size(); ++n) {
    const View& v = k.views[n];
    const std::string type = TypeName(v.elem);
    const SharedArray array{v.elem, v.extent, v.swizzled};
    if (dynamic && v.space == Space::kShared) {
      shared = AlignUp(shared, array.alignment());
      out += fmt::format("  {0}* const {1} = reinterpret_cast<{0}*>(shared_memory + {2});\n", type,
                         views[n], shared);
      shared += static_cast<uint64_t>(SharedBytes({&array, 1}));
    } else if (v.space == Space::kGlobal) {
      const std::string_view constness = v.writes ? "" : "const ";
      const std::string from = fmt::format("operand_{}", v.operand);
      out += IsAliased(k, v) ? fmt::format("  {0}{1}* const {2} = static_cast<{0}{1}*>({3});\n",
                                           constness, type, views[n], from)
                             : fmt::format("  {}{}* __restrict__ const {} = {};\n", constness, type,
                                           views[n], from);
    } else {
      // Vectors of 16 bytes and more are loaded whole.
      const std::string where =
          fmt::format("__shared__ alignas({}) ",
                      std::max(array.alignment(), static_cast<uint64_t>(ElementBytes(v.elem))));
      out += fmt::format("  {}{} {}[{}];\n", v.space == Space::kShared ? where : "", type, views[n],
                         v.extent);
    }
  }
  for (size_t n = 0; n < std::size(kCudaTexts); ++n)
    if (builtins[n]) out += fmt::format("  const i32 {} = {};\n", kCudaNames[n], kCudaTexts[n]);
  if (builtins[static_cast<size_t>(BuiltinKind::kLane)])
    out += fmt::format("  const i32 lane = {} % 32;\n", Linear(k.workgroup));
  if (builtins[static_cast<size_t>(BuiltinKind::kSubgroup)])
    out += fmt::format("  const i32 warp = {} / 32;\n", Linear(k.workgroup));
  return out;
}

std::string CudaPrinter::Builtin(BuiltinKind kind) {
  builtins[static_cast<size_t>(kind)] = true;
  return std::string(kCudaNames[static_cast<size_t>(kind)]);
}

}  // namespace forge::codegen
