# Builds and runs README's example in a fresh folder as a project of its own would, in the way that ${way} says:
# installed (find_package), pkgconfig (the compiler alone) or subproject (add_subdirectory).
cmake_minimum_required(VERSION 3.25)
set(work ${levelhead_build}/consumer/${way})
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(build_with_cmake)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${way} -B ${work} -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
      -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher} -D BUILD_SHARED_LIBS=${shared} ${ARGN})
  run(${CMAKE_COMMAND} --build ${work} --target example)
endfunction()

# Installed twice: at first elsewhere, so that what only works where it was installed fails.
function(install_moved)
  run(${CMAKE_COMMAND} --install ${levelhead_build} --prefix ${work}/before)
  file(RENAME ${work}/before ${prefix})
endfunction()

function(ask_pkg_config out)
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${libdir}/pkgconfig)
  execute_process(COMMAND ${pkg_config} ${ARGN} levelhead OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(${out} ${flags} PARENT_SCOPE)
endfunction()

function(build_with_pkg_config)
  file(MAKE_DIRECTORY ${work})
  ask_pkg_config(flags --cflags --libs)
  run(${compiler} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/installed/main.cpp ${flags} -o ${work}/example)
  ask_pkg_config(static_flags --static --libs)
  if(NOT "-lhwy" IN_LIST static_flags OR NOT "-pthread" IN_LIST static_flags)
    message(FATAL_ERROR "pkg-config --static --libs leaves out what levelhead needs: ${static_flags}")
  endif()
  if(shared AND "-lhwy" IN_LIST flags)
    message(FATAL_ERROR "a shared levelhead asks its users to link what it links itself: ${flags}")
  endif()
endfunction()

function(check_output)
  if(shared)
    set(ENV{LD_LIBRARY_PATH} ${prefix}/${libdir})
  endif()
  execute_process(COMMAND ${work}/example OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${levelhead_source}/README.md readme)
  string(FIND "${readme}" "```\n${printed}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md does not quote what its example prints:\n${printed}")
  endif()
endfunction()

if(way STREQUAL installed)
  install_moved()
  if(with_command)
    run(${prefix}/bin/levelhead --version)
    foreach(file man/man1/levelhead.1 bash-completion/completions/levelhead zsh/site-functions/_levelhead
                 fish/vendor_completions.d/levelhead.fish)
      file(READ ${prefix}/share/${file} text)
      if(NOT text MATCHES "strict")
        message(FATAL_ERROR "share/${file} does not know --strict:\n${text}")
      endif()
    endforeach()
  endif()
  # Found only below the prefix: a consumer must not depend on the source tree.
  build_with_cmake(-D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_BUILD_TYPE=${build_type})
elseif(way STREQUAL pkgconfig)
  install_moved()
  build_with_pkg_config()
else()
  # Compiling the library a second time: as quickly as can be.
  build_with_cmake(-D levelhead_source=${levelhead_source} -D CMAKE_BUILD_TYPE=None -D CMAKE_CXX_FLAGS=-O0)
endif()
check_output()
