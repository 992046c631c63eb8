# SPDX-License-Identifier: Apache-2.0
# cmake --install: libraries, plug-ins beside them, tools, headers, models, and find_package(Forge).

include(CMakePackageConfigHelpers)

# The component "runtime" is what the Python wheel holds.
install(TARGETS forge EXPORT ForgeTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
get_property(plugins GLOBAL PROPERTY FORGE_PLUGINS)
get_property(tools GLOBAL PROPERTY FORGE_TOOLS)
get_property(helpers GLOBAL PROPERTY FORGE_HELPERS)
install(TARGETS ${plugins} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(TARGETS ${helpers} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
if(tools)
  install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()

foreach(layer IN ITEMS base ir formats runtime)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${layer}")
    install(DIRECTORY ${layer} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/forge
            FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
  endif()
endforeach()
install(FILES "${FORGE_ROWS_DIR}/ir/ops/elementwise/row_list.inc"
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/forge/ir/ops/elementwise)
if(TARGET forge_model_files)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/share/forge/models" DESTINATION ${CMAKE_INSTALL_DATADIR}/forge)
endif()

# A private oneDNN travels along; the distribution's own does not.
get_target_property(dnnl_location DNNL::dnnl IMPORTED_LOCATION_RELEASE)
cmake_path(IS_PREFIX FORGE_DEPS_DIR "${dnnl_location}" NORMALIZE private_dnnl)
if(private_dnnl)
  install(FILES "${dnnl_location}" RENAME libdnnl.so.3 DESTINATION ${CMAKE_INSTALL_LIBDIR}/forge COMPONENT runtime)
endif()

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Forge)
install(EXPORT ForgeTargets NAMESPACE Forge:: DESTINATION ${config_dir})
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ForgeConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/ForgeConfig.cmake" INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ForgeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ForgeConfig.cmake" "${PROJECT_BINARY_DIR}/ForgeConfigVersion.cmake"
  DESTINATION ${config_dir})
