// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace forge {

// Describes every op as JSON; see forge_ops_json in runtime/forge.h.
std::string OpDescriptions();

}  // namespace forge
