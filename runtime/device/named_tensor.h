// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "ir/type/host_value.h"

namespace forge {

// An input or output of a run, with its name in the model.
struct NamedTensor {
  std::string name;
  ir::HostValue value;
};

}  // namespace forge
