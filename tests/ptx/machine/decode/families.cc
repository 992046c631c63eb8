// SPDX-License-Identifier: Apache-2.0
// Which family decodes an opcode.
#include <unordered_map>

#include "tests/ptx/machine/decode/decoder.h"

namespace forge::ptx {
namespace {

using Family = void (*)(Decoder& d);

void DecodeArithmetic(Decoder& d) {
  for (const std::string_view m : d.in().modifiers) {
    const Type t = ParseType(m);
    if (t == Type::kF16 || t == Type::kF16x2 || t == Type::kBf16 || t == Type::kBf16x2)
      return DecodeHalf(d);
    if (t == Type::kF32 || t == Type::kF64 || t == Type::kF32x2) {
      for (const std::string_view rounding : d.in().modifiers)
        if (rounding == "rz" || rounding == "rm" || rounding == "rp") return DecodeDirected(d);
      return DecodeFloat(d);
    }
    if (t != Type::kNone) break;
  }
  for (const std::string_view m : d.in().modifiers)
    if (m == "cc") return DecodeCarry(d);
  DecodeInteger(d);
}

constexpr std::pair<std::string_view, Family> kFamilies[] = {
    {"add", DecodeArithmetic},
    {"sub", DecodeArithmetic},
    {"mul", DecodeArithmetic},
    {"mad", DecodeArithmetic},
    {"fma", DecodeArithmetic},
    {"div", DecodeArithmetic},
    {"abs", DecodeArithmetic},
    {"neg", DecodeArithmetic},
    {"min", DecodeArithmetic},
    {"max", DecodeArithmetic},
    {"rem", DecodeInteger},
    {"sad", DecodeInteger},
    {"mul24", DecodeInteger},
    {"mad24", DecodeInteger},
    {"addc", DecodeCarry},
    {"subc", DecodeCarry},
    {"madc", DecodeCarry},
    {"dp4a", DecodeDotProduct},
    {"dp2a", DecodeDotProduct},
    {"and", DecodeLogic},
    {"or", DecodeLogic},
    {"xor", DecodeLogic},
    {"not", DecodeLogic},
    {"cnot", DecodeLogic},
    {"lop3", DecodeLogic},
    {"shl", DecodeShift},
    {"shr", DecodeShift},
    {"shf", DecodeShift},
    {"popc", DecodeBits},
    {"clz", DecodeBits},
    {"brev", DecodeBits},
    {"bfind", DecodeBits},
    {"bfe", DecodeBits},
    {"bfi", DecodeBits},
    {"prmt", DecodeBits},
    {"bmsk", DecodeBits},
    {"szext", DecodeBits},
    {"sqrt", DecodeApproximate},
    {"rcp", DecodeApproximate},
    {"rsqrt", DecodeApproximate},
    {"sin", DecodeApproximate},
    {"cos", DecodeApproximate},
    {"lg2", DecodeApproximate},
    {"ex2", DecodeApproximate},
    {"tanh", DecodeApproximate},
    {"copysign", DecodeFloat},
    {"testp", DecodeCompare},
    {"setp", DecodeCompare},
    {"set", DecodeCompare},
    {"selp", DecodeSelect},
    {"slct", DecodeSelect},
    {"cvt", DecodeConvert},
    {"mov", DecodeMove},
    {"cvta", DecodeMove},
    {"isspacep", DecodeMove},
    {"ld", DecodeAccess},
    {"ldu", DecodeAccess},
    {"st", DecodeAccess},
    {"prefetch", DecodeAccess},
    {"prefetchu", DecodeAccess},
    {"cp", DecodeAsync},
    {"atom", DecodeAtomic},
    {"red", DecodeAtomic},
    {"shfl", DecodeLanes},
    {"vote", DecodeLanes},
    {"match", DecodeLanes},
    {"redux", DecodeLanes},
    {"activemask", DecodeLanes},
    {"elect", DecodeLanes},
    {"mma", DecodeMatrix},
    {"wgmma", DecodeGroupMatrix},
    {"ldmatrix", DecodeMatrixMove},
    {"stmatrix", DecodeMatrixMove},
    {"movmatrix", DecodeMatrixMove},
    {"bra", DecodeControl},
    {"brx", DecodeControl},
    {"ret", DecodeControl},
    {"exit", DecodeControl},
    {"call", DecodeControl},
    {"trap", DecodeControl},
    {"brkpt", DecodeControl},
    {"nanosleep", DecodeControl},
    {"membar", DecodeControl},
    {"fence", DecodeControl},
    {"pmevent", DecodeControl},
    {"bar", DecodeBarrier},
    {"barrier", DecodeBarrier},
    {"griddepcontrol", DecodeControl},
};

const std::unordered_map<std::string_view, Family>& Families() {
  static const auto* const families =
      new std::unordered_map<std::string_view, Family>(std::begin(kFamilies), std::end(kFamilies));
  return *families;
}

}  // namespace

void Decoder::DecodeOne(const Instruction& instruction) {
  in_ = &instruction;
  taken_.assign(instruction.modifiers.size(), false);
  const auto family = Families().find(instruction.opcode);
  if (family == Families().end()) return Fail("the opcode {} is unknown", instruction.opcode);
  family->second(*this);
  for (size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i]) Fail("the modifier .{} is not supported here", instruction.modifiers[i]);
}

}  // namespace forge::ptx
