# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/NAME_fuzzer.cc -> the libFuzzer program fuzz-NAME; the target `forge_fuzz` stands for all of them and
# for the program that writes their first inputs. tests/fuzz/run builds and starts them.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR NOT FORGE_SANITIZE MATCHES "fuzzer-no-link")
  message(FATAL_ERROR "FORGE_FUZZ needs clang and its flags: configure with the preset 'fuzz'.")
endif()

# The layers as an archive, since no backend's plug-in takes part: a model is lowered for the reference device.
add_library(forge_fuzzed STATIC)
foreach(layer IN ITEMS base ir formats runtime)
  target_sources(forge_fuzzed PRIVATE $<TARGET_OBJECTS:forge_${layer}>)
  target_link_libraries(forge_fuzzed PUBLIC forge_${layer}_headers)
  get_target_property(libraries forge_${layer} LINK_LIBRARIES)
  list(FILTER libraries EXCLUDE REGEX "^forge_(base|ir|formats|runtime)")
  target_link_libraries(forge_fuzzed PUBLIC ${libraries})
endforeach()

# What the targets share, and what writes their first inputs.
file(GLOB seeds CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*seeds.cc")
file(GLOB fuzzers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzzer.cc")
file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cc")
list(REMOVE_ITEM support ${seeds} ${fuzzers})
add_library(forge_fuzz_support OBJECT ${support})
target_include_directories(forge_fuzz_support PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(forge_fuzz_support PUBLIC forge_fuzzed ZLIB::ZLIB)

add_executable(fuzz-seeds ${seeds} "${PROJECT_SOURCE_DIR}/tests/support/onnx_model.cc")
target_compile_definitions(fuzz-seeds PRIVATE "FORGE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
target_include_directories(fuzz-seeds PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(fuzz-seeds PRIVATE forge_fuzzed ZLIB::ZLIB)

# The machine that runs PTX in the tests.
file(GLOB_RECURSE machine CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/ptx/machine/*.cc")
add_library(forge_fuzzed_ptx STATIC ${machine})
target_include_directories(forge_fuzzed_ptx PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(forge_fuzzed_ptx PUBLIC forge_fuzzed)

set(programs "")
foreach(source IN LISTS fuzzers)
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_fuzzer$" "" name "${name}")
  add_executable(fuzz-${name} "${source}")
  target_link_libraries(fuzz-${name} PRIVATE forge_fuzz_support)
  target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
  list(APPEND programs fuzz-${name})
endforeach()
target_link_libraries(fuzz-ptx PRIVATE forge_fuzzed_ptx)
add_custom_target(forge_fuzz DEPENDS ${programs} fuzz-seeds)
