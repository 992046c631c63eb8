# SPDX-License-Identifier: Apache-2.0
# tests/FOLDER/**.cc -> the program forge_FOLDER_test, run by ctest as a whole: one process for a
# folder costs less than one for each of thousands of cases. Programs that take minutes are divided
# into several entries, NAME_1 to NAME_n, each of which runs every n-th test; the cases of an op are a test.
#
# Labels. fast: tests whose suite is not named Slow...; slow: those that are; device: the whole program
# may be run on any Vulkan device of tests/lab.

set(FORGE_DEVICE_TESTS vk_runtime conformance)

# How many entries a program is divided into; 1 unless told. No entry should take over a tenth of its limit.
set(FORGE_ENTRIES_conformance 12)
set(FORGE_ENTRIES_vulkan 4)
set(FORGE_ENTRIES_tools 2)
set(FORGE_ENTRIES_codegen 2)

file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
if(NOT support)
  set(support "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
endif()
add_library(forge_test_support OBJECT ${support})
target_include_directories(forge_test_support PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(forge_test_support PUBLIC forge forge_codegen_headers forge_flatbuffers_headers
  forge_onnx_proto forge_xxhash nlohmann_json::nlohmann_json PNG::PNG JPEG::JPEG ZLIB::ZLIB GTest::gtest GTest::gmock SPIRV-Tools-static
  spirv-cross-c-shared SPIRV-Headers::SPIRV-Headers)
# Tests are compiled far more often than they are waited for, and most of their time is the library's.
target_compile_options(forge_test_support PUBLIC $<$<CONFIG:Release>:-O0>)
# It interprets kernels, one instruction of one invocation after the other. (g++ 12 crashes on a precompiled header
# of another level.)
set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/support/kernel_machine.cc" PROPERTIES
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O2> SKIP_PRECOMPILE_HEADERS ON)
target_precompile_headers(forge_test_support PRIVATE <cmake/pch.h> <gtest/gtest.h> <gmock/gmock.h>)
forge_sum_precompiled_header(forge_test_support)

# Tells those of the sources given that ask for FORGE_SOURCE_DIR and FORGE_BINARY_DIR; the others stay the same in
# every checkout, for ccache.
function(forge_tell_folders)
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" asks REGEX "FORGE_(SOURCE|BINARY)_DIR" LIMIT_COUNT 1)
    if(asks)
      set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS
        "FORGE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";FORGE_BINARY_DIR=\"${PROJECT_BINARY_DIR}\"")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  endforeach()
endfunction()
forge_tell_folders(${support})

# A Vulkan layer that makes a driver wrong, and its manifest.
set(FORGE_LAYER_DIR "${PROJECT_BINARY_DIR}/fault_injection_layer")
add_library(forge_fault_injection_layer MODULE "${PROJECT_SOURCE_DIR}/tests/lab/fault_injection_layer.cc")
target_link_libraries(forge_fault_injection_layer PRIVATE Vulkan::Headers SPIRV-Headers::SPIRV-Headers)
set_target_properties(forge_fault_injection_layer PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${FORGE_LAYER_DIR}")
configure_file("${PROJECT_SOURCE_DIR}/tests/lab/fault_injection_layer.json.in" "${FORGE_LAYER_DIR}/fault_injection_layer.json" COPYONLY)

# A machine that runs PTX, and a libcuda.so.1 over it, which is found where LD_LIBRARY_PATH names its folder.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/ptx/machine/*.cc")
add_library(forge_ptx_machine OBJECT ${sources})
target_include_directories(forge_ptx_machine PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(forge_ptx_machine PUBLIC absl::status absl::statusor absl::strings fmt::fmt)
# Products and sums are rounded separately unless a kernel asks for fma. The tests run where they are built, so the
# machine may use what that processor has.
target_compile_options(forge_ptx_machine PRIVATE $<$<CONFIG:Release>:-O3> -ffp-contract=off -fno-math-errno
                       -fno-trapping-math)
include(CheckCXXSourceRuns)
set(CMAKE_REQUIRED_FLAGS "-march=x86-64-v3")
check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") ? 0 : 1; }"
                      FORGE_HOST_IS_X86_64_V3)
unset(CMAKE_REQUIRED_FLAGS)
if(FORGE_HOST_IS_X86_64_V3)
  target_compile_options(forge_ptx_machine PRIVATE -march=x86-64-v3)
endif()
# It computes under other rounding modes.
set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/ptx/machine/instructions/directed.cc" PROPERTIES COMPILE_OPTIONS -frounding-math)

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cuda/driver/*.cc")
add_library(forge_emulated_cuda SHARED ${sources} $<TARGET_OBJECTS:forge_base>)
target_link_libraries(forge_emulated_cuda PRIVATE forge_ptx_machine Threads::Threads ${CMAKE_DL_LIBS})
# Its own copies of what libforge has, too, are not to be mixed with those.
target_link_options(forge_emulated_cuda PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/tests/cuda/driver/exports.map")
set_target_properties(forge_emulated_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/emulated_cuda")
# And a libcublasLt.so.13 over that, which is found where FORGE_CUDA_PATH names the folder.
add_library(forge_emulated_cublaslt SHARED "${PROJECT_SOURCE_DIR}/tests/cuda/cublaslt/cublaslt.cc" $<TARGET_OBJECTS:forge_base>)
target_include_directories(forge_emulated_cublaslt PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(forge_emulated_cublaslt PRIVATE absl::status absl::statusor absl::strings fmt::fmt Threads::Threads
                      ${CMAKE_DL_LIBS})
target_link_options(forge_emulated_cublaslt PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/tests/cuda/cublaslt/exports.map")
set_target_properties(forge_emulated_cublaslt PROPERTIES OUTPUT_NAME cublasLt SOVERSION 13
                      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/emulated_cuda")
# And the library of ranges that FORGE_CUDA_NVTX asks for.
add_library(forge_emulated_nvtx SHARED "${PROJECT_SOURCE_DIR}/tests/cuda/nvtx/nvtx.cc")
set_target_properties(forge_emulated_nvtx PROPERTIES OUTPUT_NAME nvtx3interop SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/emulated_cuda")
add_dependencies(forge_emulated_cuda forge_emulated_cublaslt forge_emulated_nvtx)

# Adds COUNT ctest entries for PROGRAM's tests that FILTER selects.
function(forge_add_test name program filter count)
  foreach(entry RANGE 1 ${count})
    set(entry_name ${name})
    set(environment "GTEST_BRIEF=1")
    if(fast IN_LIST ARGN)
      # Kernels run once here, and lavapipe would spend a third of the time in LLVM's passes. tests/lab/run-tests
      # and the slow tests have it run them.
      list(APPEND environment "GALLIVM_PERF=nopt")
    endif()
    if(count GREATER 1)
      set(entry_name ${name}_${entry})
      math(EXPR index "${entry} - 1")
      list(APPEND environment "GTEST_TOTAL_SHARDS=${count}" "GTEST_SHARD_INDEX=${index}")
    endif()
    list(APPEND environment "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/${entry_name}.xml")
    if(FORGE_SANITIZE STREQUAL "thread")
      # Suppressions look at both stacks of a race, and a short history has lost the second one.
      list(APPEND environment "TSAN_OPTIONS=history_size=7 suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
    elseif(FORGE_SANITIZE MATCHES "address")
      # Whole stacks of allocations took 30 % of a long program. One that is run by hand keeps them.
      # GCC 12's leak checker follows stale blocks of thread-local memory of plug-ins that were closed, and crashes.
      list(APPEND environment "ASAN_OPTIONS=malloc_context_size=4"
           "LSAN_OPTIONS=use_tls=0 print_suppressions=0 suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp")
    endif()
    # In seconds; a sanitizer makes the interpreter of kernels several times slower.
    set(timeout 1200)
    if(FORGE_SANITIZE)
      set(timeout 3600)
    endif()
    add_test(NAME ${entry_name} COMMAND ${program} --gtest_filter=${filter})
    set_tests_properties(${entry_name} PROPERTIES LABELS "${ARGN}" TIMEOUT ${timeout}
      ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# Alone in a unity build: edits of the element-wise table compile it again. It computes each function at many numbers.
set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/ir/test_rows.cc" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O2> SKIP_PRECOMPILE_HEADERS ON)

# The program of tests/FOLDER, and its entries.
function(forge_test_folder folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${folder}/*.cc")
  if(NOT sources)
    return()
  endif()
  list(FILTER sources EXCLUDE REGEX "/tests/(ptx/machine|cuda/driver|cuda/cublaslt)/")
  forge_tell_folders(${sources})
  string(REGEX REPLACE "^cuda$" "emulated_cuda" name "${folder}")
  string(REGEX REPLACE "_runtime$" "" name "${name}")
  string(REGEX REPLACE "^vk$" "vulkan" name "${name}")
  set(program forge_${name}_test)
  add_executable(${program} ${sources})
  target_link_libraries(${program} PRIVATE forge_test_support)
  if(TARGET forge_${name}_objects)
    target_link_libraries(${program} PRIVATE forge_${name}_objects)
  endif()
  target_precompile_headers(${program} REUSE_FROM forge_test_support)
  get_property(plugins GLOBAL PROPERTY FORGE_PLUGINS)
  get_property(helpers GLOBAL PROPERTY FORGE_HELPERS)
  get_property(tools GLOBAL PROPERTY FORGE_TOOLS)
  if(folder MATCHES "^(runtime|vk_runtime|cuda_runtime|conformance|tools|models|examples)$")
    add_dependencies(${program} ${plugins} ${helpers} forge_fault_injection_layer)
  endif()
  if(folder MATCHES "^cuda(_runtime)?$")
    add_dependencies(${program} forge_emulated_cuda)
    target_link_libraries(${program} PRIVATE ${CMAKE_DL_LIBS})
  endif()
  if(folder STREQUAL "ptx")
    target_link_libraries(${program} PRIVATE forge_ptx_machine)
  endif()
  if(folder STREQUAL "examples")
    add_dependencies(${program} read_text)
  endif()
  if(folder STREQUAL "tools")
    target_link_libraries(${program} PRIVATE forge_tool_support)
  endif()
  if(folder MATCHES "^(tools|models)$")
    add_dependencies(${program} ${tools})
    if(TARGET forge_model_files)
      add_dependencies(${program} forge_model_files)
    endif()
  endif()
  set(device "")
  if(folder IN_LIST FORGE_DEVICE_TESTS)
    set(device device)
    set_property(GLOBAL APPEND PROPERTY FORGE_DEVICE_PROGRAMS ${program})
  endif()
  set(count 1)
  if(DEFINED FORGE_ENTRIES_${name})
    set(count ${FORGE_ENTRIES_${name}})
  endif()
  forge_add_test(${name} ${program} "-Slow*:*/Slow*" ${count} fast ${device})
  set(has_slow "")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" slow REGEX "^(TYPED_)?TEST(_[FP])?\\(Slow|^INSTANTIATE_TEST_SUITE_P\\([A-Za-z0-9_]*, *Slow")
    list(APPEND has_slow ${slow})
  endforeach()
  if(has_slow)
    forge_add_test(${name}_slow ${program} "Slow*:*/Slow*" 1 slow ${device})
  endif()
endfunction()

file(GLOB folders CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/tests/*")
foreach(folder IN LISTS folders)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/tests/${folder}" AND
     NOT folder MATCHES "^(support|data|lab|installed|fuzz|python)$")
    forge_test_folder(${folder})
  endif()
endforeach()

# ctest -L cuda-compile: printed CUDA kernels through NVRTC, where tests/lab/fetch-cuda has brought it.
if(TEST cuda_slow)
  set_property(TEST cuda_slow APPEND PROPERTY LABELS cuda-compile)
endif()

# A sanitizer would have to be linked into the programs of strangers, too.
if(NOT FORGE_SANITIZE AND TARGET forge_model_files)
  add_test(NAME installed COMMAND "${PROJECT_SOURCE_DIR}/tests/installed/run" "${PROJECT_BINARY_DIR}")
  set_tests_properties(installed PROPERTIES LABELS slow TIMEOUT 600)

  find_program(FORGE_python3 python3 REQUIRED)
  mark_as_advanced(FORGE_python3)
  add_test(NAME ctypes COMMAND "${FORGE_python3}" "${PROJECT_SOURCE_DIR}/tests/runtime/ctypes_test.py" $<TARGET_FILE:forge>
           "${PROJECT_BINARY_DIR}/share/forge/models/fashion.bin" "${PROJECT_SOURCE_DIR}/runtime/forge.h")
  set_tests_properties(ctypes PROPERTIES LABELS fast TIMEOUT 300)

  # The Python package, where tools/fetch-models --oracle has brought numpy.
  add_test(NAME python COMMAND "${FORGE_python3}" "${PROJECT_SOURCE_DIR}/tests/python/package_test.py" $<TARGET_FILE:forge>)
  set_tests_properties(python PROPERTIES LABELS fast TIMEOUT 300 SKIP_RETURN_CODE 77)

  # Random graphs against onnxruntime, where tools/fetch-models --oracle has brought it.
  add_test(NAME differential COMMAND "${FORGE_python3}" "${PROJECT_SOURCE_DIR}/tests/conformance/differential.py"
           --library $<TARGET_FILE:forge> --out "${PROJECT_BINARY_DIR}/differential")
  set_tests_properties(differential PROPERTIES LABELS slow TIMEOUT 600 SKIP_RETURN_CODE 77)
  # Operands of kinds that an operator may not take.
  add_test(NAME operand_kinds COMMAND "${FORGE_python3}" "${PROJECT_SOURCE_DIR}/tests/conformance/operand_kinds.py"
           --device cpu)
  set_tests_properties(operand_kinds PROPERTIES LABELS fast TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "FORGE_LIBRARY=$<TARGET_FILE:forge>")
endif()

# The programs that tests/lab/run-tests starts, one a line.
get_property(programs GLOBAL PROPERTY FORGE_DEVICE_PROGRAMS)
list(JOIN programs "\n" lines)
file(WRITE "${PROJECT_BINARY_DIR}/device-tests.txt" "${lines}\n")
