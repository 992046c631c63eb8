// SPDX-License-Identifier: Apache-2.0
// The cases of element-wise ops, made from their signature and range.
#include <fmt/format.h>

#include "base/hash.h"
#include "ir/op/signature.h"
#include "ir/ops/elementwise/elementwise_rules.h"

namespace forge::ir {
namespace {

struct Operand {
  std::string word;  // its element types as the signature has them
  DTypes dtypes;
};

// The operands of a signature; one that is like another has its element types.
std::vector<Operand> OperandsOf(const OpDef& def) {
  std::vector<Operand> operands;
  const Signature& s = SignatureOf(def);
  for (const Parameter& p : s.inputs) {
    const auto like = std::ranges::find(s.inputs, p.like, &Parameter::name);
    if (like == s.inputs.end())
      operands.push_back({p.dtype_text, p.dtypes});
    else
      operands.push_back(operands[static_cast<size_t>(like - s.inputs.begin())]);
  }
  return operands;
}

// One element type of a word: f32 where it may be.
std::string OneOf(const std::string& word) {
  const auto offers = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (offers("number") || offers("real") || offers("float")) return "f32";
  return offers("bool") ? "bool" : "i32";
}

// The element types that cases have of those of an operand.
std::vector<DType> TypesOf(const Operand& operand) {
  std::vector<DType> types;
  for (int t = 0; t < kDTypeCount; ++t)
    if (Has(operand.dtypes & (kNumberTypes | Bit(DType::kBool)), static_cast<DType>(t)))
      types.push_back(static_cast<DType>(t));
  return types;
}

class CaseMaker {
 public:
  CaseMaker(const OpDef& def, Cases& cases)
      : operands_(OperandsOf(def)),
        range_(fmt::format(" in {}..{}", def.scalar->info.low, def.scalar->info.high)),
        turn_(HashText(def.info.name)),
        cases_(cases) {}

  // A case for each element type. Shapes beyond the arity are not used; a lacking one is the first.
  void Add(const AnyOp& op, const std::vector<std::string>& shapes, std::string_view suffix = {}) {
    Case c{.op = op};
    for (size_t i = 0; i < operands_.size(); ++i)
      c.in.push_back(operands_[i].word + ShapeAt(shapes, i) + range_ + std::string(suffix));
    cases_.push_back(std::move(c));
  }
  // A case of one element type. They take turns, from another one for each op: of all ops together
  // each shape meets each type.
  void AddOne(const AnyOp& op, const std::vector<std::string>& shapes) {
    ++turn_;
    Case c{.op = op};
    for (size_t i = 0; i < operands_.size(); ++i) {
      const std::vector<DType> types = TypesOf(operands_[i]);
      c.in.push_back(std::string(Name(types[turn_ % types.size()])) + ShapeAt(shapes, i) + range_);
    }
    cases_.push_back(std::move(c));
  }
  void AddBench(const AnyOp& op, std::string_view shape) {
    Case c{.op = op, .bench = true};
    for (const Operand& o : operands_)
      c.in.push_back(fmt::format("{}{}{}", OneOf(o.word), shape, range_));
    cases_.push_back(std::move(c));
  }
  void AddRefusal(const AnyOp& op, const std::vector<std::string>& shapes, std::string why) {
    Case c{.op = op, .refuse = std::move(why)};
    for (size_t i = 0; i < operands_.size(); ++i)
      c.in.push_back(OneOf(operands_[i].word) + ShapeAt(shapes, i));
    cases_.push_back(std::move(c));
  }
  size_t arity() const { return operands_.size(); }

 private:
  static const std::string& ShapeAt(const std::vector<std::string>& shapes, size_t i) {
    return i < shapes.size() ? shapes[i] : shapes[0];
  }
  std::vector<Operand> operands_;
  std::string range_;
  uint64_t turn_;
  Cases& cases_;
};

}  // namespace

Cases ElementWiseCases(const OpDef& def, std::span<const AnyOp> samples) {
  Cases cases;
  CaseMaker make(def, cases);
  for (const AnyOp& op : samples) {
    if (make.arity() == 1) {
      make.Add(op, {"[37]"}, " edges");
    } else {
      make.Add(op, {"[19,1]", "[1,19]", "[19]"}, " edges");
    }
  }
  const AnyOp& op = samples[0];
  make.Add(op, {"[1031]"});
  make.AddOne(op, {"[2,3,5]"});
  make.AddOne(op, {"[]"});
  make.AddOne(op, {"[2,0,3]"});
  make.AddOne(op, {"[1,7,1,1,9]"});
  if (make.arity() > 1) {
    make.AddOne(op, {"[2,3,4]", "[4]", "[3,1]"});
    make.AddOne(op, {"[]", "[3,5]", "[5]"});
    make.AddOne(op, {"[2,1,4,1]", "[3,1,5]", "[1]"});
    make.AddOne(op, {"[0,3]", "[1,3]", "[1]"});
    make.AddOne(op, {"[2,3,1,5]", "[1,3,1,1]", "[]"});
    make.AddRefusal(op, {"[2,3]", "[4]", "[1]"}, "do not broadcast");
  }
  make.AddBench(op, "[8,64,56,56]");
  return cases;
}

}  // namespace forge::ir
