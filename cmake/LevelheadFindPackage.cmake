# levelhead_find_package(PACKAGE NAME DEBIAN): find_package that says what to install when it is not there. A macro, so that
# what is imported is seen by the caller's folder and below.
macro(levelhead_find_package package name debian)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "levelhead needs ${name}, and CMake does not find it: install Debian's ${debian}, or set ${package}_DIR "
                        "to the folder of ${package}Config.cmake")
  endif()
endmacro()
