// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "ir/type/host_value.h"

namespace forge {

// An input or a result of a run, by the name that the model gives it.
struct NamedTensor {
  std::string name;
  ir::HostValue value;
};

}  // namespace forge
