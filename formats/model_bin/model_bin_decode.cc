// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "formats/model_bin/model_bin_graph.h"
#include "formats/model_bin/model_bin_types.h"
#include "formats/untrusted/byte_reader.h"
#include "formats/untrusted/refusal.h"
#include "ir/op/attributes.h"

namespace forge::formats {
namespace {

// What an operator of a file is called now: format 1.0 had a name for each number of axes, and
// names of its own for gathers.
std::string_view CurrentName(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
      {"conv2d", "conv"},          {"conv_transpose2d", "conv_transpose"}, {"pool2d", "pool"},
      {"take", "gather"},          {"take_along", "gather_elements"},      {"take_nd", "gather_nd"},
      {"sample", "strided_gather"}};
  for (const auto& [before, now] : kRenamed)
    if (name == before) return now;
  return name;
}

absl::StatusOr<ir::Attribute> ReadNumber(const fb::Attribute& a) {
  const uint32_t size = SizeOf(a.ints());
  const int64_t kind = size == 0 ? -1 : a.ints()->Get(0);
  if (kind < 0 || kind > 3) return DataLoss("number {} is not known", kind);
  const auto which = static_cast<Number::Kind>(kind);
  if (size != (which == Number::Kind::kC128 ? 3 : 2)) return DataLoss("a number of {} parts", size);
  const int64_t bits = a.ints()->Get(1);
  if (which == Number::Kind::kI64) return Number(bits);
  if (which == Number::Kind::kU64) return Number(static_cast<uint64_t>(bits));
  const auto real = std::bit_cast<double>(bits);
  if (which == Number::Kind::kF64) return Number(real);
  return Number(std::complex(real, std::bit_cast<double>(a.ints()->Get(2))));
}

class GraphDecoder {
 public:
  GraphDecoder(const fb::Model& model, const Bytes& weights, uint64_t graph_size)
      : model_(model), weights_(weights), budget_(graph_size), types_(model, budget_) {}
  absl::StatusOr<std::unique_ptr<ir::Module>> Run();

 private:
  absl::Status ReadProvenances();
  absl::Status ReadVariables();
  absl::Status ReadMetadata();
  absl::StatusOr<std::vector<uint32_t>> FunctionOrder();
  absl::Status ReadFunctions();

  absl::StatusOr<ir::Variable::Storage> Read(const fb::Storage& s);
  absl::StatusOr<ir::Attribute> Read(const fb::Attribute& a);
  absl::StatusOr<ir::AnyOp> ReadOp(const fb::Node& node);
  absl::Status ReadNode(const fb::Node& node, ir::Function& fn);
  absl::Status ReadValues(const fb::Function& f, ir::Function& fn);
  absl::Status ReadEnds(const fb::Function& f, ir::Function& fn);

  absl::StatusOr<ir::Variable*> VariableAt(uint32_t id) const {
    if (id >= variables_.size())
      return DataLoss("variable {} does not exist; there are {}", id, variables_.size());
    return variables_[id];
  }
  static absl::StatusOr<ir::Value> ValueAt(ir::Function& fn, uint32_t id) {
    if (id >= fn.value_count())
      return DataLoss("value {} is not defined before its use ({} are)", id, fn.value_count());
    return fn.value(id);
  }

  const fb::Model& model_;
  const Bytes& weights_;
  ReadBudget budget_;
  std::unique_ptr<ir::Module> module_ = std::make_unique<ir::Module>();
  TypeTable types_;
  std::vector<ir::ProvenanceRef> provenances_;
  std::vector<ir::Variable*> variables_;
  std::vector<ir::Function*> functions_;
};

// ---- variables, provenance, metadata ----------------------------------------------------------

// Whether the box fits is for Verify to say.
absl::StatusOr<ir::Variable::Storage> GraphDecoder::Read(const fb::Storage& s) {
  if (s.blob() >= SizeOf(model_.blobs()))
    return DataLoss("blob {} does not exist; there are {}", s.blob(), SizeOf(model_.blobs()));
  const fb::Blob& blob = *model_.blobs()->Get(s.blob());
  if (blob.offset() % kWeightAlignment != 0 || !Inside(blob.offset(), blob.size(), weights_.size()))
    return DataLoss("blob {} at {} of {} bytes is not inside the {} bytes of weights", s.blob(),
                    blob.offset(), blob.size(), weights_.size());
  ir::Variable::Storage out;
  FORGE_ASSIGN_OR_RETURN(out.whole, types_.At(s.whole()));
  FORGE_ASSIGN_OR_RETURN(out.begin, budget_.Copy(s.begin()));
  out.bytes = weights_.Part(blob.offset(), blob.size());
  return out;
}

absl::Status GraphDecoder::ReadVariables() {
  Names names("variable");
  for (uint32_t i = 0; i < SizeOf(model_.variables()); ++i) {
    const fb::Variable& v = *model_.variables()->Get(i);
    ir::Variable out;
    FORGE_ASSIGN_OR_RETURN(out.name, budget_.Text(v.name()));
    FORGE_RETURN_IF_ERROR(names.Add(out.name));
    const std::string where = fmt::format("variable '{}'", out.name);
    if (v.role() > fb::Role::State)
      return DataLoss("{}: unknown role {}", where, static_cast<int>(v.role()));
    out.role = static_cast<ir::Variable::Role>(v.role());
    out.trainable = v.trainable();
    absl::StatusOr<ir::Type> type = types_.At(v.type());
    if (!type.ok()) return Annotate(type.status(), where);
    out.type = *std::move(type);
    if (!out.type.is_tensor()) return DataLoss("{}: {} is not a tensor", where, out.type.ToText());
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
    FORGE_ASSIGN_OR_RETURN(out.node, budget_.Text(p.node()));
    FORGE_ASSIGN_OR_RETURN(out.kind, budget_.Text(p.kind()));
    FORGE_ASSIGN_OR_RETURN(out.pass, budget_.Text(p.pass()));
    FORGE_ASSIGN_OR_RETURN(const std::vector<uint32_t> parts, budget_.Copy(p.parts()));
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
    FORGE_ASSIGN_OR_RETURN(std::string key, budget_.Text(model_.metadata()->Get(i)->key()));
    FORGE_ASSIGN_OR_RETURN(std::string value, budget_.Text(model_.metadata()->Get(i)->value()));
    module_->metadata.emplace_back(std::move(key), std::move(value));
  }
  return absl::OkStatus();
}

// ---- functions --------------------------------------------------------------------------------

absl::StatusOr<ir::Attribute> GraphDecoder::Read(const fb::Attribute& a) {
  using Kind = fb::FieldKind;
  const auto one = [](const auto* list) -> absl::Status {
    return SizeOf(list) == 1 ? absl::OkStatus() : DataLoss("{} values instead of 1", SizeOf(list));
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
      return budget_.Text(a.text());
    case Kind::Ints:
      return budget_.Copy(a.ints());
    case Kind::Floats:
      return budget_.Copy(a.floats());
    case Kind::DType:
      if (const std::optional<DType> dtype = ParseDType(TextOf(a.text()))) return *dtype;
      return DataLoss("unknown element type '{}'", TextOf(a.text()));
    case Kind::Dim:
      FORGE_RETURN_IF_ERROR(one(a.dims()));
      return types_.Read(*a.dims()->Get(0));
    case Kind::Dims:
      return types_.Read(a.dims());
    case Kind::Type:
      FORGE_RETURN_IF_ERROR(one(a.ints()));
      return types_.At(static_cast<uint64_t>(a.ints()->Get(0)));
    case Kind::Number:
      return ReadNumber(a);
    case Kind::Function:
      break;
  }
  if (a.kind() != Kind::Function) return DataLoss("unknown kind {}", static_cast<int>(a.kind()));
  if (SizeOf(a.ints()) == 0) return ir::Attribute(static_cast<ir::Function*>(nullptr));
  FORGE_RETURN_IF_ERROR(one(a.ints()));
  return ir::Attribute(functions_[static_cast<size_t>(a.ints()->Get(0))]);  // see FunctionOrder
}

absl::StatusOr<ir::AnyOp> GraphDecoder::ReadOp(const fb::Node& node) {
  const std::string_view name = CurrentName(TextOf(node.op()));
  const ir::OpDef* def = ir::FindOp(name);
  if (def == nullptr) return DataLoss("unknown operator '{}'", name);
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
  FORGE_ASSIGN_OR_RETURN(const std::vector<uint32_t> operands, budget_.Copy(node.operands()));
  ir::Values in;
  for (const uint32_t id : operands) {
    absl::StatusOr<ir::Value> value = id == ir::kAbsent ? ir::Value() : ValueAt(fn, id);
    FORGE_RETURN_IF_ERROR(value.status());
    in.push_back(*value);
  }
  std::vector<ir::Function::RuntimeField> runtime;
  for (uint32_t i = 0; i < SizeOf(node.late()); ++i) {
    const fb::Late& l = *node.late()->Get(i);
    if (ir::FindField(op.def().fields, TextOf(l.field())) == nullptr)
      return DataLoss("operator '{}' has no attribute '{}'", op.name(), TextOf(l.field()));
    FORGE_ASSIGN_OR_RETURN(const ir::Value value, ValueAt(fn, l.value()));
    runtime.push_back({TextOf(l.field()), value});
  }
  ir::ProvenanceRef from;
  if (node.provenance() != kNoProvenance) {
    if (node.provenance() >= provenances_.size())
      return DataLoss("provenance {} does not exist; there are {}", node.provenance(),
                      provenances_.size());
    from = provenances_[node.provenance()];
  }
  const ir::Function::Scope scope(fn, std::move(from));
  const uint32_t first = fn.value_count();
  const ir::Values out = runtime.empty() ? fn.Add(op, in) : fn.AddRuntimeValued(op, in, runtime);
  FORGE_RETURN_IF_ERROR(RefusalOf(fn));
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
  FORGE_RETURN_IF_ERROR(budget_.Spend(uint64_t{arguments} + reads + nodes));
  if (arguments > kMaxEnds || SizeOf(f.results()) > kMaxEnds)
    return DataLoss("{} arguments and {} results are too many", arguments, SizeOf(f.results()));
  while (argument < arguments || read < reads || node < nodes) {
    const uint32_t next = fn.value_count();
    if (argument < arguments && f.arguments()->Get(argument)->value() == next) {
      const fb::Argument& a = *f.arguments()->Get(argument++);
      FORGE_ASSIGN_OR_RETURN(std::string name, budget_.Text(a.name()));
      FORGE_ASSIGN_OR_RETURN(const ir::Type type, types_.At(a.type()));
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
      return DataLoss("value {} is not defined", next);
    }
  }
  return RefusalOf(fn);
}

absl::Status GraphDecoder::ReadEnds(const fb::Function& f, ir::Function& fn) {
  for (uint32_t i = 0; i < SizeOf(f.results()); ++i) {
    const fb::Result& r = *f.results()->Get(i);
    FORGE_ASSIGN_OR_RETURN(std::string name, budget_.Text(r.name()));
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
    FORGE_ASSIGN_OR_RETURN(const std::string name, budget_.Text(n.name()));
    fn.SetName(value, name);
  }
  return RefusalOf(fn);
}

// Bodies before the functions whose nodes hold them.
absl::StatusOr<std::vector<uint32_t>> GraphDecoder::FunctionOrder() {
  const uint32_t count = SizeOf(model_.functions());
  std::vector<uint32_t> missing(count), depth(count), order;
  std::vector<std::vector<uint32_t>> users(count);
  const auto note = [&](uint32_t user, const fb::Attribute& a) -> absl::Status {
    if (a.kind() != fb::FieldKind::Function || SizeOf(a.ints()) == 0) return absl::OkStatus();
    const int64_t body = a.ints()->Get(0);
    if (body < 0 || body >= count)
      return DataLoss("function {} does not exist; there are {}", body, count);
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
    FORGE_ASSIGN_OR_RETURN(const std::string name,
                           budget_.Text(model_.functions()->Get(i)->name()));
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
  FORGE_RETURN_IF_ERROR(types_.ReadSymbols(*module_));
  FORGE_RETURN_IF_ERROR(types_.ReadTypes());
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
