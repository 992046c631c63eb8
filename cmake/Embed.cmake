# SPDX-License-Identifier: Apache-2.0
# Files that the build makes out of other files: SPIR-V headers, FlatBuffers code, model.bin files.

# formats/NAME.fbs -> "formats/NAME_generated.h"
file(GLOB schemas CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/formats/*.fbs")
set(generated_dir "${PROJECT_BINARY_DIR}/generated/flatbuffers")
set(generated_headers "")
foreach(schema IN LISTS schemas)
  cmake_path(GET schema STEM name)
  set(header "${generated_dir}/formats/${name}_generated.h")
  add_custom_command(OUTPUT "${header}" DEPENDS "${schema}" VERBATIM
    COMMAND ${FORGE_flatc} --cpp --scoped-enums -o "${generated_dir}/formats" "${schema}"
    COMMENT "flatc formats/${name}.fbs")
  list(APPEND generated_headers "${header}")
endforeach()
if(generated_headers)
  add_custom_target(forge_flatbuffers_code DEPENDS ${generated_headers})
  add_dependencies(forge_flatbuffers_headers forge_flatbuffers_code)
endif()
target_include_directories(forge_flatbuffers_headers SYSTEM INTERFACE "${generated_dir}")

# shaders/NAME.comp -> "shaders/NAME.spv.h" with `const uint32_t kNameSpv[]`, the name in CamelCase.
file(GLOB shaders CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/shaders/*.comp")
set(shader_dir "${PROJECT_BINARY_DIR}/generated/shaders")
file(MAKE_DIRECTORY "${shader_dir}/shaders")
set(shader_headers "")
foreach(shader IN LISTS shaders)
  cmake_path(GET shader STEM name)
  string(REPLACE "_" ";" words "${name}")
  set(variable "k")
  foreach(word IN LISTS words)
    string(SUBSTRING "${word}" 0 1 first)
    string(SUBSTRING "${word}" 1 -1 rest)
    string(TOUPPER "${first}" first)
    string(APPEND variable "${first}${rest}")
  endforeach()
  set(header "${shader_dir}/shaders/${name}.spv.h")
  add_custom_command(OUTPUT "${header}" DEPENDS "${shader}" DEPFILE "${header}.d" VERBATIM
    COMMAND ${FORGE_glslangValidator} -V --quiet --target-env vulkan1.1
            "-I${PROJECT_SOURCE_DIR}/shaders" --depfile "${header}.d" --vn "${variable}Spv"
            -o "${header}" "${shader}"
    COMMENT "glslang shaders/${name}.comp")
  list(APPEND shader_headers "${header}")
endforeach()
add_library(forge_shaders INTERFACE)
target_include_directories(forge_shaders INTERFACE "${shader_dir}")
if(shader_headers)
  add_custom_target(forge_shader_code DEPENDS ${shader_headers})
  add_dependencies(forge_shaders forge_shader_code)
endif()

# forge_models(FOLDER): each FOLDER/*/NAME.onnx becomes share/forge/models/NAME.bin of the build tree.
# The target `forge_programs` stands for them and for every tool and plug-in: what a user of the build tree runs.
function(forge_models folder)
  get_property(plugins GLOBAL PROPERTY FORGE_PLUGINS)
  get_property(tools GLOBAL PROPERTY FORGE_TOOLS)
  add_custom_target(forge_programs DEPENDS ${plugins} ${tools})
  file(GLOB models CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*/*.onnx")
  if(NOT models OR NOT TARGET forge-convert)
    return()
  endif()
  set(dir "${PROJECT_BINARY_DIR}/share/forge/models")
  file(MAKE_DIRECTORY "${dir}")
  set(outputs "")
  foreach(model IN LISTS models)
    cmake_path(GET model STEM name)
    add_custom_command(OUTPUT "${dir}/${name}.bin" DEPENDS "${model}" forge-convert VERBATIM
      COMMAND forge-convert "${model}" -o "${dir}/${name}.bin"
      COMMENT "forge-convert ${name}.onnx")
    list(APPEND outputs "${dir}/${name}.bin")
  endforeach()
  add_custom_target(forge_model_files ALL DEPENDS ${outputs})
  add_dependencies(forge_programs forge_model_files)
endfunction()
