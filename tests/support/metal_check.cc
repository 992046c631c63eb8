// SPDX-License-Identifier: Apache-2.0
#include "tests/support/metal_check.h"

#include <spirv_cross/spirv_cross_c.h>

#include <memory>

#include "tests/support/spirv_check.h"

namespace forge {
namespace {

constexpr unsigned kMetal = 20300;  // the first with 64-bit integers and all subgroup operations

// The Metal source, or null with the context's last error.
const char* Translate(spvc_context context, std::span<const uint32_t> words) {
  spvc_parsed_ir ir = nullptr;
  spvc_compiler compiler = nullptr;
  spvc_compiler_options options = nullptr;
  const char* source = nullptr;
  const bool ok =
      spvc_context_parse_spirv(context, words.data(), words.size(), &ir) == SPVC_SUCCESS &&
      spvc_context_create_compiler(context, SPVC_BACKEND_MSL, ir, SPVC_CAPTURE_MODE_TAKE_OWNERSHIP,
                                   &compiler) == SPVC_SUCCESS &&
      spvc_compiler_create_compiler_options(compiler, &options) == SPVC_SUCCESS &&
      spvc_compiler_options_set_uint(options, SPVC_COMPILER_OPTION_MSL_VERSION, kMetal) ==
          SPVC_SUCCESS &&
      spvc_compiler_install_compiler_options(compiler, options) == SPVC_SUCCESS &&
      spvc_compiler_compile(compiler, &source) == SPVC_SUCCESS;
  return ok ? source : nullptr;
}

}  // namespace

std::string MetalErrors(std::span<const uint32_t> words) {
  if (DeclaresCapability(words, kFloat64Capability) ||
      DeclaresCapability(words, kDotProductCapability) ||
      DeclaresCapability(words, kCooperativeMatrixCapability))
    return {};
  spvc_context made = nullptr;
  if (spvc_context_create(&made) != SPVC_SUCCESS) return "SPIRV-Cross does not start";
  const std::unique_ptr<spvc_context_s, void (*)(spvc_context)> context(made,
                                                                        &spvc_context_destroy);
  if (Translate(made, words) != nullptr) return {};
  return spvc_context_get_last_error_string(made);
}

std::string MetalErrors(const Program& program) {
  return ModuleErrors(program, [](std::span<const uint32_t> words) { return MetalErrors(words); });
}

}  // namespace forge
