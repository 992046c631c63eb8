// SPDX-License-Identifier: Apache-2.0
// The fixed part of model.bin and the limits of its graph, shared by writer and reader.
#pragma once
#include <flatbuffers/flatbuffers.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/model_bin/model_generated.h"
#include "ir/graph/module.h"

namespace forge::formats {

inline constexpr uint16_t kFormatMajor = 1, kFormatMinor = 2;
// Like PNG's: a first byte that no text has, and a line end that a text transfer would change.
inline constexpr std::string_view kModelMagic =
                                      "\x89"
                                      "FORGE\r\n",
                                  kWeightsMagic =
                                      "\x89"
                                      "FORGW\r\n";
// Bytes; of every blob in the file.
inline constexpr uint64_t kWeightAlignment = 64;

// The first 64 bytes of a model file and of a weights file. Little-endian.
struct FileHeader {
  std::array<char, 8> magic;
  uint16_t major, minor;
  uint32_t flags;            // kExternalWeights
  uint64_t graph_size;       // the graph follows this header; 0 in a weights file
  uint64_t graph_checksum;   // XXH3-64
  uint64_t weights_offset;   // multiple of 64; 0 when external
  uint64_t weights_size;     // extends to the end of the file that holds them
  uint64_t weights_id;       // XXH3-64 of the blob table; matches a model with its weights file
  uint64_t header_checksum;  // XXH3-64 of the preceding 56 bytes
};
static_assert(sizeof(FileHeader) == 64 && offsetof(FileHeader, header_checksum) == 56);
// Bit of FileHeader::flags.
inline constexpr uint32_t kExternalWeights = 1;

// The path of the external weights of a model.
inline std::filesystem::path WeightsPath(std::filesystem::path model) {
  return model += ".weights";
}

// Limits of a graph. They exceed the needs of any model and bound the stack depth and the
// expression size that a hostile file can cause.
inline constexpr size_t kMaxDimTokens = 1 << 12;
inline constexpr size_t kMaxTypeDepth = 16;
inline constexpr size_t kMaxProvenanceDepth = 128;
inline constexpr size_t kMaxProvenanceParts = 1
                                              << 16;  // per node; shared ones are counted each time
inline constexpr uint32_t kMaxBodyDepth = 64;
inline constexpr uint32_t kMaxEnds = 1 << 14;  // arguments of a function, and results
inline constexpr uint32_t kNoProvenance = UINT32_MAX;

// The numbers in the file are fixed in model.fbs; the assertions below check that the enumerations
// of Forge match.
template <class A, class B>
constexpr bool SameNumber(A a, B b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(SameNumber(fb::DimOp::Constant, ir::Dim::Op::kConstant));
static_assert(SameNumber(fb::DimOp::Symbol, ir::Dim::Op::kSymbol));
static_assert(SameNumber(fb::DimOp::Add, ir::Dim::Op::kAdd));
static_assert(SameNumber(fb::DimOp::Mul, ir::Dim::Op::kMul));
static_assert(SameNumber(fb::DimOp::FloorDiv, ir::Dim::Op::kFloorDiv));
static_assert(SameNumber(fb::DimOp::Mod, ir::Dim::Op::kMod));
static_assert(SameNumber(fb::DimOp::Min, ir::Dim::Op::kMin));
static_assert(SameNumber(fb::DimOp::Max, ir::Dim::Op::kMax));
static_assert(SameNumber(fb::TypeKind::Absent, ir::Type::Kind::kAbsent));
static_assert(SameNumber(fb::TypeKind::Tensor, ir::Type::Kind::kTensor));
static_assert(SameNumber(fb::TypeKind::Unranked, ir::Type::Kind::kUnranked));
static_assert(SameNumber(fb::TypeKind::Sequence, ir::Type::Kind::kSequence));
static_assert(SameNumber(fb::TypeKind::Optional, ir::Type::Kind::kOptional));
static_assert(SameNumber(fb::TypeKind::Unknown, ir::Type::Kind::kUnknown));
static_assert(SameNumber(fb::When::Build, ir::When::kBuild));
static_assert(SameNumber(fb::When::Bind, ir::When::kBind));
static_assert(SameNumber(fb::When::Step, ir::When::kStep));
static_assert(SameNumber(fb::Role::Constant, ir::Variable::Role::kConstant));
static_assert(SameNumber(fb::Role::Parameter, ir::Variable::Role::kParameter));
static_assert(SameNumber(fb::Role::State, ir::Variable::Role::kState));
static_assert(SameNumber(fb::FieldKind::Bool, FieldKind::kBool));
static_assert(SameNumber(fb::FieldKind::Int, FieldKind::kInt));
static_assert(SameNumber(fb::FieldKind::Float, FieldKind::kFloat));
static_assert(SameNumber(fb::FieldKind::String, FieldKind::kString));
static_assert(SameNumber(fb::FieldKind::Ints, FieldKind::kInts));
static_assert(SameNumber(fb::FieldKind::Floats, FieldKind::kFloats));
static_assert(SameNumber(fb::FieldKind::DType, FieldKind::kDType));
static_assert(SameNumber(fb::FieldKind::Enum, FieldKind::kEnum));
static_assert(SameNumber(fb::FieldKind::Dim, FieldKind::kDim));
static_assert(SameNumber(fb::FieldKind::Dims, FieldKind::kDims));
static_assert(SameNumber(fb::FieldKind::Type, FieldKind::kType));
static_assert(SameNumber(fb::FieldKind::Function, FieldKind::kFunction));
static_assert(SameNumber(fb::FieldKind::Number, FieldKind::kNumber));
static_assert(SameNumber(0, Number::Kind::kI64) && SameNumber(1, Number::Kind::kU64) &&
              SameNumber(2, Number::Kind::kF64) && SameNumber(3, Number::Kind::kC128));

}  // namespace forge::formats
