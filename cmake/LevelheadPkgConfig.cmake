# levelhead.pc, for builds without CMake.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Found from where the file lies, so that an installed tree may be moved. An absolute folder can't move.
if(IS_ABSOLUTE ${pc_dir})
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  set(here /prefix/${pc_dir})
  set(up /prefix)
  cmake_path(RELATIVE_PATH up BASE_DIRECTORY ${here})
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(folder libdir includedir)
  string(TOUPPER CMAKE_INSTALL_${folder} variable)
  set(pc_${folder} ${${variable}})
  if(NOT IS_ABSOLUTE ${pc_${folder}})
    set(pc_${folder} "\${prefix}/${pc_${folder}}")
  endif()
endforeach()

# A static library leaves its own needs to whoever links it, also without `pkg-config --static`: there is no other.
if(BUILD_SHARED_LIBS)
  set(pc_links "Libs: -L\${libdir} -llevelhead\nLibs.private: -pthread\nRequires.private: libhwy")
else()
  set(pc_links "Libs: -L\${libdir} -llevelhead -pthread\nRequires: libhwy")
endif()

configure_file(${PROJECT_SOURCE_DIR}/cmake/levelhead.pc.in ${PROJECT_BINARY_DIR}/levelhead.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/levelhead.pc DESTINATION ${pc_dir})
