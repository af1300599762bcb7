# cmake -D COMPILER=... -D INCLUDE=... -D FILE=... -P check.cmake
# The wrong line stands behind `#line 1000`: failing anywhere else is not the failure that was promised.
set(compile ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE} ${FILE})

execute_process(COMMAND ${compile} RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${FILE} must compile as it stands:\n${errors}")
endif()

execute_process(COMMAND ${compile} -DLEVELHEAD_WRONG RESULT_VARIABLE status ERROR_VARIABLE errors)
if(status EQUAL 0)
  message(FATAL_ERROR "${FILE} compiles with LEVELHEAD_WRONG: the wrong use went unnoticed")
endif()
get_filename_component(name ${FILE} NAME)
if(NOT errors MATCHES "${name}:1000:")
  message(FATAL_ERROR "${FILE} fails with LEVELHEAD_WRONG, but not on the line it marks:\n${errors}")
endif()
