# Configures tests/consumer/${way} in a fresh folder; the installed one is also built and run.
set(work ${levelhead_build}/consumer/${way})
file(REMOVE_RECURSE ${work})
set(configure ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${way} -B ${work}/build -G ${generator}
              -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_BUILD_TYPE=${build_type})

if(way STREQUAL installed)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${levelhead_build} --prefix ${work}/prefix
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  # Found only below the prefix: a consumer must not depend on the source tree.
  execute_process(COMMAND ${configure} -D CMAKE_PREFIX_PATH=${work}/prefix COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${work}/build COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${work}/build/example OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${levelhead_source}/README.md readme)
  string(FIND "${readme}" "```\n${printed}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md does not quote what its example prints:\n${printed}")
  endif()
  execute_process(COMMAND ${work}/prefix/bin/levelhead --version COMMAND_ERROR_IS_FATAL ANY)
else()
  execute_process(COMMAND ${configure} -D levelhead_source=${levelhead_source} COMMAND_ERROR_IS_FATAL ANY)
endif()
