// SPDX-License-Identifier: Apache-2.0
#include "tests/cpu_runtime/run.h"

#include <cstring>

#include "ir/ops/compiler/relayout.h"

namespace forge::cpu {
namespace {

// Memory as an arena gives it.
class Aligned {
 public:
  explicit Aligned(size_t bytes) : bytes_(bytes), data_(bytes + kAlignment) {
    const auto at = reinterpret_cast<uintptr_t>(data_.data());
    offset_ = (kAlignment - at % kAlignment) % kAlignment;
  }
  std::span<uint8_t> span() { return {data_.data() + offset_, bytes_}; }

 private:
  size_t bytes_, offset_;
  std::vector<uint8_t> data_;
};

absl::StatusOr<ProgramRef> CompileOne(CpuDevice& device, const ir::AnyOp& op, ir::TypeSpan in,
                                      ir::TypeSpan out) {
  const CompileRequest request{&op, in, out, "test"};
  return std::move(device.Compile({&request, 1}, [](size_t) { return true; })[0]);
}

absl::Status RunProgram(const ProgramRef& program, std::vector<std::span<uint8_t>> operands) {
  Aligned scratch(program->scratch_bytes());
  if (program->scratch_bytes() > 0) operands.push_back(scratch.span());
  return static_cast<const HostProgram&>(*program).Run({operands, {}});
}

absl::StatusOr<size_t> BytesOf(const ir::Type& t) {
  FORGE_ASSIGN_OR_RETURN(const ir::Dim bytes, t.bytes());
  return static_cast<size_t>(bytes.constant());
}

// `from` in memory of type `to`.
absl::StatusOr<Aligned> Relaid(CpuDevice& device, const ir::Type& from, std::span<uint8_t> bytes,
                               const ir::Type& to) {
  FORGE_ASSIGN_OR_RETURN(const size_t size, BytesOf(to));
  Aligned out(size);
  const ir::AnyOp op = ir::Relayout{to};
  FORGE_ASSIGN_OR_RETURN(const ProgramRef program, CompileOne(device, op, {&from, 1}, {&to, 1}));
  FORGE_RETURN_IF_ERROR(RunProgram(program, {bytes, out.span()}));
  return out;
}

}  // namespace

std::shared_ptr<CpuDevice> OpenCpu(int threads) {
  absl::StatusOr<DeviceRef> device = CpuDriver().Open(0, {.threads = threads});
  EXPECT_TRUE(device.ok()) << device.status();
  return std::static_pointer_cast<CpuDevice>(*device);
}

absl::StatusOr<RunResult> RunOn(const ir::AnyOp& op, std::span<const ir::HostValue* const> in,
                                const RunOptions& options) {
  const auto device = OpenCpu(options.threads);
  ir::Types types, laid;
  std::vector<Aligned> memory;
  std::vector<std::span<uint8_t>> operands;
  memory.reserve(2 * in.size() + 64);
  for (size_t i = 0; i < in.size(); ++i) {
    types.push_back(in[i] ? in[i]->type() : ir::Type());
    laid.push_back(types.back());
    operands.emplace_back();
    if (in[i] == nullptr) continue;
    memory.emplace_back(in[i]->bytes().size());
    if (!in[i]->bytes().empty())
      std::memcpy(memory.back().span().data(), in[i]->bytes().data(), in[i]->bytes().size());
    operands.back() = memory.back().span();
    if (i >= options.in.size() || !options.in[i]) continue;
    laid.back() = types.back().With(options.in[i]);
    FORGE_ASSIGN_OR_RETURN(Aligned moved, Relaid(*device, types.back(), operands.back(), laid[i]));
    memory.push_back(std::move(moved));
    operands.back() = memory.back().span();
  }
  FORGE_ASSIGN_OR_RETURN(const ir::Types results, op.Infer(types));
  ir::Types out = results;
  for (size_t i = 0; i < out.size(); ++i) {
    if (i < options.out.size() && options.out[i]) out[i] = out[i].With(options.out[i]);
    FORGE_ASSIGN_OR_RETURN(const size_t bytes, BytesOf(out[i]));
    memory.emplace_back(bytes);
    operands.push_back(memory.back().span());
  }
  FORGE_ASSIGN_OR_RETURN(const ProgramRef program, CompileOne(*device, op, laid, out));
  if (const auto update = program->update())
    std::memcpy(operands[in.size()].data(), operands[update->operand].data(),
                operands[in.size()].size());
  FORGE_RETURN_IF_ERROR(RunProgram(program, operands));
  RunResult r{{}, std::string(program->kernel())};
  for (size_t i = 0; i < out.size(); ++i) {
    std::span<uint8_t> bytes = operands[in.size() + i];
    std::optional<Aligned> dense;
    if (out[i].encoding()) {
      FORGE_ASSIGN_OR_RETURN(dense, Relaid(*device, out[i], bytes, results[i]));
      bytes = dense->span();
    }
    FORGE_ASSIGN_OR_RETURN(
        ir::HostValue v,
        ir::HostValue::Of(results[i].dtype(), ir::Constants(results[i].shape()),
                          Bytes(std::vector<uint8_t>(bytes.begin(), bytes.end()))));
    r.results.push_back(std::move(v));
  }
  return r;
}

}  // namespace forge::cpu
