// SPDX-License-Identifier: Apache-2.0
// What a plan looks like to a person and to a trace viewer.
#pragma once
#include "runtime/plan/executable.h"
#include "runtime/session.h"

namespace forge {

// Steps with kernel, node names and types; memory; kernels made and reused. With `gaps` also, for
// each step that reads what another made, why the two are not one.
std::string Explain(const Session& session, bool gaps = false);

// A piece of work on the host's clock, nanoseconds.
struct HostSpan {
  std::string name;
  int64_t begin, end;
};

// One run with timestamps as trace events that Perfetto and chrome://tracing open: a track for the
// host, one for the device's queue, a slice for each step with its kernel and types.
//   host: what the host did, oldest first, the last being the run
//   errors: InvalidArgument (no run, or no span for it)
//   source: Trace Event Format, phases X and M (Google, "Trace Event Format")
absl::StatusOr<std::string> TraceJson(const Session& session, std::span<const HostSpan> host);

// Writes every artifact of the plan's programs (kernel IR, SPIR-V) and the function after each
// pass, as the observer collected them.  errors: Internal (cannot write)
absl::Status DumpArtifacts(const Session& session, const std::filesystem::path& folder);
absl::Status DumpArtifacts(const Executable& e, const std::filesystem::path& folder);

}  // namespace forge
