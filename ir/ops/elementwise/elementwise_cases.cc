// SPDX-License-Identifier: Apache-2.0
// The cases of element-wise ops, made from their signature and range.
#include <fmt/format.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "ir/op/signature.h"
#include "ir/ops/elementwise/elementwise_rules.h"

namespace forge::ir {
namespace {

// The dtype word of each operand: "a: number; b: =a" gives number, number.
std::vector<std::string> Words(std::string_view signature) {
  std::vector<std::string> names, words;
  for (absl::string_view operand :
       absl::StrSplit(absl::string_view(signature.data(), signature.size()), ';')) {
    const std::vector<std::string> parts = absl::StrSplit(operand, ':');
    std::string word(absl::StripAsciiWhitespace(parts[1]));
    for (size_t i = 0; i < names.size(); ++i)
      if (word == "=" + names[i]) word = words[i];
    names.emplace_back(absl::StripAsciiWhitespace(parts[0]));
    words.push_back(std::move(word));
  }
  return words;
}

// One element type of a word: f32 where it may be.
std::string OneOf(const std::string& word) {
  const auto offers = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (offers("number") || offers("real") || offers("float")) return "f32";
  return offers("bool") ? "bool" : "i32";
}

// The element types that cases of a word have.
std::vector<DType> TypesOf(const std::string& word) {
  const absl::StatusOr<Signature> s = ParseSignature("x: " + word, "");
  FORGE_CHECK(s.ok());
  std::vector<DType> types;
  for (int t = 0; t < kDTypeCount; ++t)
    if (Has(s->inputs[0].dtypes & (kNumberTypes | Bit(DType::kBool)), static_cast<DType>(t)))
      types.push_back(static_cast<DType>(t));
  return types;
}

class CaseMaker {
 public:
  CaseMaker(const OpDef& def, Cases& cases)
      : words_(Words(def.scalar->info.inputs)),
        range_(fmt::format(" in {}..{}", def.scalar->info.low, def.scalar->info.high)),
        turn_(HashText(def.info.name)),
        cases_(cases) {}

  // A case for each element type. Shapes beyond the arity are not used; a lacking one is the first.
  void Add(const AnyOp& op, const std::vector<std::string>& shapes, std::string_view suffix = {}) {
    Case c{.op = op};
    for (size_t i = 0; i < words_.size(); ++i)
      c.in.push_back(words_[i] + ShapeAt(shapes, i) + range_ + std::string(suffix));
    cases_.push_back(std::move(c));
  }
  // A case of one element type. They take turns, from another one for each op: of all ops together
  // each shape meets each type.
  void AddOne(const AnyOp& op, const std::vector<std::string>& shapes) {
    ++turn_;
    Case c{.op = op};
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::vector<DType> types = TypesOf(words_[i]);
      c.in.push_back(std::string(Name(types[turn_ % types.size()])) + ShapeAt(shapes, i) + range_);
    }
    cases_.push_back(std::move(c));
  }
  void AddBench(const AnyOp& op, std::string_view shape) {
    Case c{.op = op, .bench = true};
    for (const std::string& word : words_)
      c.in.push_back(fmt::format("{}{}{}", OneOf(word), shape, range_));
    cases_.push_back(std::move(c));
  }
  void AddRefusal(const AnyOp& op, const std::vector<std::string>& shapes, std::string why) {
    Case c{.op = op, .refuse = std::move(why)};
    for (size_t i = 0; i < words_.size(); ++i)
      c.in.push_back(OneOf(words_[i]) + ShapeAt(shapes, i));
    cases_.push_back(std::move(c));
  }
  size_t arity() const { return words_.size(); }

 private:
  static const std::string& ShapeAt(const std::vector<std::string>& shapes, size_t i) {
    return i < shapes.size() ? shapes[i] : shapes[0];
  }
  std::vector<std::string> words_;
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
