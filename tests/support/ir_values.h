// SPDX-License-Identifier: Apache-2.0
// Types, tensors and provenances as tests write them.
#pragma once
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/type/host_value.h"

namespace forge {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline ir::Type F32(ir::Dims shape) { return ir::Type::Tensor(DType::kF32, std::move(shape)); }

// A fresh symbol.
inline ir::Dim Named(std::string name) {
  return ir::Dim(std::make_shared<ir::Symbol>(ir::Symbol{.name = std::move(name)}));
}

// A dense f32 tensor; numbers in row-major order, zeros where there are fewer.
inline ir::HostValue Tensor(std::vector<int64_t> shape, std::vector<double> numbers) {
  ir::HostValue v = *ir::HostValue::Zeros(DType::kF32, shape);
  for (size_t i = 0; i < numbers.size(); ++i) v.Set(static_cast<int64_t>(i), numbers[i]);
  return v;
}

// All elements, in row-major order.
inline std::vector<double> Numbers(const ir::HostValue& v) {
  std::vector<double> out;
  for (int64_t i = 0; i < v.elements(); ++i) out.push_back(v.f64(i));
  return out;
}

// A node of a model file.
inline ir::ProvenanceRef From(std::string node, std::string kind = "Op") {
  return std::make_shared<ir::Provenance>(
      ir::Provenance{.node = std::move(node), .kind = std::move(kind), .pass = {}, .parts = {}});
}

}  // namespace forge
