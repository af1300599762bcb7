# The static libraries of another build of this tree, so that a Python module for the tests compiles only itself.
function(levelhead_built name folder)
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${LEVELHEAD_BUILT}/${folder}/lib${name}.a)
  target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
endfunction()

levelhead_built(levelhead src)
target_link_libraries(levelhead INTERFACE hwy::hwy Threads::Threads)
levelhead_built(levelhead_io src/io)
target_link_libraries(levelhead_io INTERFACE levelhead fmt::fmt)
levelhead_built(levelhead_callers src/callers)
target_link_libraries(levelhead_callers INTERFACE levelhead_io nlohmann_json::nlohmann_json)
