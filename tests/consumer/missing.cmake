# A package that is not there is named, with what to install.
foreach(wanted "hwy|Highway, and CMake does not find it: install Debian's libhwy-dev, or set hwy_DIR"
               "fmt|{fmt}, and CMake does not find it: install Debian's libfmt-dev, or set fmt_DIR"
               "nlohmann_json|nlohmann/json, and CMake does not find it: install Debian's nlohmann-json3-dev")
  string(REPLACE "|" ";" wanted "${wanted}")
  list(GET wanted 0 package)
  list(GET wanted 1 sentence)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${levelhead_source} -B ${levelhead_build}/consumer/missing -G ${generator} --fresh
            -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_DISABLE_FIND_PACKAGE_${package}=ON -D LEVELHEAD_BUILD_CLI=OFF
            -D LEVELHEAD_BUILD_TESTS=OFF -D LEVELHEAD_BUILD_PYTHON=ON
    RESULT_VARIABLE status
    ERROR_VARIABLE said
    OUTPUT_VARIABLE unused)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")  # CMake breaks lines where they are full
  string(FIND "${said}" "levelhead needs ${sentence}" at)
  if(status EQUAL 0 OR at EQUAL -1)
    message(SEND_ERROR "without ${package} CMake does not say that levelhead needs ${sentence}, but: ${said}")
  endif()
endforeach()
