// SPDX-License-Identifier: Apache-2.0
// The archive that make_goldens.py and opinfo.py write.
#pragma once
#include <nlohmann/json.hpp>

#include "ir/type/host_value.h"

namespace forge::ir {

// All numbers, and the index of cases.
struct Goldens {
  HostValue f64, i64;
  nlohmann::json index;

  HostValue At(const nlohmann::json& place) const;
};
// errors: those of ReadNpz; DataLoss (no index)
absl::StatusOr<Goldens> ReadGoldens(const std::string& path);

struct Operands {
  std::vector<HostValue> values;
  std::vector<const HostValue*> pointers;  // null: absent
  Operands(const Goldens& g, const nlohmann::json& places);
};

}  // namespace forge::ir
