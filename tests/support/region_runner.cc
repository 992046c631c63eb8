// SPDX-License-Identifier: Apache-2.0
#include "tests/support/region_runner.h"

#include <algorithm>

#include "ir/analysis/in_place.h"
#include "tests/support/metal_check.h"
#include "tests/support/spirv_check.h"

namespace forge::testing {
namespace {

// Operands are padded to whole words, as devices bind them.
std::vector<uint8_t> Padded(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> out(bytes.begin(), bytes.end());
  out.resize((out.size() + 3) / 4 * 4, 0xcd);
  return out;
}

absl::Status ValidateSpirv(const codegen::Kernel& k, const codegen::Caps& caps) {
  if (caps.async_copies) return absl::OkStatus();  // SPIR-V has none
  const std::vector<uint32_t> words = codegen::PrintSpirv(k, caps);
  if (const std::string errors = SpirvErrors(words); !errors.empty())
    return Internal("SPIR-V: {}", errors);
  if (const std::string errors = MetalErrors(words); !errors.empty())
    return Internal("SPIRV-Cross: {}", errors);
  return absl::OkStatus();
}

bool HasParts(const codegen::Kernel& k) {
  return std::any_of(k.views.begin(), k.views.end(), [](const auto& v) { return v.parts > 1; });
}

// Runs a launch as it is lowered: each part of an operand is memory of its own.
absl::Status RunInParts(const codegen::Launch& l, const codegen::Caps& caps,
                        std::vector<std::vector<uint8_t>>& memory) {
  struct Part {
    std::vector<uint8_t>* whole = nullptr;
    std::ptrdiff_t at = 0;
    std::vector<uint8_t> bytes;
  };
  std::vector<Part> parts(l.operands.size());
  for (const codegen::View& v : l.kernel.views) {
    if (v.space != codegen::Space::kGlobal) continue;
    for (int n = 0; n < v.parts; ++n) {
      const auto operand = static_cast<size_t>(v.operand) + static_cast<size_t>(n);
      std::vector<uint8_t>& whole = memory[static_cast<size_t>(l.operands[operand])];
      const auto size = static_cast<std::ptrdiff_t>(whole.size());
      const std::ptrdiff_t at = n * codegen::PartBytes(v);
      const std::ptrdiff_t end = v.parts == 1 ? size : std::min(size, at + codegen::PartBytes(v));
      if (end - at > caps.max_operand_bytes)
        return Internal("{} binds {} bytes at once", v.name, end - at);
      parts[operand] = {&whole, at, {whole.begin() + at, whole.begin() + end}};
    }
  }
  std::vector<std::vector<uint8_t>*> operands;
  for (Part& p : parts) operands.push_back(&p.bytes);
  FORGE_RETURN_IF_ERROR(RunKernel(codegen::Lower(l.kernel, caps), operands));
  for (const Part& p : parts)
    if (p.whole != nullptr) std::copy(p.bytes.begin(), p.bytes.end(), p.whole->begin() + p.at);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ir::Function> FunctionOf(const ir::AnyOp& op, ir::TypeSpan in) {
  auto f = std::make_unique<ir::Function>("region");
  ir::Values operands;
  for (size_t i = 0; i < in.size(); ++i)
    operands.push_back(in[i] ? f->Argument(fmt::format("x{}", i), in[i]) : ir::Value{});
  const ir::Values out = f->Add(op, operands);
  for (size_t i = 0; i < out.size(); ++i) f->Return(fmt::format("y{}", i), out[i]);
  return f;
}

absl::StatusOr<std::vector<ir::HostValue>> RunProgram(const codegen::Region& region,
                                                      const codegen::Program& program,
                                                      std::span<const ir::HostValue* const> in,
                                                      const MachineOptions& options) {
  const ir::Function& body = region.body();
  std::vector<std::vector<uint8_t>> memory;
  for (const ir::HostValue* v : in) memory.push_back(Padded(v->bytes()));
  std::vector<ir::HostValue> out;
  for (const ir::Function::Result& r : body.results()) {
    const ir::Type& t = body.type(r.value);
    FORGE_ASSIGN_OR_RETURN(ir::HostValue v,
                           ir::HostValue::Zeros(t.dtype(), ir::Constants(t.shape())));
    memory.push_back(std::vector<uint8_t>((v.bytes().size() + 3) / 4 * 4, 0xcd));
    if (const auto update = ir::UpdateOf(body)) memory.back() = memory[update->operand];
    out.push_back(std::move(v));
  }
  for (int64_t bytes : program.scratch_bytes)
    memory.emplace_back(static_cast<size_t>(bytes), uint8_t{0xcd});
  for (const codegen::Launch& l : program.launches) {
    if (absl::Status s = codegen::Verify(l.kernel, region.caps()); !s.ok())
      return Annotate(s, codegen::ToText(l.kernel));
    FORGE_RETURN_IF_ERROR(ValidateSpirv(l.kernel, region.caps()));
    if (HasParts(l.kernel)) {
      FORGE_RETURN_IF_ERROR(RunInParts(l, region.caps(), memory));
      continue;
    }
    std::vector<std::vector<uint8_t>*> operands;
    for (int o : l.operands) operands.push_back(&memory[static_cast<size_t>(o)]);
    FORGE_RETURN_IF_ERROR(RunKernel(l.kernel, operands, options));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const auto to = out[i].mutable_bytes();
    std::copy_n(memory[in.size() + i].begin(), to.size(), to.begin());
  }
  return out;
}

codegen::Caps PoorestCaps() { return {}; }

codegen::Caps CpuCaps() {
  codegen::Caps c;
  c.max_workgroup_invocations = c.max_workgroup_x = c.max_workgroup_y = c.max_workgroup_z = 1024;
  c.max_shared_bytes = 32768;
  c.max_operands = 16;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 8;
  c.runs_on_cpu = c.subgroup_arithmetic = c.subgroup_shuffle = c.subgroup_ballot = true;
  c.subgroup_reconvergence = true;
  c.f64 = c.i8 = c.i16 = c.i64 = c.storage8 = c.storage16 = true;
  c.signed_zero_inf_nan = c.large_divisors = true;
  return c;
}

codegen::Caps SmallRangeCaps() {
  codegen::Caps c = GpuCaps();
  c.max_operands = 30;
  c.max_operand_bytes = 512;
  return c;
}

codegen::Caps PoorSmallRangeCaps() {
  codegen::Caps c;
  c.max_operands = 30;
  c.max_operand_bytes = 512;
  return c;
}

codegen::Caps MatrixCaps() {
  codegen::Caps c = GpuCaps();
  c.memory_model = true;
  c.matrices = {{.a = DType::kF16, .b = DType::kF16, .c = DType::kF32, .m = 16, .n = 8, .k = 16}};
  return c;
}

codegen::Caps MatrixElementCaps() {
  codegen::Caps c = MatrixCaps();
  c.matrix_elements = true;
  return c;
}

codegen::Caps GroupMatrixCaps() {
  codegen::Caps c = MatrixElementCaps();
  c.elements_together = 2, c.workgroup_elements_together = 4;
  c.max_workgroup_invocations = c.max_workgroup_x = 1024;
  c.max_large_shared_bytes = 227 << 10;
  c.async_copies = c.matrix_values = c.i16 = c.storage16 = true;
  for (const DType t : {DType::kF16, DType::kBF16})
    c.workgroup_matrices.push_back({.a = t, .b = t, .c = DType::kF32, .m = 64, .n = 16, .k = 16});
  return c;
}

codegen::Caps GpuCaps() {
  codegen::Caps c = CpuCaps();
  c.runs_on_cpu = false;
  c.f16 = c.int_dot = c.int_dot_signed_accelerated = c.int_dot_unsigned_accelerated =
      c.int_dot_mixed_accelerated = true;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 32;
  return c;
}

}  // namespace forge::testing
