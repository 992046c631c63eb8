// SPDX-License-Identifier: Apache-2.0
// Readers of the tables that the rest of a model.bin refers to: symbols and types. Private to
// model_bin*.cc.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "formats/model_bin/model_bin_format.h"

namespace forge::formats {

template <class T>
using FbList = flatbuffers::Vector<flatbuffers::Offset<T>>;

// SizeOf and TextOf accept null: a FlatBuffer may omit lists and strings.
template <class T>
flatbuffers::uoffset_t SizeOf(const T* list) {
  return list == nullptr ? 0 : list->size();
}
inline std::string_view TextOf(const flatbuffers::String* s) {
  return s == nullptr ? std::string_view() : std::string_view(s->c_str(), s->size());
}

// A set of names in which duplicates are an error.
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

// Bounds the amount of data read from a FlatBuffer, in which many references may point to one list:
// at most kPerByte bytes for each byte of the graph.
class ReadBudget {
 public:
  explicit ReadBudget(uint64_t graph_size) : left_(kPerByte * graph_size) {}
  absl::Status Spend(uint64_t amount) {
    if (amount > left_) return DataLoss("the lists of the graph overlap: they exceed its size");
    left_ -= amount;
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

 private:
  static constexpr uint64_t kPerByte = 64;
  uint64_t left_;
};

// The symbols and types of a graph.
class TypeTable {
 public:
  TypeTable(const fb::Model& model, ReadBudget& budget) : model_(model), budget_(budget) {}

  absl::Status ReadSymbols(ir::Module& module);  // adds the symbols to the module
  absl::Status ReadTypes();                      // must follow ReadSymbols
  absl::StatusOr<ir::Type> At(uint64_t id) const {
    if (id >= types_.size())
      return DataLoss("type {} does not exist; there are {}", id, types_.size());
    return types_[id];
  }
  absl::StatusOr<ir::Dim> Read(const fb::Dim& d);
  absl::StatusOr<ir::Dims> Read(const FbList<fb::Dim>* dims);

 private:
  absl::Status Apply(const fb::DimToken& token, std::vector<ir::Dim>& stack) const;
  absl::StatusOr<ir::Type> Read(const fb::Type& t, uint32_t id);

  const fb::Model& model_;
  ReadBudget& budget_;
  std::vector<ir::SymbolRef> symbols_;
  std::vector<ir::Type> types_;
  std::vector<size_t> type_depths_;
};

}  // namespace forge::formats
