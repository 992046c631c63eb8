// SPDX-License-Identifier: Apache-2.0
// Reads modules as text.cc prints them. The text may be anything: every error has its place.
#include "absl/container/flat_hash_map.h"
#include "ir/graph/module.h"
#include "ir/op/attributes.h"
#include "ir/text/lexer.h"
#include "ir/text/text_data.h"
#include "ir/text/text_values.h"

namespace forge::ir {
namespace {

constexpr int kMaxBodyDepth = 64;  // bodies within bodies
constexpr int kMaxProvenanceDepth = 32;

class ModuleParser {
 public:
  ModuleParser(std::string_view text, std::span<const Bytes> blobs) : lexer_(text), blobs_(blobs) {}

  absl::StatusOr<std::unique_ptr<Module>> Parse();
  Module& module() { return *module_; }
  // Parses the function unless that was done; `use` is where it is wanted.
  absl::StatusOr<Function*> Define(const std::string& name, const Token& use);
  ProvenanceRef Intern(Provenance leaf);

 private:
  enum class Progress : uint8_t { kDeclared, kOpen, kDone };
  struct Declared {
    Lexer at;
    Progress progress = Progress::kDeclared;
  };

  absl::Status ParseItem();
  absl::Status ParseMetadata();
  absl::Status ParseSymbol();
  absl::Status ParseVariable(Variable::Role role);
  absl::StatusOr<Variable::Storage> ParseStorage(const Type& type);
  absl::Status DeclareFunction();

  Lexer lexer_;
  std::span<const Bytes> blobs_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  absl::flat_hash_map<std::string, Declared> functions_;
  absl::flat_hash_map<std::pair<std::string, std::string>, ProvenanceRef> leaves_;
  int depth_ = 0;
};

// One function's text, from the parenthesis of its arguments.
class FunctionParser {
 public:
  FunctionParser(ModuleParser& parent, Lexer at, Function& f)
      : parent_(parent), lexer_(at), values_parser_(lexer_, parent.module()), f_(f) {}

  absl::Status Parse();

 private:
  struct Target {
    Token at;
    std::string key, name;
  };
  struct NodeText {
    Token at;
    std::vector<Target> targets;
    Values in;
    std::vector<Function::RuntimeField> runtime_attributes;
    ProvenanceRef from;
    std::vector<std::pair<Token, Type>> types;
  };

  absl::Status ParseArguments();
  absl::Status ParseStatement();
  absl::Status ParseReturn();
  absl::Status ParseStore();
  absl::Status ParseRead();
  absl::Status ParseNode();
  absl::StatusOr<std::vector<Target>> ParseTargets();
  absl::StatusOr<Values> ParseOperands();
  absl::StatusOr<AnyOp> ParseOp(NodeText& node);
  absl::Status ParseAttributes(const OpDef& def, void* self, NodeText& node);
  absl::Status ParseTypes(NodeText& node);
  absl::Status AddNode(const AnyOp& op, const NodeText& node);
  absl::StatusOr<ProvenanceRef> ParseProvenance(int depth);
  absl::StatusOr<Variable*> ParseVariable();
  absl::StatusOr<Value> ParseValue();
  absl::StatusOr<std::string> ParseKey();
  absl::Status StatusAt(const Token& at) const {
    return f_.status().ok() ? absl::OkStatus() : Lexer::ErrorAt(at, Message(f_.status()));
  }

  ModuleParser& parent_;
  Lexer lexer_;
  ValueParser values_parser_;
  Function& f_;
  absl::flat_hash_map<std::string, Value> values_;  // "#3" for %3, "=x" for %x
};

// ---- modules ------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Module>> ModuleParser::Parse() {
  FORGE_RETURN_IF_ERROR(lexer_.Expect("module"));
  FORGE_RETURN_IF_ERROR(lexer_.Expect("{"));
  while (!lexer_.TakeIf("}")) FORGE_RETURN_IF_ERROR(ParseItem());
  if (lexer_.next().kind != Token::kEnd) return lexer_.Expected("the end");
  for (const auto& f : module_->functions())
    if (auto defined = Define(f->name(), Token()); !defined.ok()) return defined.status();
  if (absl::Status s = Verify(*module_); !s.ok()) return InvalidArgument("{}", Message(s));
  return std::move(module_);
}

absl::Status ModuleParser::ParseItem() {
  if (lexer_.TakeIf("metadata")) return ParseMetadata();
  if (lexer_.TakeIf("symbol")) return ParseSymbol();
  if (lexer_.TakeIf("constant")) return ParseVariable(Variable::Role::kConstant);
  if (lexer_.TakeIf("parameter")) return ParseVariable(Variable::Role::kParameter);
  if (lexer_.TakeIf("state")) return ParseVariable(Variable::Role::kState);
  if (lexer_.TakeIf("function")) return DeclareFunction();
  return lexer_.Expected("metadata, symbol, constant, parameter, state or function");
}

absl::Status ModuleParser::ParseMetadata() {
  FORGE_ASSIGN_OR_RETURN(std::string key, lexer_.TakeName("a key"));
  FORGE_RETURN_IF_ERROR(lexer_.Expect("="));
  FORGE_ASSIGN_OR_RETURN(std::string value, lexer_.TakeString("a string"));
  module_->metadata.emplace_back(std::move(key), std::move(value));
  return absl::OkStatus();
}

absl::Status ModuleParser::ParseSymbol() {
  const Token at = lexer_.next();
  auto s = std::make_shared<Symbol>();
  FORGE_ASSIGN_OR_RETURN(s->name, lexer_.TakeName("the symbol's name"));
  if (module_->FindSymbol(s->name) != nullptr)
    return Lexer::ErrorAt(at, fmt::format("the symbol '{}' is known already", s->name));
  FORGE_RETURN_IF_ERROR(lexer_.Expect(":"));
  FORGE_ASSIGN_OR_RETURN(s->min, lexer_.TakeInt());
  FORGE_RETURN_IF_ERROR(lexer_.Expect(".."));
  if (lexer_.next().kind == Token::kNumber || lexer_.At("-")) {
    FORGE_ASSIGN_OR_RETURN(s->max, lexer_.TakeInt());
  }
  if (lexer_.TakeIf("by")) {
    FORGE_ASSIGN_OR_RETURN(s->divisor, lexer_.TakeInt());
  }
  if (lexer_.TakeIf("at")) {
    if (!lexer_.At("step") && !lexer_.At("build")) return lexer_.Expected("'step' or 'build'");
    s->when = lexer_.Take().text == "step" ? When::kStep : When::kBuild;
  }
  if (s->name.empty() || s->min > s->max || s->divisor < 1)
    return Lexer::ErrorAt(at, "the symbol has no values");
  module_->AddSymbol(std::move(s));
  return absl::OkStatus();
}

absl::Status ModuleParser::ParseVariable(Variable::Role role) {
  const Token at = lexer_.next();
  Variable v;
  v.role = role;
  FORGE_ASSIGN_OR_RETURN(v.name, lexer_.TakeName("the variable's name"));
  if (v.name.empty() || module_->FindVariable(v.name) != nullptr)
    return Lexer::ErrorAt(at, fmt::format("the variable name '{}' is empty or used twice", v.name));
  FORGE_RETURN_IF_ERROR(lexer_.Expect(":"));
  FORGE_ASSIGN_OR_RETURN(v.type, ValueParser(lexer_, *module_).ParseType());
  v.trainable = lexer_.TakeIf("trainable");
  if (lexer_.TakeIf("=")) {
    FORGE_ASSIGN_OR_RETURN(v.init, ParseStorage(v.type));
  }
  module_->AddVariable(std::move(v));
  return absl::OkStatus();
}

absl::StatusOr<Variable::Storage> ModuleParser::ParseStorage(const Type& type) {
  Variable::Storage storage{.bytes = {}, .whole = type, .begin = {}};
  if (!lexer_.TakeIf("blob")) {
    FORGE_ASSIGN_OR_RETURN(storage.bytes, ParseData(lexer_, type));
    return storage;
  }
  const Token at = lexer_.next();
  FORGE_ASSIGN_OR_RETURN(const int64_t index, lexer_.TakeInt());
  if (index < 0 || static_cast<uint64_t>(index) >= blobs_.size())
    return Lexer::ErrorAt(at, fmt::format("blob {} of {}", index, blobs_.size()));
  storage.bytes = blobs_[static_cast<size_t>(index)];
  if (!lexer_.TakeIf("of")) return storage;
  FORGE_ASSIGN_OR_RETURN(storage.whole, ValueParser(lexer_, *module_).ParseType());
  FORGE_RETURN_IF_ERROR(lexer_.Expect("at"));
  FORGE_ASSIGN_OR_RETURN(const Dims begin, ValueParser(lexer_, *module_).ParseDims());
  if (begin.empty() || !AllConstant(begin)) return lexer_.Error("a box begins at numbers");
  storage.begin = Constants(begin);
  return storage;
}

// Remembers where the function stands and skips it: bodies may follow those who use them.
absl::Status ModuleParser::DeclareFunction() {
  const Token at = lexer_.next();
  FORGE_ASSIGN_OR_RETURN(std::string name, lexer_.TakeName("the function's name"));
  if (name.empty() || module_->Find(name) != nullptr)
    return Lexer::ErrorAt(at, fmt::format("the function name '{}' is empty or used twice", name));
  module_->AddFunction(name);
  functions_.emplace(std::move(name), Declared{lexer_});
  while (!lexer_.At("{")) {
    if (lexer_.next().kind == Token::kEnd) return lexer_.Expected("'{'");
    lexer_.Take();
  }
  int depth = 0;
  do {
    if (lexer_.next().kind == Token::kEnd) return lexer_.Expected("'}'");
    depth += lexer_.At("{") ? 1 : lexer_.At("}") ? -1 : 0;
    lexer_.Take();
  } while (depth > 0);
  return absl::OkStatus();
}

absl::StatusOr<Function*> ModuleParser::Define(const std::string& name, const Token& use) {
  const auto at = functions_.find(name);
  if (at == functions_.end()) return Lexer::ErrorAt(use, fmt::format("no function '{}'", name));
  Function* f = module_->Find(name);
  if (at->second.progress == Progress::kDone) return f;
  if (at->second.progress == Progress::kOpen || depth_ >= kMaxBodyDepth)
    return Lexer::ErrorAt(use, fmt::format("function '{}' is within itself, or too deep", name));
  at->second.progress = Progress::kOpen;
  ++depth_;
  FORGE_RETURN_IF_ERROR(FunctionParser(*this, at->second.at, *f).Parse());
  --depth_;
  functions_.at(name).progress = Progress::kDone;
  return f;
}

ProvenanceRef ModuleParser::Intern(Provenance leaf) {
  ProvenanceRef& known = leaves_[{leaf.node, leaf.kind}];
  if (known == nullptr) known = std::make_shared<Provenance>(std::move(leaf));
  return known;
}

// ---- functions ----------------------------------------------------------------------------------

absl::Status FunctionParser::Parse() {
  FORGE_RETURN_IF_ERROR(ParseArguments());
  FORGE_RETURN_IF_ERROR(lexer_.Expect("{"));
  while (!lexer_.TakeIf("}")) FORGE_RETURN_IF_ERROR(ParseStatement());
  return absl::OkStatus();
}

absl::Status FunctionParser::ParseArguments() {
  FORGE_RETURN_IF_ERROR(lexer_.Expect("("));
  while (!lexer_.TakeIf(")")) {
    if (!values_.empty()) FORGE_RETURN_IF_ERROR(lexer_.Expect(","));
    const Token at = lexer_.next();
    FORGE_ASSIGN_OR_RETURN(const std::string name, lexer_.TakeName("an argument's name"));
    FORGE_RETURN_IF_ERROR(lexer_.Expect(":"));
    FORGE_ASSIGN_OR_RETURN(Type type, values_parser_.ParseType());
    values_["=" + name] = f_.Argument(name, std::move(type));
    FORGE_RETURN_IF_ERROR(StatusAt(at));
  }
  return absl::OkStatus();
}

absl::Status FunctionParser::ParseStatement() {
  if (lexer_.TakeIf("return")) return ParseReturn();
  if (lexer_.TakeIf("store")) return ParseStore();
  if (lexer_.TakeIf("read")) return ParseRead();
  return ParseNode();
}

absl::Status FunctionParser::ParseReturn() {
  do {
    const Token at = lexer_.next();
    FORGE_ASSIGN_OR_RETURN(std::string name, lexer_.TakeName("a result's name"));
    FORGE_RETURN_IF_ERROR(lexer_.Expect("="));
    FORGE_ASSIGN_OR_RETURN(const Value value, ParseValue());
    f_.Return(std::move(name), value);
    FORGE_RETURN_IF_ERROR(StatusAt(at));
  } while (lexer_.TakeIf(","));
  return absl::OkStatus();
}

absl::Status FunctionParser::ParseStore() {
  const Token at = lexer_.next();
  FORGE_ASSIGN_OR_RETURN(Variable* const v, ParseVariable());
  FORGE_RETURN_IF_ERROR(lexer_.Expect("="));
  FORGE_ASSIGN_OR_RETURN(const Value value, ParseValue());
  f_.Store(v, value);
  return StatusAt(at);
}

absl::Status FunctionParser::ParseRead() {
  FORGE_ASSIGN_OR_RETURN(Variable* const v, ParseVariable());
  FORGE_RETURN_IF_ERROR(lexer_.Expect(":"));
  FORGE_ASSIGN_OR_RETURN(Type type, values_parser_.ParseType());
  f_.ReadAs(v, std::move(type));
  return absl::OkStatus();
}

absl::Status FunctionParser::ParseNode() {
  NodeText node;
  FORGE_ASSIGN_OR_RETURN(node.targets, ParseTargets());
  FORGE_ASSIGN_OR_RETURN(const AnyOp op, ParseOp(node));
  FORGE_RETURN_IF_ERROR(ParseTypes(node));
  if (lexer_.TakeIf("from")) {
    FORGE_ASSIGN_OR_RETURN(node.from, ParseProvenance(0));
  }
  return AddNode(op, node);
}

absl::StatusOr<std::vector<FunctionParser::Target>> FunctionParser::ParseTargets() {
  std::vector<Target> out;
  if (!lexer_.At("%")) return out;
  do {
    Target t{lexer_.next(), {}, {}};
    FORGE_RETURN_IF_ERROR(lexer_.Expect("%"));
    FORGE_ASSIGN_OR_RETURN(t.key, ParseKey());
    if (t.key[0] == '=') t.name = t.key.substr(1);
    if (lexer_.next().kind == Token::kString) {
      FORGE_ASSIGN_OR_RETURN(t.name, lexer_.TakeString("a name"));
    }
    out.push_back(std::move(t));
  } while (lexer_.TakeIf(","));
  FORGE_RETURN_IF_ERROR(lexer_.Expect("="));
  return out;
}

absl::StatusOr<AnyOp> FunctionParser::ParseOp(NodeText& node) {
  node.at = lexer_.next();
  if (node.at.kind != Token::kWord) return lexer_.Expected("an op");
  const OpDef* def = FindOp(lexer_.Take().text);
  if (def == nullptr) return Lexer::ErrorAt(node.at, fmt::format("'{}' is no op", node.at.text));
  FORGE_ASSIGN_OR_RETURN(node.in, ParseOperands());
  std::shared_ptr<void> self = def->make != nullptr ? def->make(nullptr) : nullptr;
  if (lexer_.TakeIf("{")) FORGE_RETURN_IF_ERROR(ParseAttributes(*def, self.get(), node));
  return AnyOp(*def, std::move(self));
}

absl::StatusOr<Values> FunctionParser::ParseOperands() {
  FORGE_RETURN_IF_ERROR(lexer_.Expect("("));
  Values out;
  while (!lexer_.TakeIf(")")) {
    if (!out.empty()) FORGE_RETURN_IF_ERROR(lexer_.Expect(","));
    if (lexer_.TakeIf("_")) {
      out.emplace_back();
      continue;
    }
    FORGE_ASSIGN_OR_RETURN(const Value v, ParseValue());
    out.push_back(v);
  }
  return out;
}

absl::Status FunctionParser::ParseAttributes(const OpDef& def, void* self, NodeText& node) {
  Token use;
  const auto body = [&](const std::string& f) { return parent_.Define(f, use); };
  const auto runtime = [&](const Field& field) -> absl::StatusOr<bool> {
    use = lexer_.next();
    if (!lexer_.At("%") && (!lexer_.At("@") || field.kind == FieldKind::kFunction)) return false;
    FORGE_ASSIGN_OR_RETURN(const Value value, ParseValue());
    node.runtime_attributes.push_back({field.name, value});
    return true;
  };
  return values_parser_.ParseAttributes(def, self, "}", body, runtime);
}

absl::Status FunctionParser::ParseTypes(NodeText& node) {
  if (!lexer_.TakeIf(":")) return absl::OkStatus();
  do {
    const Token at = lexer_.next();
    FORGE_ASSIGN_OR_RETURN(Type type, values_parser_.ParseType());
    node.types.emplace_back(at, std::move(type));
  } while (lexer_.TakeIf(","));
  return absl::OkStatus();
}

absl::Status FunctionParser::AddNode(const AnyOp& op, const NodeText& node) {
  const Function::Scope scope(f_, node.from);
  const Values out = f_.AddRuntimeValued(op, node.in, node.runtime_attributes);
  FORGE_RETURN_IF_ERROR(StatusAt(node.at));
  if (out.size() != node.targets.size())
    return Lexer::ErrorAt(node.at, fmt::format("{} has {} results", op.name(), out.size()));
  if (!node.types.empty() && node.types.size() != out.size())
    return Lexer::ErrorAt(node.types[0].first,
                          fmt::format("{} has {} results", op.name(), out.size()));
  for (size_t i = 0; i < node.types.size(); ++i)
    if (node.types[i].second != out[i].type())
      return Lexer::ErrorAt(node.types[i].first,
                            fmt::format("the result is {}", out[i].type().ToText()));
  for (size_t i = 0; i < out.size(); ++i) {
    const Target& t = node.targets[i];
    if (!values_.try_emplace(t.key, out[i]).second)
      return Lexer::ErrorAt(t.at, fmt::format("%{} is known already", t.key.substr(1)));
    f_.SetName(out[i], t.name);
  }
  return absl::OkStatus();
}

// "Conv_0: Conv", "fuse(Conv_0: Conv, Relu_1: Relu)", "fold() of Add_3: Add"
absl::StatusOr<ProvenanceRef> FunctionParser::ParseProvenance(int depth) {
  if (depth > kMaxProvenanceDepth) return lexer_.Error("nested too deeply");
  Provenance p;
  FORGE_ASSIGN_OR_RETURN(p.node, lexer_.TakeName("a node's name"));
  const bool made = lexer_.TakeIf("(");
  if (made) {
    p.pass = std::exchange(p.node, {});
    while (!lexer_.TakeIf(")")) {
      if (!p.parts.empty()) FORGE_RETURN_IF_ERROR(lexer_.Expect(","));
      FORGE_ASSIGN_OR_RETURN(ProvenanceRef part, ParseProvenance(depth + 1));
      p.parts.push_back(std::move(part));
    }
    if (!lexer_.TakeIf("of")) return std::make_shared<Provenance>(std::move(p));
    FORGE_ASSIGN_OR_RETURN(p.node, lexer_.TakeName("a node's name"));
  }
  if (lexer_.TakeIf(":")) {
    FORGE_ASSIGN_OR_RETURN(p.kind, lexer_.TakeName("the kind of the node"));
  }
  if (made) return std::make_shared<Provenance>(std::move(p));
  return parent_.Intern(std::move(p));
}

absl::StatusOr<Variable*> FunctionParser::ParseVariable() {
  FORGE_RETURN_IF_ERROR(lexer_.Expect("@"));
  const Token at = lexer_.next();
  FORGE_ASSIGN_OR_RETURN(const std::string name, lexer_.TakeName("a variable's name"));
  if (Variable* v = parent_.module().FindVariable(name)) return v;
  return Lexer::ErrorAt(at, fmt::format("no variable '{}'", name));
}

absl::StatusOr<Value> FunctionParser::ParseValue() {
  if (lexer_.At("@")) {
    FORGE_ASSIGN_OR_RETURN(Variable* const v, ParseVariable());
    return f_.Read(v);
  }
  const Token at = lexer_.next();
  FORGE_RETURN_IF_ERROR(lexer_.Expect("%"));
  FORGE_ASSIGN_OR_RETURN(const std::string key, ParseKey());
  const auto known = values_.find(key);
  if (known == values_.end())
    return Lexer::ErrorAt(at, fmt::format("%{} is not known here", key.substr(1)));
  return known->second;
}

absl::StatusOr<std::string> FunctionParser::ParseKey() {
  if (lexer_.next().kind == Token::kNumber) return "#" + std::string(lexer_.Take().text);
  FORGE_ASSIGN_OR_RETURN(const std::string name, lexer_.TakeName("a value's name"));
  return "=" + name;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> FromText(std::string_view text,
                                                 std::span<const Bytes> blobs) {
  return ModuleParser(text, blobs).Parse();
}

}  // namespace forge::ir
