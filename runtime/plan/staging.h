// SPDX-License-Identifier: Apache-2.0
// Bytes between the host and any kind of buffer, through mapped memory where it has to be: the host
// fills, or empties, one staging buffer while the device copies another.
#pragma once
#include "runtime/device/device.h"

namespace forge {

// Bytes of one of the two staging buffers: few enough for caches, many beside a submission's cost.
inline constexpr uint64_t kStagingBytes = uint64_t{4} << 20;

// Copies `bytes` to `to`, from byte `at` on. They are there when it returns.
//   errors: OutOfRange, ResourceExhausted, Aborted (device lost)
absl::Status WriteBuffer(Device& device, const BufferRef& to, uint64_t at,
                         std::span<const uint8_t> bytes);
// Fills `bytes` with what `from` has from byte `at` on.  errors: as WriteBuffer
absl::Status ReadBuffer(Device& device, const BufferRef& from, uint64_t at,
                        std::span<uint8_t> bytes);

}  // namespace forge
