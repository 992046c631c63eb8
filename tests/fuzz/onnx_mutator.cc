// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/onnx_mutator.h"

#include <google/protobuf/message.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/enclose_node.h"
#include "tests/fuzz/fuzzer.h"

namespace forge::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using CppType = FieldDescriptor::CppType;

class Mutator {
 public:
  Mutator(onnx::ModelProto& model, unsigned seed) : model_(model), random_(seed + 1) {}

  void ChangeOne() {
    messages_.clear();
    texts_.clear();
    Collect(model_);
    if (Below(16) == 0) return Enclose();
    Message& m = *messages_[Below(messages_.size())];
    const int fields = m.GetDescriptor()->field_count();
    if (fields == 0) return;
    const FieldDescriptor* f = m.GetDescriptor()->field(static_cast<int>(Below(fields)));
    // What is there is more often worth a change than what is not.
    std::vector<const FieldDescriptor*> present;
    m.GetReflection()->ListFields(m, &present);
    if (!present.empty() && Below(4) != 0) f = present[Below(present.size())];
    if (f->is_repeated())
      ChangeList(m, f);
    else
      ChangeSingle(m, f);
  }

 private:
  size_t Below(size_t n) { return random_() % n; }

  void Collect(Message& m) {
    messages_.push_back(&m);
    const Reflection& r = *m.GetReflection();
    std::vector<const FieldDescriptor*> present;
    r.ListFields(m, &present);
    for (const FieldDescriptor* f : present) {
      const int count = f->is_repeated() ? r.FieldSize(m, f) : 1;
      for (int i = 0; i < count; ++i) {
        if (f->cpp_type() == CppType::CPPTYPE_MESSAGE)
          Collect(f->is_repeated() ? *r.MutableRepeatedMessage(&m, f, i)
                                   : *r.MutableMessage(&m, f));
        else if (f->cpp_type() == CppType::CPPTYPE_STRING)
          texts_.push_back(f->is_repeated() ? r.GetRepeatedString(m, f, i) : r.GetString(m, f));
      }
    }
  }

  // Some node, with what is around it left as it is.
  void Enclose() {
    std::vector<onnx::GraphProto*> graphs;
    for (Message* m : messages_)
      if (auto* graph = dynamic_cast<onnx::GraphProto*>(m); graph && graph->node_size() > 0)
        graphs.push_back(graph);
    if (graphs.empty()) return;
    onnx::GraphProto& graph = *graphs[Below(graphs.size())];
    constexpr Enclosure kAll[] = {Enclosure::kBranch, Enclosure::kLoop, Enclosure::kFunction};
    EncloseNode(model_, graph, static_cast<int>(Below(static_cast<size_t>(graph.node_size()))),
                kAll[Below(std::size(kAll))]);
  }

  template <class T>
  T Integer(T old) {
    constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
    const T edges[] = {0, 1, 2, 3, static_cast<T>(-1), static_cast<T>(-2), kMin, kMax, kMax / 2};
    switch (Below(4)) {
      case 0:
        return edges[Below(std::size(edges))];
      case 1:
        return static_cast<T>(static_cast<uint64_t>(old) + Below(5) - 2);
      case 2:
        return static_cast<T>(Below(32));
      default:
        return static_cast<T>(static_cast<uint64_t>(old) * 2);
    }
  }

  template <class T>
  T Float(T old) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
    const T edges[] = {0, 1, -1, T{0.5}, T{1e30F}, kInfinity, -kInfinity, kNan, old * 2, -old};
    return edges[Below(std::size(edges))];
  }

  std::string Text(std::string old) {
    if (!texts_.empty() && Below(3) != 0) return texts_[Below(texts_.size())];
    const size_t size = old.size();
    old.resize(size + 16);
    old.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(old.data()), size, old.size()));
    return old;
  }

  // A copy of some message of that type in the model; null for an empty one. Asked for before room
  // is made for it: to choose one member of a oneof destroys the other.
  std::unique_ptr<Message> Another(const google::protobuf::Descriptor* type) {
    std::vector<const Message*> alike;
    for (const Message* other : messages_)
      if (other->GetDescriptor() == type) alike.push_back(other);
    if (alike.empty() || Below(8) == 0) return nullptr;
    const Message* from = alike[Below(alike.size())];
    std::unique_ptr<Message> copy(from->New());
    copy->CopyFrom(*from);
    return copy;
  }
  static void Fill(Message& m, const std::unique_ptr<Message>& content) {
    if (content)
      m.CopyFrom(*content);
    else
      m.Clear();
  }

  void ChangeSingle(Message& m, const FieldDescriptor* f) {
    const Reflection& r = *m.GetReflection();
    if (r.HasField(m, f) && Below(8) == 0) return r.ClearField(&m, f);
    switch (f->cpp_type()) {
      case CppType::CPPTYPE_INT32:
        return r.SetInt32(&m, f, Integer(r.GetInt32(m, f)));
      case CppType::CPPTYPE_INT64:
        return r.SetInt64(&m, f, Integer(r.GetInt64(m, f)));
      case CppType::CPPTYPE_UINT32:
        return r.SetUInt32(&m, f, Integer(r.GetUInt32(m, f)));
      case CppType::CPPTYPE_UINT64:
        return r.SetUInt64(&m, f, Integer(r.GetUInt64(m, f)));
      case CppType::CPPTYPE_FLOAT:
        return r.SetFloat(&m, f, Float(r.GetFloat(m, f)));
      case CppType::CPPTYPE_DOUBLE:
        return r.SetDouble(&m, f, Float(r.GetDouble(m, f)));
      case CppType::CPPTYPE_BOOL:
        return r.SetBool(&m, f, !r.GetBool(m, f));
      case CppType::CPPTYPE_ENUM:
        return r.SetEnumValue(&m, f, static_cast<int>(Below(24)));
      case CppType::CPPTYPE_STRING:
        return r.SetString(&m, f, Text(r.GetString(m, f)));
      case CppType::CPPTYPE_MESSAGE: {
        const std::unique_ptr<Message> content = Another(f->message_type());
        return Fill(*r.MutableMessage(&m, f), content);
      }
    }
  }

  void ChangeList(Message& m, const FieldDescriptor* f) {
    const Reflection& r = *m.GetReflection();
    const int size = r.FieldSize(m, f);
    const auto at = static_cast<int>(size == 0 ? 0 : Below(static_cast<size_t>(size)));
    switch (size == 0 ? 0 : Below(4)) {
      case 0:
        Append(m, f);
        break;
      case 1:
        r.SwapElements(&m, f, at, size - 1);
        if (Below(2) == 0) r.RemoveLast(&m, f);
        break;
      default:
        ChangeElement(m, f, at);
    }
  }

  void Append(Message& m, const FieldDescriptor* f) {
    const Reflection& r = *m.GetReflection();
    switch (f->cpp_type()) {
      case CppType::CPPTYPE_INT32:
        return r.AddInt32(&m, f, Integer<int32_t>(1));
      case CppType::CPPTYPE_INT64:
        return r.AddInt64(&m, f, Integer<int64_t>(1));
      case CppType::CPPTYPE_UINT64:
        return r.AddUInt64(&m, f, Integer<uint64_t>(1));
      case CppType::CPPTYPE_FLOAT:
        return r.AddFloat(&m, f, Float<float>(1));
      case CppType::CPPTYPE_DOUBLE:
        return r.AddDouble(&m, f, Float<double>(1));
      case CppType::CPPTYPE_STRING:
        return r.AddString(&m, f, Text(""));
      case CppType::CPPTYPE_MESSAGE: {
        const std::unique_ptr<Message> content = Another(f->message_type());
        return Fill(*r.AddMessage(&m, f), content);
      }
      default:
        return;  // onnx.proto repeats no others
    }
  }

  void ChangeElement(Message& m, const FieldDescriptor* f, int at) {
    const Reflection& r = *m.GetReflection();
    switch (f->cpp_type()) {
      case CppType::CPPTYPE_INT32:
        return r.SetRepeatedInt32(&m, f, at, Integer(r.GetRepeatedInt32(m, f, at)));
      case CppType::CPPTYPE_INT64:
        return r.SetRepeatedInt64(&m, f, at, Integer(r.GetRepeatedInt64(m, f, at)));
      case CppType::CPPTYPE_UINT64:
        return r.SetRepeatedUInt64(&m, f, at, Integer(r.GetRepeatedUInt64(m, f, at)));
      case CppType::CPPTYPE_FLOAT:
        return r.SetRepeatedFloat(&m, f, at, Float(r.GetRepeatedFloat(m, f, at)));
      case CppType::CPPTYPE_DOUBLE:
        return r.SetRepeatedDouble(&m, f, at, Float(r.GetRepeatedDouble(m, f, at)));
      case CppType::CPPTYPE_STRING:
        return r.SetRepeatedString(&m, f, at, Text(r.GetRepeatedString(m, f, at)));
      case CppType::CPPTYPE_MESSAGE:
        return Fill(*r.MutableRepeatedMessage(&m, f, at), Another(f->message_type()));
      default:
        return;
    }
  }

  onnx::ModelProto& model_;
  std::minstd_rand random_;
  std::vector<Message*> messages_;
  std::vector<std::string> texts_;
};

}  // namespace

size_t MutateOnnx(std::span<uint8_t> file, size_t size, unsigned seed) {
  onnx::ModelProto model;
  if (!model.ParsePartialFromArray(file.data(), static_cast<int>(size))) return 0;
  Mutator mutator(model, seed);
  for (unsigned changes = 1 + seed / 8 % 3; changes > 0; --changes) mutator.ChangeOne();
  const std::string made = model.SerializePartialAsString();
  if (made.size() > file.size()) return 0;
  std::ranges::copy(made, file.begin());
  return made.size();
}

}  // namespace forge::fuzz
