// SPDX-License-Identifier: Apache-2.0
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "formats/model_bin/model_bin_graph.h"
#include "ir/op/attributes.h"

namespace forge::formats {
namespace {

constexpr size_t kMaxText = size_t{1} << 27;

template <class T>
using Ref = flatbuffers::Offset<T>;
template <class T>
using Refs = flatbuffers::Offset<flatbuffers::Vector<Ref<T>>>;

std::vector<int64_t> NumberInts(const Number& v) {
  std::vector<int64_t> out = {static_cast<int64_t>(v.kind()), static_cast<int64_t>(v.bits())};
  if (v.is_complex()) out.push_back(static_cast<int64_t>(v.imaginary_bits()));
  return out;
}

class GraphEncoder {
 public:
  GraphEncoder(const ir::Module& module, BlobTable& blobs) : module_(module), blobs_(blobs) {}
  absl::StatusOr<flatbuffers::DetachedBuffer> Run();

 private:
  template <class... A>
  void Fail(fmt::format_string<A...> format, A&&... a) {
    if (status_.ok()) status_ = InvalidArgument(format, std::forward<A>(a)...);
  }
  // The builder counts in 31 bits and does not look.
  void CheckSize() {
    constexpr size_t kMaxGraph = size_t{1} << 31, kMargin = size_t{1} << 28;
    if (b_.GetSize() > kMaxGraph - kMargin) Fail("the graph exceeds {} bytes", b_.GetSize());
  }
  // Empty strings and lists are left out.
  Ref<flatbuffers::String> Text(std::string_view text) {
    return text.empty() ? 0 : b_.CreateSharedString(text.data(), text.size());
  }
  Ref<flatbuffers::String> Name(std::string_view text) {  // of a required field
    return b_.CreateSharedString(text.data(), text.size());
  }
  template <class T>
  Ref<flatbuffers::Vector<T>> List(const std::vector<T>& list) {
    return list.empty() ? 0 : b_.CreateVector(list);
  }
  template <class T>
  Ref<flatbuffers::Vector<const T*>> Structs(std::span<const T> list) {
    return list.empty() ? 0 : b_.CreateVectorOfStructs(list.data(), list.size());
  }

  void AddTokens(const ir::Dim& d, std::vector<fb::DimToken>& out);
  Ref<fb::Dim> Encode(const ir::Dim& d);
  Refs<fb::Dim> Encode(const ir::Dims& dims);
  uint32_t TypeId(const ir::Type& type);
  uint32_t VariableId(const ir::Variable* v);
  uint32_t FunctionId(const ir::Function* f);
  uint32_t ProvenanceId(const ir::ProvenanceRef& p);
  Ref<fb::Attribute> Encode(const Field& field, const void* record);
  Ref<fb::Node> Encode(const ir::Node& node);
  Ref<fb::Variable> Encode(const ir::Variable& v);
  Ref<fb::Function> Encode(const ir::Function& f);
  Refs<fb::ValueName> ValueNames(const ir::Function& f);

  const ir::Module& module_;
  BlobTable& blobs_;
  flatbuffers::FlatBufferBuilder b_{1 << 16};
  absl::flat_hash_map<const ir::Symbol*, int64_t> symbols_;
  absl::flat_hash_map<const ir::Variable*, uint32_t> variables_;
  absl::flat_hash_map<const ir::Function*, uint32_t> functions_;
  absl::flat_hash_map<std::string, uint32_t> type_ids_;  // by text, which names symbols
  std::vector<Ref<fb::Type>> types_;
  absl::flat_hash_map<const ir::Provenance*, uint32_t> provenance_ids_;
  std::vector<Ref<fb::Provenance>> provenances_;
  absl::Status status_;
};

void GraphEncoder::AddTokens(const ir::Dim& d, std::vector<fb::DimToken>& out) {
  const ir::Dim::Part part = d.part();
  for (const ir::Dim& operand : part.operands) AddTokens(operand, out);
  int64_t value = part.constant;
  if (part.op == ir::Dim::Op::kSymbol) {
    const auto at = symbols_.find(part.symbol.get());
    if (at == symbols_.end())
      return Fail("symbol '{}' belongs to another module", part.symbol->name);
    value = at->second;
  } else if (!part.operands.empty()) {
    value = static_cast<int64_t>(part.operands.size());
  }
  out.emplace_back(value, static_cast<fb::DimOp>(part.op));
}

Ref<fb::Dim> GraphEncoder::Encode(const ir::Dim& d) {
  if (d.is_constant()) return fb::CreateDim(b_, d.constant());
  std::vector<fb::DimToken> tokens;
  AddTokens(d, tokens);
  if (tokens.size() > kMaxDimTokens)
    Fail("a dimension has {} tokens, too many to be stored", tokens.size());
  return fb::CreateDim(b_, 0, Structs<fb::DimToken>(tokens));
}

Refs<fb::Dim> GraphEncoder::Encode(const ir::Dims& dims) {
  std::vector<Ref<fb::Dim>> out;
  for (const ir::Dim& d : dims) out.push_back(Encode(d));
  return List(out);
}

uint32_t GraphEncoder::TypeId(const ir::Type& type) {
  const bool nested =
      type.kind() == ir::Type::Kind::kSequence || type.kind() == ir::Type::Kind::kOptional;
  std::string text = type.ToText();
  if (const auto at = type_ids_.find(text); at != type_ids_.end()) return at->second;
  const uint32_t element = nested ? TypeId(type.element()) : 0;
  const bool typed = type && !nested && type.kind() != ir::Type::Kind::kUnknown;
  const auto dtype = !typed ? Ref<flatbuffers::String>() : Text(forge::Name(type.dtype()));
  const auto shape = type.is_tensor() ? Encode(type.shape()) : Refs<fb::Dim>();
  const auto encoding = type.is_tensor() && type.encoding() != nullptr
                            ? Text(type.encoding()->name())
                            : Ref<flatbuffers::String>();
  types_.push_back(
      fb::CreateType(b_, static_cast<fb::TypeKind>(type.kind()), dtype, shape, encoding, element));
  const auto id = static_cast<uint32_t>(types_.size() - 1);
  type_ids_.emplace(std::move(text), id);
  return id;
}

uint32_t GraphEncoder::VariableId(const ir::Variable* v) {
  const auto at = variables_.find(v);
  if (at != variables_.end()) return at->second;
  Fail("variable '{}' belongs to another module", v->name);
  return 0;
}

uint32_t GraphEncoder::FunctionId(const ir::Function* f) {
  const auto at = functions_.find(f);
  if (at != functions_.end()) return at->second;
  Fail("function '{}' belongs to another module", f->name());
  return 0;
}

uint32_t GraphEncoder::ProvenanceId(const ir::ProvenanceRef& p) {
  if (p == nullptr) return kNoProvenance;
  if (const auto at = provenance_ids_.find(p.get()); at != provenance_ids_.end()) return at->second;
  std::vector<uint32_t> parts;
  for (const ir::ProvenanceRef& part : p->parts) parts.push_back(ProvenanceId(part));
  const auto node = Text(p->node), kind = Text(p->kind), pass = Text(p->pass);
  provenances_.push_back(fb::CreateProvenance(b_, node, kind, pass, List(parts)));
  const auto id = static_cast<uint32_t>(provenances_.size() - 1);
  provenance_ids_.emplace(p.get(), id);
  return id;
}

Ref<fb::Attribute> GraphEncoder::Encode(const Field& field, const void* record) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::string text;
  ir::Dims dims;
  const auto put = [&]<class T>(const T& v) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t>)
      ints = {static_cast<int64_t>(v)};
    else if constexpr (std::is_same_v<T, double>)
      floats = {v};
    else if constexpr (std::is_same_v<T, Number>)
      ints = NumberInts(v);
    else if constexpr (std::is_same_v<T, std::string>)
      text = v;
    else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
      ints = v;
    else if constexpr (std::is_same_v<T, std::vector<double>>)
      floats = v;
    else if constexpr (std::is_same_v<T, DType>)
      text = forge::Name(v);
    else if constexpr (std::is_same_v<T, ir::Dim>)
      dims = {v};
    else if constexpr (std::is_same_v<T, ir::Dims>)
      dims = v;
    else if constexpr (std::is_same_v<T, ir::Type>)
      ints = {TypeId(v)};
    else if (v != nullptr)
      ints = {FunctionId(v)};
  };
  std::visit(put, ir::GetAttribute(field, record));
  const auto name = Name(field.name);
  const auto text_ref = Text(text);
  const auto dims_ref = Encode(dims);
  return fb::CreateAttribute(b_, name, static_cast<fb::FieldKind>(field.kind), List(ints),
                             List(floats), text_ref, dims_ref);
}

Ref<fb::Node> GraphEncoder::Encode(const ir::Node& node) {
  const Fields fields = node.op.def().fields;
  std::vector<Ref<fb::Attribute>> attributes;
  for (const Field& field : fields) attributes.push_back(Encode(field, node.op.self()));
  std::vector<Ref<fb::Late>> runtime;
  for (const ir::RuntimeAttribute& l : node.runtime_attributes)
    runtime.push_back(fb::CreateLate(b_, Name(fields[l.field].name), l.value));
  const auto op = Name(node.op.name());
  const auto operands = List(node.in);
  return fb::CreateNode(b_, op, operands, List(attributes), List(runtime), node.first_out,
                        node.outs, ProvenanceId(node.from));
}

Ref<fb::Variable> GraphEncoder::Encode(const ir::Variable& v) {
  Ref<fb::Storage> storage;
  if (v.init) {
    const uint32_t blob = blobs_.Add(v.init->bytes);
    const uint32_t whole = TypeId(v.init->whole);
    storage = fb::CreateStorage(b_, blob, whole, List(v.init->begin));
  }
  const uint32_t type = TypeId(v.type);
  return fb::CreateVariable(b_, Name(v.name), static_cast<fb::Role>(v.role), type, v.trainable,
                            storage);
}

Refs<fb::ValueName> GraphEncoder::ValueNames(const ir::Function& f) {
  std::vector<Ref<fb::ValueName>> out;
  for (uint32_t value = 0; value < f.value_count(); ++value)
    if (const std::string_view name = f.NameOf(value); !name.empty())
      out.push_back(fb::CreateValueName(b_, value, Name(name)));
  return List(out);
}

Ref<fb::Function> GraphEncoder::Encode(const ir::Function& f) {
  std::vector<Ref<fb::Argument>> arguments;
  for (const ir::Function::Input& a : f.arguments())
    arguments.push_back(fb::CreateArgument(b_, Name(a.name), TypeId(f.type(a.value)), a.value));
  std::vector<fb::VariableUse> reads, updates;
  for (const ir::Function::VariableRead& r : f.reads())
    reads.emplace_back(VariableId(r.variable), r.value);
  for (const ir::Function::Update& u : f.updates())
    updates.emplace_back(VariableId(u.variable), u.value);
  std::vector<Ref<fb::Node>> nodes;
  for (const ir::Node& node : f.nodes()) {
    if (!status_.ok()) return 0;
    nodes.push_back(Encode(node));
    CheckSize();
  }
  std::vector<Ref<fb::Result>> results;
  for (const ir::Function::Result& r : f.results())
    results.push_back(fb::CreateResult(b_, Name(r.name), r.value));
  const auto names = ValueNames(f);
  const auto name = Name(f.name());
  return fb::CreateFunction(b_, name, List(arguments), Structs<fb::VariableUse>(reads), List(nodes),
                            List(results), Structs<fb::VariableUse>(updates), names);
}

absl::StatusOr<flatbuffers::DetachedBuffer> GraphEncoder::Run() {
  std::vector<Ref<fb::Symbol>> symbols;
  for (const ir::SymbolRef& s : module_.symbols()) {
    symbols_.emplace(s.get(), static_cast<int64_t>(symbols.size()));
    symbols.push_back(fb::CreateSymbol(b_, Name(s->name), s->min, s->max, s->divisor,
                                       static_cast<fb::When>(s->when)));
  }
  for (const auto& f : module_.functions())
    functions_.emplace(f.get(), static_cast<uint32_t>(functions_.size()));
  std::vector<Ref<fb::Variable>> variables;
  for (const auto& v : module_.variables()) {
    variables_.emplace(v.get(), static_cast<uint32_t>(variables.size()));
    variables.push_back(Encode(*v));
  }
  std::vector<Ref<fb::Function>> functions;
  for (const auto& f : module_.functions()) functions.push_back(Encode(*f));
  std::vector<Ref<fb::Entry>> metadata;
  for (const auto& [key, value] : module_.metadata) {
    if (value.size() > kMaxText) return InvalidArgument("metadata '{}' is too long", key);
    const auto text = Text(value);
    CheckSize();
    FORGE_RETURN_IF_ERROR(status_);
    metadata.push_back(fb::CreateEntry(b_, Name(key), text));
  }
  FORGE_RETURN_IF_ERROR(status_);
  const auto blobs = Structs<fb::Blob>(blobs_.places());
  const auto types = List(types_);
  const auto provenances = List(provenances_);
  const auto function_list = List(functions);
  const auto variable_list = List(variables);
  fb::FinishModelBuffer(b_, fb::CreateModel(b_, function_list, variable_list, List(symbols), types,
                                            blobs, provenances, List(metadata)));
  return b_.Release();
}

}  // namespace

uint32_t BlobTable::Add(const Bytes& bytes) {
  const auto place = std::pair(bytes.data(), bytes.size());
  if (const auto at = by_place_.find(place); at != by_place_.end()) return at->second;
  const uint64_t checksum = XXH3_64bits(bytes.data(), bytes.size());
  const auto [first, last] = by_checksum_.equal_range(checksum);
  for (auto at = first; at != last; ++at)
    if (std::ranges::equal(blobs_[at->second].span(), bytes.span()))
      return by_place_[place] = at->second;
  const auto id = static_cast<uint32_t>(blobs_.size());
  const uint64_t offset = AlignUp(size_, kWeightAlignment);
  blobs_.push_back(bytes);
  places_.emplace_back(offset, bytes.size(), checksum);
  size_ = offset + bytes.size();
  by_checksum_.emplace(checksum, id);
  return by_place_[place] = id;
}

uint64_t BlobTable::Id() const {
  return XXH3_64bits(places_.data(), places_.size() * sizeof(fb::Blob));
}

absl::StatusOr<flatbuffers::DetachedBuffer> EncodeGraph(const ir::Module& module,
                                                        BlobTable& blobs) {
  return GraphEncoder(module, blobs).Run();
}

}  // namespace forge::formats
