# SPDX-License-Identifier: Apache-2.0
# Finds the Vulkan meta-loader volk as one source file and one header and defines `forge_volk`, which
# compiles it. (Debian 12 packages no configuration, and Debian 13's `libvolk-dev` is another project.)

find_path(VOLK_INCLUDE_DIR NAMES volk.h volk.c)
find_file(VOLK_SOURCE NAMES volk.c)
mark_as_advanced(VOLK_INCLUDE_DIR VOLK_SOURCE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Volk REQUIRED_VARS VOLK_SOURCE VOLK_INCLUDE_DIR)

if(Volk_FOUND AND NOT TARGET forge_volk)
  # Copied so that its directory, /usr/include, never becomes an ordinary include path.
  configure_file("${VOLK_SOURCE}" "${PROJECT_BINARY_DIR}/generated/volk/volk.c" COPYONLY)
  add_library(forge_volk STATIC "${PROJECT_BINARY_DIR}/generated/volk/volk.c")
  target_link_libraries(forge_volk PUBLIC Vulkan::Headers PRIVATE ${CMAKE_DL_LIBS})
  target_compile_definitions(forge_volk PUBLIC VK_NO_PROTOTYPES)
endif()
