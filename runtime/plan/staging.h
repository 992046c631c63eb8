// SPDX-License-Identifier: Apache-2.0
// Copies between the host and any kind of buffer. Buffers that are not mapped go through two
// staging buffers: the host accesses one while the device copies the other.
#pragma once
#include "runtime/device/device.h"

namespace forge {

// Bytes of each of the two staging buffers: small enough for caches, large compared with the cost
// of a submission.
inline constexpr uint64_t kStagingBytes = uint64_t{4} << 20;

// Copies `bytes` to `to`, starting at byte `at`. The copy is complete on return.
//   errors: OutOfRange, ResourceExhausted, Aborted (device lost)
absl::Status WriteBuffer(Device& device, const BufferRef& to, uint64_t at,
                         std::span<const uint8_t> bytes);
// Fills `bytes` from `from`, starting at byte `at`.
//   errors: as WriteBuffer
absl::Status ReadBuffer(Device& device, const BufferRef& from, uint64_t at,
                        std::span<uint8_t> bytes);

}  // namespace forge
