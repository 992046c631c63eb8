// SPDX-License-Identifier: Apache-2.0
// The text of a kernel, for people: literals and scalars stand where they are used, values are
// numbered as they appear, operations are spelled in small letters.
#include <cmath>

#include "codegen/kernel/literal.h"
#include "codegen/kernel/verify.h"

namespace forge::codegen {
namespace {

constexpr std::string_view kBuiltinNames[] = {"workgroup.x", "workgroup.y", "workgroup.z",
                                              "local.x",     "local.y",     "local.z",
                                              "lane",        "subgroup"};
constexpr std::string_view kReductionNames[] = {"sum", "min", "max", "prod"};
constexpr std::string_view kAtomicNames[] = {"add", "min", "max", "and", "or", "exchange"};
constexpr std::string_view kDotNames[] = {"signed", "unsigned", "mixed"};

using Names = std::span<const std::string_view>;
constexpr CodeTable<Names> kVariants = {
    {Code::kAtomic, kAtomicNames},
    {Code::kSubgroupReduce, kReductionNames},
    {Code::kSubgroupScan, kReductionNames},
    {Code::kMatrixReduce, kReductionNames},
    {Code::kDot4, kDotNames},
};

std::string_view Pick(Names names, uint8_t at) { return at < names.size() ? names[at] : "?"; }

// "SubgroupReduce" -> "subgroup_reduce"
std::string Spelled(Code code) {
  std::string out;
  for (char c : Info(code).name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '_';
    out += static_cast<char>(upper ? c - 'A' + 'a' : c);
  }
  return out;
}

// The shortest text that reads back as `v`; never that of an integer.
template <class T>
std::string FloatText(T v) {
  std::string text = fmt::format("{}", v);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string LiteralText(const Type& t, uint64_t bits) {
  if (t.elem == DType::kBool) return bits ? "true" : "false";
  if (t.elem == DType::kF32) return FloatText(static_cast<float>(FloatOf(t.elem, bits)));
  if (IsFloat(t.elem)) return FloatText(FloatOf(t.elem, bits));
  if (t.elem == DType::kU64) return fmt::format("{}", bits);
  return fmt::format("{}", IntegerOf(t.elem, bits));
}

class Printer {
 public:
  explicit Printer(const Kernel& k) : k_(k), names_(k.values.size()) {
    // Inline values are the same everywhere.
    for (const Block& b : k.blocks)
      for (const Inst& i : b.insts) NameInline(i);
  }

  std::string Run() {
    out_ = fmt::format("kernel {}: workgroup {} x {} x {}", k_.name, k_.workgroup[0],
                       k_.workgroup[1], k_.workgroup[2]);
    if (k_.subgroup) out_ += fmt::format(", subgroups of {}", k_.subgroup);
    if (k_.vulkan_memory) out_ += ", Vulkan's memory model";
    if (k_.approximate) out_ += ", approximate functions";
    out_ += fmt::format(", grid {} x {} x {}\n", k_.grid[0].ToText(), k_.grid[1].ToText(),
                        k_.grid[2].ToText());
    for (const View& v : k_.views) Declare(v);
    for (size_t n = 0; n < k_.scalars.size(); ++n)
      out_ += fmt::format("  s{} = {}\n", n, k_.scalars[n].ToText());
    out_ += "{\n";
    Print(0, 1);
    return out_ + "}\n";
  }

  // Without regions. Values are numbered as the kernel does.
  std::string Line(const Inst& i) {
    for (Id v = 0; v < names_.size(); ++v)
      if (names_[v].empty()) names_[v] = fmt::format("%{}", v);
    return Results(i) + Operation(i);
  }

 private:
  void NameInline(const Inst& i) {
    if (i.result_count != 1 || i.result >= names_.size()) return;
    if (i.code == Code::kLiteral) names_[i.result] = LiteralText(k_.TypeOf(i.result), i.literal);
    if (i.code == Code::kScalar) names_[i.result] = fmt::format("s{}", i.literal);
  }
  static bool IsInline(const Inst& i) {
    return i.code == Code::kLiteral || i.code == Code::kScalar;
  }

  void Declare(const View& v) {
    if (v.space == Space::kGlobal) {
      const std::string_view how = !v.writes ? "reads" : v.reads ? "reads, writes" : "writes";
      const std::string parts =
          v.parts > 1 ? fmt::format(" .. {} of {}", v.operand + v.parts - 1, v.extent) : "";
      out_ += fmt::format("  {} = operand {}{}: {}, {}{}\n", v.name, v.operand, parts,
                          ToText(v.elem), how, v.aliased ? ", aliased" : "");
    } else {
      out_ += fmt::format("  {} = {} {}[{}]{}\n", v.name,
                          v.space == Space::kShared ? "shared" : "private", ToText(v.elem),
                          v.extent, v.swizzled ? ", swizzled" : "");
    }
  }

  std::string Name(Id v) {
    if (v >= names_.size()) return "%?";
    if (names_[v].empty()) names_[v] = fmt::format("%{}", next_++);
    return names_[v];
  }
  std::string NamesOf(std::span<const Id> values) {
    std::string out;
    for (Id v : values) out += (out.empty() ? "" : ", ") + Name(v);
    return out;
  }
  std::span<const Id> Args(const Inst& i) const {
    const bool inside = uint64_t{i.args} + i.arg_count <= k_.operands.size();
    return inside ? k_.ArgsOf(i) : std::span<const Id>{};
  }
  std::string Results(const Inst& i) {
    std::string out;
    for (uint32_t n = 0; n < i.result_count && i.result + n < names_.size(); ++n) {
      if (n > 0) out += ", ";
      out += fmt::format("{}: {}", Name(i.result + n), ToText(k_.TypeOf(i.result + n)));
    }
    return out.empty() ? out : out + " = ";
  }

  static std::string Suffix(const Inst& i) {
    if (!kVariants[i.code].empty()) return fmt::format(".{}", Pick(kVariants[i.code], i.aux));
    if (IsOneOf(i.code, {Code::kDiv, Code::kRem}))
      return i.aux & kNonNegative ? ".nonnegative" : "";
    return i.code == Code::kMatrixLoad && (i.aux & kColumnMajor) ? ".columns" : "";
  }

  std::string Operation(const Inst& i) {
    const std::span<const Id> args = Args(i);
    const std::string name = Spelled(i.code) + Suffix(i);
    switch (i.code) {
      case Code::kBuiltin:
        return std::string(Pick(kBuiltinNames, i.aux));
      case Code::kLiteral:
      case Code::kScalar:
        return Name(i.result);
      case Code::kLoad:
      case Code::kStore:
      case Code::kAtomic:
      case Code::kCompareExchange:
      case Code::kMatrixLoad:
      case Code::kMatrixStore: {
        const bool known = i.view < k_.views.size();
        std::string out = fmt::format("{} {}[{}]", name, known ? k_.views[i.view].name : "?",
                                      args.empty() ? "?" : Name(args[0]));
        for (size_t n = 1; n < args.size(); ++n) out += ", " + Name(args[n]);
        return out;
      }
      case Code::kCopyAsync: {
        const bool known = i.view < k_.views.size() && i.literal < k_.views.size();
        if (!known || args.size() != 3) return name;
        return fmt::format("{} {}[{}], {}[{}], {} elements, {}", name, k_.views[i.view].name,
                           Name(args[0]), k_.views[i.literal].name, Name(args[1]), i.aux,
                           Name(args[2]));
      }
      case Code::kCommitCopies:
        return name;
      case Code::kWaitCopies:
        return fmt::format("{} {}", name, i.aux);
      case Code::kExtract:
        return fmt::format("{}.{}", NamesOf(args), i.aux);
      case Code::kInsert:
      case Code::kMatrixWait:
      case Code::kShuffleXor:
        return fmt::format("{} {}, {}", name, NamesOf(args), i.aux);
      default:
        return args.empty() ? name : fmt::format("{} {}", name, NamesOf(args));
    }
  }

  void Print(BlockId b, int depth) {
    const std::string indent(2 * depth, ' ');
    for (const Inst& i : k_.blocks[b].insts) {
      if (IsInline(i) || (i.code == Code::kYield && i.arg_count == 0)) continue;
      if (i.block_count > 0) {
        Region(i, depth);
      } else {
        out_ += indent + Results(i) + Operation(i) + "\n";
      }
    }
  }

  // "%3: f32 = for %1 in 0 .. s0 step 1, %2 = 0.0 {"
  void Region(const Inst& i, int depth) {
    const std::string indent(2 * depth, ' ');
    const std::span<const Id> args = Args(i);
    const std::vector<Id>& inside = k_.blocks[i.block].arguments;
    const std::string results = Results(i);
    out_ += indent + results;
    if (i.code == Code::kIf) {
      out_ += fmt::format("if {}", Name(args[0]));
    } else if (i.code == Code::kFor) {
      out_ += fmt::format("for {} in {} .. {} step {}{}", Name(inside[0]), Name(args[0]),
                          Name(args[1]), Name(args[2]), i.aux & kRolled ? " rolled" : "");
      Carried(std::span(inside).subspan(1), args.subspan(3));
    } else if (i.code == Code::kForElements) {
      out_ += fmt::format("for elements {} at {}, {} of {}", NamesOf(std::span(inside).subspan(2)),
                          Name(inside[0]), Name(inside[1]), NamesOf(args));
    } else {
      out_ += "while";
      Carried(inside, args);
    }
    out_ += " {\n";
    Print(i.block, depth + 1);
    if (i.code == Code::kWhile) {
      out_ += indent + "} do";
      Carried(k_.blocks[i.block + 1].arguments, inside);
      out_ += " {\n";
      Print(i.block + 1, depth + 1);
    } else if (i.code == Code::kIf &&
               (i.result_count > 0 || k_.blocks[i.block + 1].insts.size() > 1)) {
      out_ += indent + "} else {\n";
      Print(i.block + 1, depth + 1);
    }
    out_ += indent + "}\n";
  }

  void Carried(std::span<const Id> inside, std::span<const Id> from) {
    for (size_t n = 0; n < inside.size(); ++n)
      out_ += fmt::format("{}{} = {}", n == 0 ? " with " : ", ", Name(inside[n]), Name(from[n]));
  }

  const Kernel& k_;
  std::vector<std::string> names_;  // by value; empty until it appears
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string ToText(const Type& t) {
  std::string out(Name(t.elem));
  if (t.is_matrix())
    out += fmt::format("<{}, {}{}>", t.rows, t.cols, t.is_held_by_workgroup() ? ", workgroup" : "");
  if (t.lanes != 1) out += fmt::format("x{}", t.lanes);
  return out;
}

std::string ToText(const Kernel& k) { return Printer(k).Run(); }
std::string ToText(const Kernel& k, const Inst& i) { return Printer(k).Line(i); }

}  // namespace forge::codegen
