# SPDX-License-Identifier: Apache-2.0
# The layers of Forge and what is made of them.
#
# Sources include headers by their path from the repository root ("ir/graph/module.h"). To let link lines
# decide what may be included, no target sees the root itself: each folder is shown through a
# directory of its own that holds one symbolic link, build/layers/FOLDER/FOLDER -> FOLDER, and
# linking `forge_FOLDER` is what puts that directory on the include path.

# Sets OUT to the sources of FOLDER, or to the empty source where it has none yet.
function(forge_sources out folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  if(NOT sources)
    set(sources "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
  endif()
  # What a build that joins sources joins: the files of a folder of schedules or kernels, so that an edit compiles few
  # of them again, and neighbouring files of the rest. Alone stay those that include themselves once for each vector
  # extension, and those that define the composites of a folder or the element-wise table, which are edited most.
  set(rest ${sources})
  list(FILTER rest EXCLUDE REGEX "(_vector|/composites|/elementwise/elementwise|/element_rows)[.]cc$")
  set(number 0)
  foreach(source IN LISTS rest)
    if(source MATCHES "/${folder}/((schedules|kernels).*)/")
      string(REPLACE "/" "_" group "${CMAKE_MATCH_1}")
    else()
      math(EXPR group "${number} / 24")
      math(EXPR number "${number} + 1")
    endif()
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  forge_family_sources(families ${folder})
  set(${out} ${sources} ${families} PARENT_SCOPE)
endfunction()

# forge_groups(FOLDER GROUP...): the sub-folders of a layer, lowest first; a file includes its own group and lower ones.
function(forge_groups folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.h" "${PROJECT_SOURCE_DIR}/${folder}/*.cc"
       "${PROJECT_SOURCE_DIR}/${folder}/*.inc")
  set(script "${PROJECT_SOURCE_DIR}/cmake/Groups.cmake")
  set(out "${PROJECT_BINARY_DIR}/generated/${folder}_groups.stamp")
  add_custom_command(OUTPUT "${out}" DEPENDS ${sources} "${script}" VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DROOT=${PROJECT_SOURCE_DIR}" "-DFOLDER=${folder}" "-DGROUPS=${ARGN}"
            "-DSOURCES=${sources}" "-DOUT=${out}" -P "${script}"
    COMMENT "includes between the groups of ${folder}")
  add_custom_target(forge_${folder}_groups ALL DEPENDS "${out}")
endfunction()

# Makes FOLDER visible to what links `forge_FOLDER_headers`.
function(forge_headers folder)
  set(view "${PROJECT_BINARY_DIR}/layers/${folder}")
  file(MAKE_DIRECTORY "${view}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${folder}" "${view}/${folder}" SYMBOLIC)
  add_library(forge_${folder}_headers INTERFACE)
  target_include_directories(forge_${folder}_headers INTERFACE $<BUILD_INTERFACE:${view}>)
  forge_hide_directory(hide_view "${view}")
  target_compile_options(forge_${folder}_headers INTERFACE $<BUILD_INTERFACE:${hide_view}>)
  if(folder STREQUAL "ir")
    target_include_directories(forge_ir_headers INTERFACE $<BUILD_INTERFACE:${FORGE_ROWS_DIR}>)
  endif()
endfunction()

# Of code that runs once for a model, a run or a command, not once for an element: it takes a third of the time less
# to compile. What computes on CPUs is the plug-in cpu, and has more.
set(FORGE_ONCE_OPTIONS $<$<CONFIG:Release>:-O1>)

# The headers that most sources need, compiled once. The owner defines only what all layers do: the compiler refuses a
# precompiled header whose macros the including source does not have.
add_library(forge_pch OBJECT "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
target_compile_options(forge_pch PRIVATE ${FORGE_ONCE_OPTIONS})
target_link_libraries(forge_pch PRIVATE forge_base_headers forge_ir_headers absl::status absl::statusor absl::strings
                      fmt::fmt)
target_include_directories(forge_pch PRIVATE "${PROJECT_SOURCE_DIR}/cmake")
target_precompile_headers(forge_pch PRIVATE <pch.h>)
forge_sum_precompiled_header(forge_pch)

# Has TARGET compiled like the layers. (base does not see what is above it.)
function(forge_once target)
  target_compile_options(${target} PRIVATE ${FORGE_ONCE_OPTIONS})
  if(NOT target STREQUAL "forge_base")
    target_precompile_headers(${target} REUSE_FROM forge_pch)
  endif()
endfunction()

# forge_layer(FOLDER LINK targets that users of its headers need too  PRIVATE targets for its sources)
function(forge_layer folder)
  cmake_parse_arguments(arg "" "" "LINK;PRIVATE" ${ARGN})
  forge_headers(${folder})
  forge_sources(sources ${folder})
  add_library(forge_${folder} OBJECT ${sources})
  set_target_properties(forge_${folder} PROPERTIES UNITY_BUILD_MODE GROUP)
  target_link_libraries(forge_${folder} PUBLIC forge_${folder}_headers ${arg_LINK}
                                        PRIVATE ${arg_PRIVATE})
  target_compile_definitions(forge_${folder} PRIVATE FORGE_VERSION="${PROJECT_VERSION}")
  forge_once(forge_${folder})
endfunction()

# forge_library(NAME LAYERS folders): the one shared library.
function(forge_library name)
  cmake_parse_arguments(arg "" "" "LAYERS" ${ARGN})
  add_library(${name} SHARED)
  add_library(Forge::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  # A wheel is an archive without links: each name of a library would be a copy of it.
  if(NOT SKBUILD)
    set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION}
                          SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  endif()
  target_link_options(${name} PRIVATE -Wl,--no-undefined)
  target_compile_features(${name} PUBLIC cxx_std_20)
  foreach(layer IN LISTS arg_LAYERS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:forge_${layer}>)
    # Only what the layer links from outside: the layers themselves are in already.
    foreach(scope IN ITEMS LINK_LIBRARIES)
      get_target_property(libraries forge_${layer} ${scope})
      list(FILTER libraries EXCLUDE REGEX "^forge_(base|ir|formats|codegen|runtime)")
      target_link_libraries(${name} PRIVATE ${libraries})
    endforeach()
    if(NOT layer STREQUAL "codegen")
      get_target_property(view forge_${layer}_headers INTERFACE_INCLUDE_DIRECTORIES)
      target_include_directories(${name} INTERFACE ${view})
      forge_hide_directory(hide_view "${PROJECT_BINARY_DIR}/layers/${layer}")
      target_compile_options(${name} INTERFACE $<BUILD_INTERFACE:${hide_view}>)
    endif()
  endforeach()
  target_include_directories(${name} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/forge>)
  # What the public headers use.
  target_link_libraries(${name} PUBLIC absl::status absl::statusor absl::strings absl::span
    absl::flat_hash_map absl::flat_hash_set absl::inlined_vector fmt::fmt)
endfunction()

# forge_plugin(NAME FOLDER folder [LAYERS more layers it sees] LINK targets [PRECOMPILE headers]): libforge_NAME.so,
# opened by name at run time; `forge_NAME_objects` are its sources once more, for its own tests. One that precompiles
# headers of its own computes: it has the whole of the compiler's optimisation.
function(forge_plugin name)
  cmake_parse_arguments(arg "" "FOLDER" "LAYERS;LINK;PRECOMPILE" ${ARGN})
  forge_headers(${arg_FOLDER})
  forge_sources(sources ${arg_FOLDER})
  add_library(forge_${name}_objects OBJECT ${sources})
  set_target_properties(forge_${name}_objects PROPERTIES UNITY_BUILD_MODE GROUP)
  target_link_libraries(forge_${name}_objects PUBLIC forge forge_${arg_FOLDER}_headers ${arg_LINK})
  foreach(layer IN LISTS arg_LAYERS)
    target_link_libraries(forge_${name}_objects PUBLIC forge_${layer}_headers)
  endforeach()
  target_compile_definitions(forge_${name}_objects PRIVATE FORGE_VERSION="${PROJECT_VERSION}")
  if(arg_PRECOMPILE)
    target_include_directories(forge_${name}_objects PRIVATE "${PROJECT_SOURCE_DIR}/cmake")
    target_precompile_headers(forge_${name}_objects PRIVATE <pch.h> ${arg_PRECOMPILE})
    forge_sum_precompiled_header(forge_${name}_objects)
  else()
    forge_once(forge_${name}_objects)
  endif()
  add_library(forge_${name} MODULE)
  target_link_libraries(forge_${name} PRIVATE forge_${name}_objects)
  set_target_properties(forge_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_options(forge_${name} PRIVATE -Wl,--no-undefined)
  set_property(GLOBAL APPEND PROPERTY FORGE_PLUGINS forge_${name})
endfunction()

# forge_tools(FOLDER LINK targets): each FOLDER/forge_NAME.cc becomes the program forge-NAME.
function(forge_tools folder)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*/*.cc")
  file(GLOB mains CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/forge_*.cc")
  if(NOT support)
    set(support "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
  endif()
  add_library(forge_tool_support OBJECT ${support})
  target_link_libraries(forge_tool_support PUBLIC forge forge_codegen_headers ${arg_LINK})
  target_include_directories(forge_tool_support PUBLIC "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(forge_tool_support PUBLIC FORGE_VERSION="${PROJECT_VERSION}")
  # Their tests link these objects too, and have a level of their own.
  set(options $<$<CONFIG:Release>:-Og>)
  target_compile_options(forge_tool_support PRIVATE ${options})
  target_precompile_headers(forge_tool_support PRIVATE <cmake/pch.h> <nlohmann/json.hpp>)
  forge_sum_precompiled_header(forge_tool_support)
  foreach(main IN LISTS mains)
    cmake_path(GET main STEM stem)
    string(REPLACE "_" "-" program "${stem}")
    add_executable(${program} "${main}")
    target_link_libraries(${program} PRIVATE forge_tool_support)
    target_compile_options(${program} PRIVATE ${options})
    target_precompile_headers(${program} REUSE_FROM forge_tool_support)
    set_property(GLOBAL APPEND PROPERTY FORGE_TOOLS ${program})
  endforeach()
endfunction()

# forge_helper(NAME source): a program that libforge starts, so it lies beside it.
function(forge_helper name source)
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE forge)
  forge_once(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
  set_property(GLOBAL APPEND PROPERTY FORGE_HELPERS ${name})
endfunction()
