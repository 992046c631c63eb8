// SPDX-License-Identifier: Apache-2.0
// Descriptions of a plan: text, and traces for a trace viewer.
#pragma once
#include "runtime/plan/executable.h"
#include "runtime/session.h"

namespace forge {

// Describes the plan of a Session as text: steps with kernel, node names and types; memory; kernels
// compiled and reused. With `gaps`, also lists for each step that reads the result of another why
// the two are not fused.
std::string Explain(const Session& session, bool gaps = false);

// A span of work on the clock of the host, in nanoseconds.
struct HostSpan {
  std::string name;
  int64_t begin, end;
};

// Returns one run with timestamps as trace events that Perfetto and chrome://tracing open: a track
// for the host, one for the queue of the device, a slice for each step with its kernel and types.
//   host: spans of the host, oldest first; the last is the run
//   errors: InvalidArgument (no run, or no span for it)
//   source: Trace Event Format, phases X and M (Google, "Trace Event Format")
absl::StatusOr<std::string> TraceJson(const Session& session, std::span<const HostSpan> host);

// Writes all artifacts of the programs of a plan (kernel IR, SPIR-V).
//   errors: Internal (cannot write)
absl::Status DumpArtifacts(const Session& session, const std::filesystem::path& folder);
absl::Status DumpArtifacts(const Executable& e, const std::filesystem::path& folder);

}  // namespace forge
