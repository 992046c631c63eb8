# SPDX-License-Identifier: Apache-2.0
# The element-wise table (ir/ops/elementwise/rows.inc): each file of ir/ops/elementwise/families is a family of rows.
#
# ir/ops/elementwise/row_list.inc has the heads of all rows, FORGE_ROW(Clamp, ...): the includer defines the macros;
# ir/ops/elementwise/all_rows.inc has the rows themselves.
# A file named NAME_family.h takes long to compile: it is compiled once for each family, by a source NAME_FAMILY.cc that
# stands alone in a unity build and defines
#   FORGE_FAMILY_LIST  the file with the heads of the family's rows
#   FORGE_FAMILY_ROWS  the file with the rows themselves, after those of the families that they call
# All are made when CMake runs, and keep their time where they stay the same.

set(FORGE_ROWS_DIR "${PROJECT_BINARY_DIR}/generated/rows")
set(rows_path ir/ops/elementwise/families)

# Sets OUT to the heads of the rows in FILE, "FORGE_ROW(Add)" and so on, one after another.
function(forge_row_heads out file)
  file(READ "${file}" text)
  set(heads "")
  string(REGEX MATCH "\nFORGE_(ROW|UNARY|BINARY)[(]" begin "${text}")
  while(begin)
    string(FIND "${text}" "${begin}" at)
    string(SUBSTRING "${text}" ${at} -1 text)
    string(FIND "${text}" ") {" end)
    string(SUBSTRING "${text}" 1 ${end} head)
    string(APPEND heads "${head}\n")
    string(SUBSTRING "${text}" ${end} -1 text)
    string(REGEX MATCH "\nFORGE_(ROW|UNARY|BINARY)[(]" begin "${text}")
  endwhile()
  set(${out} "${heads}" PARENT_SCOPE)
endfunction()

# Sets OUT to the families that FAMILY calls, those that they call first, and itself last.
function(forge_called_families out family)
  set(all "")
  file(STRINGS "${PROJECT_SOURCE_DIR}/${rows_path}/${family}.inc" calls REGEX "^FORGE_CALLS[(]")
  string(REPLACE "FORGE_CALLS" "" calls "${calls}")
  string(REGEX MATCHALL "[a-z_]+" calls "${calls}")
  foreach(called IN LISTS calls)
    forge_called_families(below ${called})
    list(APPEND all ${below})
  endforeach()
  list(APPEND all ${family})
  list(REMOVE_DUPLICATES all)
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# Writes a file of macros of rows: TEXT, with what its includer does not define.
function(forge_write_list file text)
  set(defaults "")
  foreach(macro IN ITEMS UNARY BINARY)
    string(APPEND defaults "#ifndef FORGE_${macro}\n#define FORGE_${macro}(T, name) FORGE_ROW(T)\n#endif\n")
  endforeach()
  file(CONFIGURE OUTPUT "${FORGE_ROWS_DIR}/${file}" CONTENT "// Made by cmake/Rows.cmake.
#ifndef FORGE_ROW
#define FORGE_ROW(...)
#endif
${defaults}${text}#undef FORGE_ROW
#undef FORGE_UNARY
#undef FORGE_BINARY
" @ONLY)
endfunction()

# Writes a file of the rows of families, those first that others call.
function(forge_write_rows file)
  set(includes "")
  foreach(family IN LISTS ARGN)
    string(APPEND includes "#include \"${rows_path}/${family}.inc\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${FORGE_ROWS_DIR}/${file}" CONTENT "// Made by cmake/Rows.cmake.
#include \"ir/ops/elementwise/rows.inc\"
#define FORGE_ROW(T, ...) template <> struct Row<T> : T
#define FORGE_UNARY(T, name) FORGE_ROW(T)
#define FORGE_BINARY(T, name) FORGE_ROW(T)
#define FORGE_CALLS(...)
${includes}#undef FORGE_ROW
#undef FORGE_UNARY
#undef FORGE_BINARY
#undef FORGE_CALLS
" @ONLY)
endfunction()

file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${rows_path}/*.inc")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
set(FORGE_FAMILIES "")
set(all_families "")
set(all_heads "")
foreach(file IN LISTS files)
  cmake_path(GET file STEM family)
  list(APPEND FORGE_FAMILIES ${family})
  forge_row_heads(heads "${file}")
  string(APPEND all_heads "${heads}")
  forge_write_list(${rows_path}/${family}_list.inc "${heads}")
  forge_called_families(called ${family})
  forge_write_rows(${rows_path}/${family}_rows.inc ${called})
  list(APPEND all_families ${called})
endforeach()
list(REMOVE_DUPLICATES all_families)
forge_write_rows(ir/ops/elementwise/all_rows.inc ${all_families})
forge_write_list(ir/ops/elementwise/row_list.inc "${all_heads}")

# Sets OUT to the sources made of the files FOLDER/**/NAME_family.h, one for each family.
function(forge_family_sources out folder)
  set(sources "")
  file(GLOB_RECURSE units CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${folder}/*_family.h")
  foreach(unit IN LISTS units)
    string(REGEX REPLACE "_family[.]h$" "" stem "${unit}")
    foreach(family IN LISTS FORGE_FAMILIES)
      set(source "${FORGE_ROWS_DIR}/sources/${stem}_${family}.cc")
      file(CONFIGURE OUTPUT "${source}" CONTENT "// Made by cmake/Rows.cmake.
#define FORGE_FAMILY_LIST \"${rows_path}/${family}_list.inc\"
#define FORGE_FAMILY_ROWS \"${rows_path}/${family}_rows.inc\"
#include \"${unit}\"
" @ONLY)
      list(APPEND sources "${source}")
    endforeach()
  endforeach()
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
