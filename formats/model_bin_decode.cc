// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "formats/byte_reader.h"
#include "formats/model_bin_graph.h"
#include "ir/attributes.h"

namespace forge::formats {
namespace {

template <class T>
using List = flatbuffers::Vector<flatbuffers::Offset<T>>;

// Lists and strings of a FlatBuffer may be left out.
template <class T>
flatbuffers::uoffset_t SizeOf(const T* list) {
  return list == nullptr ? 0 : list->size();
}
std::string_view TextOf(const flatbuffers::String* s) {
  return s == nullptr ? std::string_view() : std::string_view(s->c_str(), s->size());
}

// Names that must differ.
class Names {
 public:
  explicit Names(std::string_view what) : what_(what) {}
  absl::Status Add(std::string_view name) {
    if (seen_.emplace(name).second) return absl::OkStatus();
    return DataLoss("{} '{}' occurs twice", what_, name);
  }

 private:
  std::string_view what_;
  absl::flat_hash_set<std::string> seen_;
};

class GraphDecoder {
 public:
  GraphDecoder(const fb::Model& model, const Bytes& weights, uint64_t graph_size)
      : model_(model), weights_(weights), budget_(kBudgetPerByte * graph_size) {}
  absl::StatusOr<std::unique_ptr<ir::Module>> Run();

 private:
  // A FlatBuffer may point to one list from many places. What is read may be this many times what
  // the file holds, and no more.
  static constexpr uint64_t kBudgetPerByte = 64;
  absl::Status Spend(uint64_t amount) {
    if (amount > budget_) return DataLoss("the graph is larger than its bytes: lists overlap");
    budget_ -= amount;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Text(const flatbuffers::String* s) {
    FORGE_RETURN_IF_ERROR(Spend(SizeOf(s)));
    return std::string(TextOf(s));
  }
  template <class T>
  absl::StatusOr<std::vector<T>> Copy(const flatbuffers::Vector<T>* list) {
    FORGE_RETURN_IF_ERROR(Spend(uint64_t{SizeOf(list)} * sizeof(T)));
    return list == nullptr ? std::vector<T>() : std::vector<T>(list->begin(), list->end());
  }

  absl::Status ReadSymbols();
  absl::Status ReadTypes();
  absl::Status ReadProvenances();
  absl::Status ReadVariables();
  absl::Status ReadMetadata();
  absl::StatusOr<std::vector<uint32_t>> FunctionOrder();
  absl::Status ReadFunctions();

  absl::Status Apply(const fb::DimToken& token, std::vector<ir::Dim>& stack) const;
  absl::StatusOr<ir::Dim> Read(const fb::Dim& d);
  absl::StatusOr<ir::Dims> Read(const List<fb::Dim>* dims);
  absl::StatusOr<ir::Type> Read(const fb::Type& t, uint32_t id);
  absl::StatusOr<ir::Variable::Storage> Read(const fb::Storage& s);
  absl::StatusOr<ir::Attribute> Read(const fb::Attribute& a);
  absl::StatusOr<ir::AnyOp> ReadOp(const fb::Node& node);
  absl::Status ReadNode(const fb::Node& node, ir::Function& fn);
  absl::Status ReadValues(const fb::Function& f, ir::Function& fn);
  absl::Status ReadEnds(const fb::Function& f, ir::Function& fn);

  absl::StatusOr<ir::Type> TypeAt(uint64_t id) const {
    if (id >= types_.size()) return DataLoss("type {} of {}", id, types_.size());
    return types_[id];
  }
  absl::StatusOr<ir::Variable*> VariableAt(uint32_t id) const {
    if (id >= variables_.size()) return DataLoss("variable {} of {}", id, variables_.size());
    return variables_[id];
  }
  static absl::StatusOr<ir::Value> ValueAt(ir::Function& fn, uint32_t id) {
    if (id >= fn.value_count())
      return DataLoss("value {} is not defined before its use ({} are)", id, fn.value_count());
    return fn.value(id);
  }

  const fb::Model& model_;
  const Bytes& weights_;
  uint64_t budget_;
  std::unique_ptr<ir::Module> module_ = std::make_unique<ir::Module>();
  std::vector<ir::SymbolRef> symbols_;
  std::vector<ir::Type> types_;
  std::vector<size_t> type_depths_;
  std::vector<ir::ProvenanceRef> provenances_;
  std::vector<ir::Variable*> variables_;
  std::vector<ir::Function*> functions_;
};

// ---- dimensions and types ---------------------------------------------------------------------

absl::Status GraphDecoder::Apply(const fb::DimToken& token, std::vector<ir::Dim>& stack) const {
  const int64_t value = token.value();
  if (token.op() == fb::DimOp::Constant) {
    stack.emplace_back(value);
    return absl::OkStatus();
  }
  if (token.op() == fb::DimOp::Symbol) {
    if (value < 0 || static_cast<uint64_t>(value) >= symbols_.size())
      return DataLoss("symbol {} of {}", value, symbols_.size());
    stack.emplace_back(symbols_[static_cast<size_t>(value)]);
    return absl::OkStatus();
  }
  const bool sum = token.op() == fb::DimOp::Add || token.op() == fb::DimOp::Mul;
  if (value < 2 || static_cast<uint64_t>(value) > stack.size() || (!sum && value != 2))
    return DataLoss("a dimension's operator takes {} of {} operands", value, stack.size());
  const size_t first = stack.size() - static_cast<size_t>(value);
  ir::Dim result = stack[first];
  for (size_t i = first + 1; i < stack.size(); ++i) {
    switch (token.op()) {
      case fb::DimOp::Add:
        result = result + stack[i];
        break;
      case fb::DimOp::Mul:
        result = result * stack[i];
        break;
      case fb::DimOp::FloorDiv:
        result = FloorDiv(result, stack[i]);
        break;
      case fb::DimOp::Mod:
        result = Mod(result, stack[i]);
        break;
      case fb::DimOp::Min:
        result = Min(result, stack[i]);
        break;
      case fb::DimOp::Max:
        result = Max(result, stack[i]);
        break;
      default:
        return DataLoss("a dimension's operator {} is not known", static_cast<int>(token.op()));
    }
  }
  stack.resize(first);
  stack.push_back(std::move(result));
  return absl::OkStatus();
}

absl::StatusOr<ir::Dim> GraphDecoder::Read(const fb::Dim& d) {
  const flatbuffers::uoffset_t size = SizeOf(d.tokens());
  if (size == 0) return ir::Dim(d.constant());
  if (size > kMaxDimTokens) return DataLoss("a dimension has {} parts", size);
  FORGE_RETURN_IF_ERROR(Spend(size * sizeof(fb::DimToken)));
  std::vector<ir::Dim> stack;
  for (const fb::DimToken* token : *d.tokens()) FORGE_RETURN_IF_ERROR(Apply(*token, stack));
  if (stack.size() != 1) return DataLoss("a dimension leaves {} values", stack.size());
  return stack[0];
}

absl::StatusOr<ir::Dims> GraphDecoder::Read(const List<fb::Dim>* dims) {
  FORGE_RETURN_IF_ERROR(Spend(SizeOf(dims)));
  ir::Dims out;
  for (flatbuffers::uoffset_t i = 0; i < SizeOf(dims); ++i) {
    FORGE_ASSIGN_OR_RETURN(ir::Dim d, Read(*dims->Get(i)));
    out.push_back(std::move(d));
  }
  return out;
}

absl::StatusOr<ir::Type> GraphDecoder::Read(const fb::Type& t, uint32_t id) {
  using Kind = fb::TypeKind;
  if (t.kind() == Kind::Absent) return ir::Type();
  if (t.kind() == Kind::Sequence || t.kind() == Kind::Optional) {
    if (t.element() >= id)
      return DataLoss("its element is type {}, which comes later", t.element());
    type_depths_[id] = type_depths_[t.element()] + 1;
    if (type_depths_[id] > kMaxTypeDepth) return DataLoss("it is nested too deep");
    const ir::Type& element = types_[t.element()];
    return t.kind() == Kind::Sequence ? ir::Type::Sequence(element) : ir::Type::Optional(element);
  }
  const std::optional<DType> dtype = ParseDType(TextOf(t.dtype()));
  if (!dtype) return DataLoss("element type '{}' is not known", TextOf(t.dtype()));
  if (t.kind() == Kind::Unranked) return ir::Type::Unranked(*dtype);
  if (t.kind() != Kind::Tensor) return DataLoss("kind {} is not known", static_cast<int>(t.kind()));
  if (SizeOf(t.encoding()) != 0)
    return DataLoss("encoding '{}' is not known", TextOf(t.encoding()));
  FORGE_ASSIGN_OR_RETURN(ir::Dims shape, Read(t.shape()));
  for (const ir::Dim& d : shape)
    if (d.is_constant() && d.constant() < 0)
      return DataLoss("dimension {} is negative", d.constant());
  return ir::Type::Tensor(*dtype, std::move(shape));
}

absl::Status GraphDecoder::ReadSymbols() {
  Names names("symbol");
  for (uint32_t i = 0; i < SizeOf(model_.symbols()); ++i) {
    const fb::Symbol& s = *model_.symbols()->Get(i);
    FORGE_ASSIGN_OR_RETURN(std::string name, Text(s.name()));
    if (s.divisor() < 1 || s.min() > s.max() || s.when() > fb::When::Step || name.empty())
      return DataLoss("symbol {} '{}' has bounds {} to {}, divisor {}", i, name, s.min(), s.max(),
                      s.divisor());
    FORGE_RETURN_IF_ERROR(names.Add(name));
    symbols_.push_back(std::make_shared<ir::Symbol>(ir::Symbol{
        std::move(name), s.min(), s.max(), s.divisor(), static_cast<ir::When>(s.when())}));
    module_->AddSymbol(symbols_.back());
  }
  return absl::OkStatus();
}

absl::Status GraphDecoder::ReadTypes() {
  type_depths_.resize(SizeOf(model_.types()));
  for (uint32_t i = 0; i < SizeOf(model_.types()); ++i) {
    absl::StatusOr<ir::Type> type = Read(*model_.types()->Get(i), i);
    if (!type.ok()) return Annotate(type.status(), fmt::format("type {}", i));
    types_.push_back(*std::move(type));
  }
  return absl::OkStatus();
}

// ---- variables, provenance, metadata ----------------------------------------------------------

// Whether the box fits is for Verify to say.
absl::StatusOr<ir::Variable::Storage> GraphDecoder::Read(const fb::Storage& s) {
  if (s.blob() >= SizeOf(model_.blobs()))
    return DataLoss("blob {} of {}", s.blob(), SizeOf(model_.blobs()));
  const fb::Blob& blob = *model_.blobs()->Get(s.blob());
  if (blob.offset() % kWeightAlignment != 0 || !Inside(blob.offset(), blob.size(), weights_.size()))
    return DataLoss("blob {} at {} of {} bytes is not inside the {} bytes of weights", s.blob(),
                    blob.offset(), blob.size(), weights_.size());
  ir::Variable::Storage out;
  FORGE_ASSIGN_OR_RETURN(out.whole, TypeAt(s.whole()));
  FORGE_ASSIGN_OR_RETURN(out.begin, Copy(s.begin()));
  out.bytes = weights_.Part(blob.offset(), blob.size());
  return out;
}

absl::Status GraphDecoder::ReadVariables() {
  Names names("variable");
  for (uint32_t i = 0; i < SizeOf(model_.variables()); ++i) {
    const fb::Variable& v = *model_.variables()->Get(i);
    ir::Variable out;
    FORGE_ASSIGN_OR_RETURN(out.name, Text(v.name()));
    FORGE_RETURN_IF_ERROR(names.Add(out.name));
    const std::string where = fmt::format("variable '{}'", out.name);
    if (v.role() > fb::Role::State)
      return DataLoss("{}: role {} is not known", where, static_cast<int>(v.role()));
    out.role = static_cast<ir::Variable::Role>(v.role());
    out.trainable = v.trainable();
    absl::StatusOr<ir::Type> type = TypeAt(v.type());
    if (!type.ok()) return Annotate(type.status(), where);
    out.type = *std::move(type);
    if (!out.type.is_tensor()) return DataLoss("{}: {} is no tensor", where, out.type.ToText());
    if (v.storage() != nullptr) {
      absl::StatusOr<ir::Variable::Storage> storage = Read(*v.storage());
      if (!storage.ok()) return Annotate(storage.status(), where);
      out.init = *std::move(storage);
    }
    variables_.push_back(module_->AddVariable(std::move(out)));
  }
  return absl::OkStatus();
}

absl::Status GraphDecoder::ReadProvenances() {
  std::vector<size_t> depth, leaves;
  for (uint32_t i = 0; i < SizeOf(model_.provenances()); ++i) {
    const fb::Provenance& p = *model_.provenances()->Get(i);
    ir::Provenance out;
    FORGE_ASSIGN_OR_RETURN(out.node, Text(p.node()));
    FORGE_ASSIGN_OR_RETURN(out.kind, Text(p.kind()));
    FORGE_ASSIGN_OR_RETURN(out.pass, Text(p.pass()));
    FORGE_ASSIGN_OR_RETURN(const std::vector<uint32_t> parts, Copy(p.parts()));
    depth.push_back(1);
    leaves.push_back(1);
    for (const uint32_t part : parts) {
      if (part >= i) return DataLoss("provenance {}: part {} comes later", i, part);
      out.parts.push_back(provenances_[part]);
      depth[i] = std::max(depth[i], depth[part] + 1);
      leaves[i] += leaves[part];
      if (depth[i] > kMaxProvenanceDepth || leaves[i] > kMaxProvenanceParts)
        return DataLoss("provenance {} has too many parts", i);
    }
    provenances_.push_back(std::make_shared<ir::Provenance>(std::move(out)));
  }
  return absl::OkStatus();
}

absl::Status GraphDecoder::ReadMetadata() {
  for (uint32_t i = 0; i < SizeOf(model_.metadata()); ++i) {
    FORGE_ASSIGN_OR_RETURN(std::string key, Text(model_.metadata()->Get(i)->key()));
    FORGE_ASSIGN_OR_RETURN(std::string value, Text(model_.metadata()->Get(i)->value()));
    module_->metadata.emplace_back(std::move(key), std::move(value));
  }
  return absl::OkStatus();
}

// ---- functions --------------------------------------------------------------------------------

absl::StatusOr<ir::Attribute> GraphDecoder::Read(const fb::Attribute& a) {
  using Kind = fb::FieldKind;
  const auto one = [](const auto* list) -> absl::Status {
    return SizeOf(list) == 1 ? absl::OkStatus() : DataLoss("{} values, not 1", SizeOf(list));
  };
  switch (a.kind()) {
    case Kind::Bool:
      FORGE_RETURN_IF_ERROR(one(a.ints()));
      return ir::Attribute(a.ints()->Get(0) != 0);
    case Kind::Int:
      FORGE_RETURN_IF_ERROR(one(a.ints()));
      return ir::Attribute(a.ints()->Get(0));
    case Kind::Float:
      FORGE_RETURN_IF_ERROR(one(a.floats()));
      return ir::Attribute(a.floats()->Get(0));
    case Kind::String:
    case Kind::Enum:
      return Text(a.text());
    case Kind::Ints:
      return Copy(a.ints());
    case Kind::Floats:
      return Copy(a.floats());
    case Kind::DType:
      if (const std::optional<DType> dtype = ParseDType(TextOf(a.text()))) return *dtype;
      return DataLoss("element type '{}' is not known", TextOf(a.text()));
    case Kind::Dim:
      FORGE_RETURN_IF_ERROR(one(a.dims()));
      return Read(*a.dims()->Get(0));
    case Kind::Dims:
      return Read(a.dims());
    case Kind::Type:
      FORGE_RETURN_IF_ERROR(one(a.ints()));
      return TypeAt(static_cast<uint64_t>(a.ints()->Get(0)));
    case Kind::Function:
      break;
  }
  if (a.kind() != Kind::Function)
    return DataLoss("kind {} is not known", static_cast<int>(a.kind()));
  if (SizeOf(a.ints()) == 0) return ir::Attribute(static_cast<ir::Function*>(nullptr));
  FORGE_RETURN_IF_ERROR(one(a.ints()));
  return ir::Attribute(functions_[static_cast<size_t>(a.ints()->Get(0))]);  // see FunctionOrder
}

absl::StatusOr<ir::AnyOp> GraphDecoder::ReadOp(const fb::Node& node) {
  const std::string_view name = TextOf(node.op());
  const ir::OpDef* def = ir::FindOp(name);
  if (def == nullptr) return DataLoss("operator '{}' is not known", name);
  std::shared_ptr<void> self = def->make != nullptr ? def->make(nullptr) : nullptr;
  Names names("attribute");
  for (uint32_t i = 0; i < SizeOf(node.attributes()); ++i) {
    const fb::Attribute& a = *node.attributes()->Get(i);
    const Field* field = ir::FindField(def->fields, TextOf(a.name()));
    if (field == nullptr)
      return DataLoss("operator '{}' has no attribute '{}'", name, TextOf(a.name()));
    FORGE_RETURN_IF_ERROR(names.Add(field->name));
    const std::string where = fmt::format("attribute '{}' of '{}'", field->name, name);
    absl::StatusOr<ir::Attribute> value = Read(a);
    if (!value.ok()) return Annotate(value.status(), where);
    if (absl::Status s = ir::SetAttribute(*field, self.get(), *std::move(value)); !s.ok())
      return DataLoss("{}: {}", where, Message(s));
  }
  return ir::AnyOp(*def, std::move(self));
}

absl::Status GraphDecoder::ReadNode(const fb::Node& node, ir::Function& fn) {
  FORGE_ASSIGN_OR_RETURN(const ir::AnyOp op, ReadOp(node));
  FORGE_ASSIGN_OR_RETURN(const std::vector<uint32_t> operands, Copy(node.operands()));
  ir::Values in;
  for (const uint32_t id : operands) {
    absl::StatusOr<ir::Value> value = id == ir::kAbsent ? ir::Value() : ValueAt(fn, id);
    FORGE_RETURN_IF_ERROR(value.status());
    in.push_back(*value);
  }
  std::vector<ir::Function::LateField> late;
  for (uint32_t i = 0; i < SizeOf(node.late()); ++i) {
    const fb::Late& l = *node.late()->Get(i);
    if (ir::FindField(op.def().fields, TextOf(l.field())) == nullptr)
      return DataLoss("operator '{}' has no attribute '{}'", op.name(), TextOf(l.field()));
    FORGE_ASSIGN_OR_RETURN(const ir::Value value, ValueAt(fn, l.value()));
    late.push_back({TextOf(l.field()), value});
  }
  ir::ProvenanceRef from;
  if (node.provenance() != kNoProvenance) {
    if (node.provenance() >= provenances_.size())
      return DataLoss("provenance {} of {}", node.provenance(), provenances_.size());
    from = provenances_[node.provenance()];
  }
  const ir::Function::Scope scope(fn, std::move(from));
  const uint32_t first = fn.value_count();
  const ir::Values out = late.empty() ? fn.Add(op, in) : fn.AddLate(op, in, late);
  if (!fn.status().ok()) return DataLoss("{}", Message(fn.status()));
  if (node.first_result() != first || node.results() != out.size())
    return DataLoss("its results are {} from value {}, not {} from {}", out.size(), first,
                    node.results(), node.first_result());
  return absl::OkStatus();
}

// Arguments, reads and nodes make values in the order of their numbers.
absl::Status GraphDecoder::ReadValues(const fb::Function& f, ir::Function& fn) {
  uint32_t argument = 0, read = 0, node = 0;
  const uint32_t arguments = SizeOf(f.arguments()), reads = SizeOf(f.reads()),
                 nodes = SizeOf(f.nodes());
  FORGE_RETURN_IF_ERROR(Spend(uint64_t{arguments} + reads + nodes));
  while (argument < arguments || read < reads || node < nodes) {
    const uint32_t next = fn.value_count();
    if (argument < arguments && f.arguments()->Get(argument)->value() == next) {
      const fb::Argument& a = *f.arguments()->Get(argument++);
      FORGE_ASSIGN_OR_RETURN(std::string name, Text(a.name()));
      FORGE_ASSIGN_OR_RETURN(const ir::Type type, TypeAt(a.type()));
      if (!type) return DataLoss("argument '{}' has no type", name);
      fn.Argument(std::move(name), type);
    } else if (read < reads && f.reads()->Get(read)->value() == next) {
      FORGE_ASSIGN_OR_RETURN(ir::Variable * v, VariableAt(f.reads()->Get(read++)->variable()));
      if (fn.Read(v).id != next) return DataLoss("variable '{}' is read twice", v->name);
    } else if (node < nodes) {
      const absl::Status s = ReadNode(*f.nodes()->Get(node), fn);
      if (!s.ok()) return Annotate(s, fmt::format("node {}", node));
      ++node;
    } else {
      return DataLoss("nothing makes value {}", next);
    }
  }
  return fn.status();
}

absl::Status GraphDecoder::ReadEnds(const fb::Function& f, ir::Function& fn) {
  for (uint32_t i = 0; i < SizeOf(f.results()); ++i) {
    const fb::Result& r = *f.results()->Get(i);
    FORGE_ASSIGN_OR_RETURN(std::string name, Text(r.name()));
    FORGE_ASSIGN_OR_RETURN(const ir::Value value, ValueAt(fn, r.value()));
    fn.Return(std::move(name), value);
  }
  for (uint32_t i = 0; i < SizeOf(f.updates()); ++i) {
    const fb::VariableUse& u = *f.updates()->Get(i);
    FORGE_ASSIGN_OR_RETURN(ir::Variable * variable, VariableAt(u.variable()));
    FORGE_ASSIGN_OR_RETURN(const ir::Value value, ValueAt(fn, u.value()));
    fn.Store(variable, value);
  }
  for (uint32_t i = 0; i < SizeOf(f.names()); ++i) {
    const fb::ValueName& n = *f.names()->Get(i);
    FORGE_ASSIGN_OR_RETURN(const ir::Value value, ValueAt(fn, n.value()));
    FORGE_ASSIGN_OR_RETURN(const std::string name, Text(n.name()));
    fn.SetName(value, name);
  }
  return fn.status();
}

// Bodies before the functions whose nodes hold them.
absl::StatusOr<std::vector<uint32_t>> GraphDecoder::FunctionOrder() {
  const uint32_t count = SizeOf(model_.functions());
  std::vector<uint32_t> missing(count), depth(count), order;
  std::vector<std::vector<uint32_t>> users(count);
  const auto note = [&](uint32_t user, const fb::Attribute& a) -> absl::Status {
    if (a.kind() != fb::FieldKind::Function || SizeOf(a.ints()) == 0) return absl::OkStatus();
    const int64_t body = a.ints()->Get(0);
    if (body < 0 || body >= count) return DataLoss("function {} of {}", body, count);
    ++missing[user];
    users[static_cast<size_t>(body)].push_back(user);
    return absl::OkStatus();
  };
  for (uint32_t i = 0; i < count; ++i) {
    const auto* nodes = model_.functions()->Get(i)->nodes();
    for (uint32_t n = 0; n < SizeOf(nodes); ++n)
      for (uint32_t a = 0; a < SizeOf(nodes->Get(n)->attributes()); ++a)
        FORGE_RETURN_IF_ERROR(note(i, *nodes->Get(n)->attributes()->Get(a)));
  }
  for (uint32_t i = 0; i < count; ++i)
    if (missing[i] == 0) order.push_back(i);
  for (size_t at = 0; at < order.size(); ++at) {
    for (const uint32_t user : users[order[at]]) {
      depth[user] = std::max(depth[user], depth[order[at]] + 1);
      if (depth[user] > kMaxBodyDepth)
        return DataLoss("function '{}' is nested too deep", functions_[order[at]]->name());
      if (--missing[user] == 0) order.push_back(user);
    }
  }
  if (order.size() == count) return order;
  const auto bad = std::ranges::find_if(missing, [](uint32_t m) { return m != 0; });
  return DataLoss("function '{}' is a body of itself",
                  functions_[static_cast<size_t>(bad - missing.begin())]->name());
}

absl::Status GraphDecoder::ReadFunctions() {
  Names names("function");
  for (uint32_t i = 0; i < SizeOf(model_.functions()); ++i) {
    FORGE_ASSIGN_OR_RETURN(const std::string name, Text(model_.functions()->Get(i)->name()));
    FORGE_RETURN_IF_ERROR(names.Add(name));
    functions_.push_back(module_->AddFunction(name));
  }
  FORGE_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, FunctionOrder());
  for (const uint32_t i : order) {
    const fb::Function& f = *model_.functions()->Get(i);
    absl::Status s = ReadValues(f, *functions_[i]);
    if (s.ok()) s = ReadEnds(f, *functions_[i]);
    if (!s.ok()) return Annotate(s, fmt::format("function '{}'", functions_[i]->name()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ir::Module>> GraphDecoder::Run() {
  FORGE_RETURN_IF_ERROR(ReadSymbols());
  FORGE_RETURN_IF_ERROR(ReadTypes());
  FORGE_RETURN_IF_ERROR(ReadProvenances());
  FORGE_RETURN_IF_ERROR(ReadVariables());
  FORGE_RETURN_IF_ERROR(ReadFunctions());
  FORGE_RETURN_IF_ERROR(ReadMetadata());
  if (const absl::Status s = ir::Verify(*module_); !s.ok()) return DataLoss("{}", Message(s));
  return std::move(module_);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Module>> DecodeGraph(const fb::Model& model,
                                                        const Bytes& weights, uint64_t graph_size) {
  return GraphDecoder(model, weights, graph_size).Run();
}

}  // namespace forge::formats
