// SPDX-License-Identifier: Apache-2.0
#include "base/environment.h"

#include "base/platform.h"

namespace forge {

absl::StatusOr<bool> EnvironmentSwitch(const char* name) {
  const std::string value = Environment(name).value_or("");
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  return InvalidArgument("{}={} is not valid; give 1 or 0", name, value);
}

}  // namespace forge
