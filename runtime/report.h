// SPDX-License-Identifier: Apache-2.0
// What a plan looks like to a person and to a trace viewer.
#pragma once
#include "runtime/executable.h"
#include "runtime/session.h"

namespace forge {

// Steps with kernel, node names and types; memory; kernels made and reused.
std::string Explain(const Session& session);

// One run with timestamps as trace events that Perfetto and chrome://tracing open: a track for the
// host, one for the device's queue, a slice for each step with its kernel and types.
//   host: begin and end of Run on the host clock, nanoseconds
absl::StatusOr<std::string> TraceJson(const Session& session, std::pair<int64_t, int64_t> host);

// Writes every artifact of the plan's programs (kernel IR, SPIR-V) and the function after each
// pass, as the observer collected them.  errors: Internal (cannot write)
absl::Status DumpArtifacts(const Session& session, const std::filesystem::path& folder);

}  // namespace forge
