// SPDX-License-Identifier: Apache-2.0
#include "tests/goldens/archive.h"

#include "formats/arrays/npy.h"

namespace forge::ir {

using nlohmann::json;

HostValue Goldens::At(const json& place) const {
  const DType t = *ParseDType(place["dtype"].get<std::string>());
  HostValue v = *HostValue::Zeros(t, place["shape"].get<std::vector<int64_t>>());
  const int64_t at = place["at"];
  for (int64_t i = 0; i < v.elements(); ++i)
    if (t == DType::kC128)
      v.SetC128(i, {f64.f64(at + 2 * i), f64.f64(at + 2 * i + 1)});
    else if (t == DType::kF64)
      v.Set(i, f64.f64(at + i));
    else
      v.SetI64(i, i64.i64(at + i));
  return v;
}

absl::StatusOr<Goldens> ReadGoldens(const std::string& path) {
  FORGE_ASSIGN_OR_RETURN(NamedValues values, ReadNpz(path));
  Goldens g;
  for (auto& [name, value] : values) {
    if (name == "f64")
      g.f64 = std::move(value);
    else if (name == "i64")
      g.i64 = std::move(value);
    else if (name == "index")
      g.index = json::parse(value.bytes(), nullptr, false);
  }
  if (!g.index.is_array()) return DataLoss("the goldens have no index");
  return g;
}

Operands::Operands(const Goldens& g, const json& places) {
  values.reserve(places.size());
  for (const json& place : places) {
    pointers.push_back(nullptr);
    if (place.is_null()) continue;
    values.push_back(g.At(place));
    pointers.back() = &values.back();
  }
}

}  // namespace forge::ir
