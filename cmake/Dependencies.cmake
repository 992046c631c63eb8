# SPDX-License-Identifier: Apache-2.0
# Everything Forge takes from the system, as imported targets. tools/setup installs all of it.

# Where tools/setup keeps what the distribution does not have (oneDNN 3 on Debian 12).
set(FORGE_DEPS_DIR "${PROJECT_SOURCE_DIR}/.deps" CACHE PATH "Private dependencies")
if(EXISTS "${FORGE_DEPS_DIR}/onednn/lib/cmake/dnnl" AND NOT dnnl_DIR)
  set(dnnl_DIR "${FORGE_DEPS_DIR}/onednn/lib/cmake/dnnl" CACHE PATH "oneDNN's CMake configuration")
endif()

macro(forge_require name)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "Forge needs ${name}, which was not found. Run tools/setup: it installs "
                        "everything the build needs.")
  endif()
endmacro()

forge_require(Threads)
forge_require(PkgConfig)
forge_require(absl)
forge_require(FlatBuffers)
forge_require(Protobuf)
forge_require(ONNX)
forge_require(nlohmann_json)
forge_require(fmt)
forge_require(ZLIB)
forge_require(PNG)
forge_require(JPEG)
forge_require(CLI11)
forge_require(Vulkan)
forge_require(SPIRV-Headers)
forge_require(SPIRV-Tools)
forge_require(Volk MODULE)
forge_require(dnnl 3.0)
forge_require(hwy)
forge_require(OpenMP COMPONENTS CXX)
if(FORGE_TESTS)
  forge_require(GTest)
  forge_require(spirv_cross_c_shared)
endif()

foreach(program IN ITEMS flatc glslangValidator)
  find_program(FORGE_${program} ${program})
  mark_as_advanced(FORGE_${program})
  if(NOT FORGE_${program})
    message(FATAL_ERROR "Forge needs the program ${program}. Run tools/setup.")
  endif()
endforeach()

pkg_check_modules(xxhash REQUIRED QUIET IMPORTED_TARGET libxxhash)
add_library(forge_xxhash INTERFACE)
target_link_libraries(forge_xxhash INTERFACE PkgConfig::xxhash)

# Optional: without it, the op regex_full_match is refused when it runs.
pkg_check_modules(re2 QUIET re2)
add_library(forge_re2 INTERFACE)
if(re2_FOUND)
  target_link_libraries(forge_re2 INTERFACE ${re2_LINK_LIBRARIES})
  set_source_files_properties("${PROJECT_SOURCE_DIR}/ir/ops/host/regex.cc" PROPERTIES
    COMPILE_DEFINITIONS FORGE_HAS_RE2
    SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endif()

# By pkg-config: Debian's CMake file for it also asks for programs of another package.
pkg_check_modules(libzip REQUIRED QUIET IMPORTED_TARGET libzip)

# The target's name differs between ONNX 1.12 and 1.17; its headers are old code, hence SYSTEM.
add_library(forge_onnx_proto INTERFACE)
if(TARGET ONNX::onnx_proto)
  target_link_libraries(forge_onnx_proto INTERFACE ONNX::onnx_proto)
else()
  target_link_libraries(forge_onnx_proto INTERFACE onnx_proto)
endif()

# Only the header-only verifier and builder are used.
find_path(FORGE_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
mark_as_advanced(FORGE_FLATBUFFERS_INCLUDE)
add_library(forge_flatbuffers_headers INTERFACE)
target_include_directories(forge_flatbuffers_headers SYSTEM INTERFACE ${FORGE_FLATBUFFERS_INCLUDE})
