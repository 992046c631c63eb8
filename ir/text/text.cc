// SPDX-License-Identifier: Apache-2.0
// Prints modules. text_parser.cc reads what this writes.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "base/quote.h"
#include "ir/graph/module.h"
#include "ir/op/attributes.h"
#include "ir/text/text_data.h"

namespace forge::ir {
namespace {

constexpr int64_t kMaxInline = 16;  // elements
constexpr int kMaxPrintedProvenance = 16;

std::string ProvenanceText(const Provenance& p, int depth) {
  const auto leaf = [&] {
    return NameText(p.node) + (p.kind.empty() ? "" : ": " + NameText(p.kind));
  };
  if (p.pass.empty() && p.parts.empty()) return leaf();
  std::string out = NameText(p.pass) + "(";
  if (depth < kMaxPrintedProvenance)
    for (size_t i = 0; i < p.parts.size(); ++i)
      out += (i > 0 ? ", " : "") + ProvenanceText(*p.parts[i], depth + 1);
  out += ")";
  return p.node.empty() && p.kind.empty() ? out : out + " of " + leaf();
}

std::string_view RoleText(Variable::Role role) {
  switch (role) {
    case Variable::Role::kConstant:
      return "constant";
    case Variable::Role::kParameter:
      return "parameter";
    case Variable::Role::kState:
      return "state";
  }
  return "";
}

std::string SymbolText(const Symbol& s) {
  std::string out = fmt::format("symbol {}: {}..", NameText(s.name), s.min);
  if (s.max != INT64_MAX) out += std::to_string(s.max);
  if (s.divisor != 1) out += fmt::format(" by {}", s.divisor);
  if (s.when == When::kStep) out += " at step";
  if (s.when == When::kBuild) out += " at build";
  return out;
}

bool SameBytes(const Bytes& a, const Bytes& b) {
  return a.data() == b.data() && a.size() == b.size();
}

// May the elements stand in the text? Tied storage stays a blob, so that it stays tied.
bool IsInline(const Module& m, const Variable& v) {
  if (!v.init || !v.init->begin.empty() || !v.type.is_constant() || v.type != v.init->whole ||
      v.type.encoding() != nullptr || BitWidth(v.type.dtype()) == 0)
    return false;
  const Dim n = v.type.elements();
  if (!n.is_constant() || n.constant() > kMaxInline) return false;
  const auto bytes = BytesOf(v.type.dtype(), static_cast<uint64_t>(n.constant()));
  if (bytes != v.init->bytes.size()) return false;
  return std::none_of(m.variables().begin(), m.variables().end(), [&](const auto& other) {
    return other.get() != &v && other->init && SameBytes(other->init->bytes, v.init->bytes) &&
           v.init->bytes.size() > 0;
  });
}

std::string VariableText(const Module& m, const Variable& v, std::span<const Bytes> blobs) {
  std::string out = fmt::format("{} {}: {}", RoleText(v.role), NameText(v.name), v.type.ToText());
  if (v.trainable) out += " trainable";
  if (!v.init) return out;
  if (IsInline(m, v)) return out + " = " + DataText(v.type, v.init->bytes);
  const auto at = std::find_if(blobs.begin(), blobs.end(),
                               [&](const Bytes& b) { return SameBytes(b, v.init->bytes); });
  out += fmt::format(" = blob {}", at - blobs.begin());
  if (!v.init->begin.empty())
    out += fmt::format(" of {} at [{}]", v.init->whole.ToText(), fmt::join(v.init->begin, ", "));
  return out;
}

class FunctionPrinter {
 public:
  FunctionPrinter(const Function& f, std::string indent)
      : f_(f), indent_(std::move(indent)), names_(f.value_count(), "%?") {}

  std::string Print() {
    NameValues();
    std::string header;
    for (const auto& a : f_.arguments())
      header += fmt::format("{}{}: {}", header.empty() ? "" : ", ", NameText(a.name),
                            f_.type(a.value).ToText());
    out_ = fmt::format("{}function {}({}) {{\n", indent_, NameText(f_.name()), header);
    for (const auto& r : f_.reads())
      if (f_.type(r.value) != r.variable->type)
        Line(fmt::format("read {}: {}", names_[r.value], f_.type(r.value).ToText()));
    for (const Node& n : f_.nodes()) PrintNode(n);
    for (const auto& u : f_.updates())
      Line(fmt::format("store @{} = {}", NameText(u.variable->name), names_[u.value]));
    std::string results;
    for (const auto& r : f_.results())
      results +=
          fmt::format("{}{} = {}", results.empty() ? "" : ", ", NameText(r.name), names_[r.value]);
    if (!results.empty()) Line("return " + results);
    return out_ + indent_ + "}\n";
  }

 private:
  void Line(std::string_view text) { out_ += fmt::format("{}  {}\n", indent_, text); }

  // Values go by the model's own names where those are unique, else by numbers in order.
  void NameValues() {
    absl::flat_hash_set<std::string_view> taken;
    for (const auto& a : f_.arguments()) {
      taken.insert(a.name);
      names_[a.value] = "%" + NameText(a.name);
    }
    for (const auto& r : f_.reads()) names_[r.value] = "@" + NameText(r.variable->name);
    int next = 0;
    for (const Node& n : f_.nodes()) {
      for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) {
        const std::string_view name = f_.NameOf(v);
        const bool own = !name.empty() && taken.insert(name).second;
        names_[v] = own ? "%" + NameText(name) : fmt::format("%{}", next++);
      }
    }
  }

  // A number with the name that another value has too.
  std::string ResultText(uint32_t v) const {
    const std::string_view name = f_.NameOf(v);
    const bool own = name.empty() || names_[v] == "%" + NameText(name);
    return own ? names_[v] : names_[v] + " " + Quoted(name);
  }

  std::string AttributesText(const Node& n) const {
    if (n.op.def().make == nullptr) return {};
    const std::shared_ptr<void> defaults = n.op.def().make(nullptr);
    std::string out;
    for (size_t i = 0; i < n.op.def().fields.size(); ++i) {
      const Field& f = n.op.def().fields[i];
      const auto runtime = std::find_if(n.runtime_attributes.begin(), n.runtime_attributes.end(),
                                        [&](const RuntimeAttribute& l) { return l.field == i; });
      std::string value;
      if (runtime != n.runtime_attributes.end())
        value = names_[runtime->value];
      else if (!FieldEqual(f, n.op.self(), defaults.get()))
        value = FieldText(f, n.op.self());
      if (!value.empty()) out += fmt::format("{}{} = {}", out.empty() ? " {" : ", ", f.name, value);
    }
    return out.empty() ? out : out + "}";
  }

  void PrintNode(const Node& n) {
    std::string line, types;
    for (uint32_t v = n.first_out; v < n.first_out + n.outs; ++v) {
      line += (line.empty() ? "" : ", ") + ResultText(v);
      types += (types.empty() ? " : " : ", ") + f_.type(v).ToText();
    }
    std::string operands;
    for (uint32_t v : n.in)
      operands += (operands.empty() ? "" : ", ") + (v != kAbsent ? names_[v] : std::string("_"));
    line += fmt::format("{}{}({}){}{}", line.empty() ? "" : " = ", n.op.name(), operands,
                        AttributesText(n), types);
    if (n.from != nullptr) line += "  from " + ProvenanceText(*n.from, 0);
    Line(line);
  }

  const Function& f_;
  const std::string indent_;
  std::vector<std::string> names_;
  std::string out_;
};

}  // namespace

std::vector<Bytes> BlobsOf(const Module& m) {
  std::vector<Bytes> out;
  absl::flat_hash_set<std::pair<const uint8_t*, uint64_t>> seen;
  for (const auto& v : m.variables())
    if (v->init && !IsInline(m, *v) &&
        seen.insert({v->init->bytes.data(), v->init->bytes.size()}).second)
      out.push_back(v->init->bytes);
  return out;
}

std::string ToText(const Function& f) { return FunctionPrinter(f, "").Print(); }

std::string ToText(const Module& m) {
  std::string out = "module {\n";
  for (const auto& [key, value] : m.metadata)
    out += fmt::format("  metadata {} = {}\n", NameText(key), Quoted(value));
  for (const SymbolRef& s : m.symbols()) out += "  " + SymbolText(*s) + "\n";
  const std::vector<Bytes> blobs = BlobsOf(m);
  for (const auto& v : m.variables()) out += "  " + VariableText(m, *v, blobs) + "\n";
  for (const auto& f : m.functions()) {
    if (out.size() > std::string_view("module {\n").size()) out += "\n";
    out += FunctionPrinter(*f, "  ").Print();
  }
  return out + "}\n";
}

}  // namespace forge::ir
