# SPDX-License-Identifier: Apache-2.0
# What every target of Forge is compiled with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One kind of code everywhere, so that executables and libraries may share precompiled headers.
# Designated initialisers name what differs from the defaults.
add_compile_options(-fPIC -Wall -Wextra -Wno-missing-field-initializers)
add_link_options(-Wl,--as-needed)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It sees an uninitialised read in moves of std::optional and its like (GCC bug 80635), at -O1 also in version 14.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # g++ 12 sees overflows in the inlined operators of std::string (105329, 105651).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
  # GCC collects garbage whenever its heap has grown by a third, 128 MiB at most: a tenth of the time of a unit, which
  # takes 1.3 GB at most without.
  add_compile_options("SHELL:--param ggc-min-expand=1000" "SHELL:--param ggc-min-heapsize=1048576")
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's std::stable_sort uses what it deprecates itself.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
endif()

if(FORGE_SANITIZE)
  add_compile_options(-fsanitize=${FORGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${FORGE_SANITIZE})
endif()

# The build tree has the shape of the install tree: bin/ finds its libraries in ../lib.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/archive")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/forge;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# The content of cmake/pch.h and of the folders in which what it includes of the project lies.
file(GLOB own CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/pch.h" "${PROJECT_SOURCE_DIR}/base/*.h"
     "${PROJECT_SOURCE_DIR}/ir/dim/*.h" "${PROJECT_SOURCE_DIR}/ir/type/*.h" "${PROJECT_SOURCE_DIR}/ir/op/*.h"
     "${PROJECT_SOURCE_DIR}/ir/graph/*.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${own})
set(FORGE_PRECOMPILED_HASH "")
foreach(header IN LISTS own)
  file(SHA256 "${header}" hash)
  string(SHA256 FORGE_PRECOMPILED_HASH "${FORGE_PRECOMPILED_HASH}${hash}")
endforeach()

find_program(FORGE_CCACHE ccache)
mark_as_advanced(FORGE_CCACHE)
if(FORGE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The base folder makes paths relative, so that checkouts share objects; the sloppiness is what ccache asks
  # for before it reuses an object made with a precompiled header. The namespace is part of every key: otherwise
  # ccache would give back a precompiled header made before a comment changed, which the compiler then takes for
  # one of other files.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      CCACHE_NAMESPACE=${FORGE_PRECOMPILED_HASH} CCACHE_PCH_EXTSUM=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      ${FORGE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# Names the content of TARGET's precompiled header for ccache, since the compiler never makes the same file twice:
# what it is made by, with which flags, from which headers.
function(forge_sum_precompiled_header target)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  get_target_property(headers ${target} PRECOMPILE_HEADERS)
  file(WRITE "${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum"
       "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} "
       "${FORGE_SANITIZE} ${headers} absl ${absl_VERSION} gtest ${GTest_VERSION} "
       "dnnl ${dnnl_VERSION} CLI11 ${CLI11_VERSION} json ${nlohmann_json_VERSION}\n")
endfunction()

# Sets OUT to options under which __FILE__ leaves out DIRECTORY, so that messages name files as the repository
# does and binaries carry no path of the build machine.
function(forge_hide_directory out directory)
  if(FORGE_CCACHE)
    # ccache hands relative paths to the compiler; an absolute one here would tie objects to this checkout.
    file(RELATIVE_PATH directory "${CMAKE_BINARY_DIR}" "${directory}")
  endif()
  set(${out} "-fmacro-prefix-map=${directory}/=" PARENT_SCOPE)
endfunction()
forge_hide_directory(hide_source "${PROJECT_SOURCE_DIR}")
add_compile_options(${hide_source})
