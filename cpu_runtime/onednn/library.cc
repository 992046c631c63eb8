// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/onednn/library.h"

namespace forge::cpu {

const dnnl::engine& Engine() {
  static const dnnl::engine kEngine(dnnl::engine::kind::cpu, 0);
  return kEngine;
}

dnnl::memory::data_type LibraryType(DType t) {
  switch (t) {
    case DType::kF32:
      return dnnl::memory::data_type::f32;
    case DType::kF16:
      return dnnl::memory::data_type::f16;
    case DType::kBF16:
      return dnnl::memory::data_type::bf16;
    case DType::kI32:
      return dnnl::memory::data_type::s32;
    case DType::kI8:
      return dnnl::memory::data_type::s8;
    case DType::kU8:
      return dnnl::memory::data_type::u8;
    default:
      return dnnl::memory::data_type::undef;
  }
}

dnnl::memory::desc DescOf(const View& v) { return {v.shape, LibraryType(v.dtype), v.strides}; }

dnnl::memory::desc ImageDescOf(const View& v) {
  std::vector<int64_t> last(v.shape.size(), 1);
  int64_t step = v.shape[1];
  for (size_t a = last.size(); a-- > 2; step *= v.shape[a]) last[a] = step;
  last[0] = step;
  for (size_t a = 0; a < last.size(); ++a)
    if (v.shape[a] != 1 && v.strides[a] != last[a]) return DescOf(v);
  return {v.shape, LibraryType(v.dtype), last};
}

dnnl::memory::desc AnyLayout(const dnnl::memory::desc& d) {
  return {d.get_dims(), d.get_data_type(), dnnl::memory::format_tag::any};
}

absl::StatusOr<std::unique_ptr<PrimitiveCall::ArgumentSet>> PrimitiveCall::Take() const {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto set = std::move(idle_.back());
      idle_.pop_back();
      return set;
    }
  }
  auto set = std::make_unique<ArgumentSet>();
  FORGE_RETURN_IF_ERROR(Guarded("arguments", [&] {
    set->stream = dnnl::stream(Engine());
    for (const Argument& a : arguments_) {
      set->memory.emplace_back(a.desc, Engine(), nullptr);
      set->list.push_back({a.index, set->memory.back().get()});
    }
  }));
  return set;
}

absl::Status PrimitiveCall::Run(std::span<void* const> handles) const {
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<ArgumentSet> set, Take());
  for (size_t i = 0; i < handles.size(); ++i)
    if (dnnl_memory_set_data_handle(set->memory[i].get(), handles[i]) != dnnl_success)
      return Internal("oneDNN does not accept argument {}", arguments_[i].index);
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), set->stream.get(), static_cast<int>(set->list.size()), set->list.data());
  if (status != dnnl_success) return Internal("oneDNN: the primitive failed ({})", int{status});
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(set));
  return absl::OkStatus();
}

std::string KernelName(const char* implementation) {
  return fmt::format("dnnl:{}", implementation);
}

}  // namespace forge::cpu
