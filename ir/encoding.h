// SPDX-License-Identifier: Apache-2.0
// The encodings that every part of Forge knows, and their names in files.
#pragma once
#include "ir/type.h"

namespace forge::ir {

// Dense with the axes in another order: axis order[0] varies slowest. "permuted(0,2,3,1)" lays
// out NCHW as NHWC.
//   errors: InvalidArgument when `order` is no permutation of 0..n-1
absl::StatusOr<EncodingRef> Permuted(std::vector<int64_t> order);

// The encoding of that name.  errors: InvalidArgument when there is none
absl::StatusOr<EncodingRef> EncodingNamed(std::string_view name);

}  // namespace forge::ir
