# Flags that every target of the project shares; they are private, so no consumer inherits them.
add_library(levelhead_flags INTERFACE)
target_compile_features(levelhead_flags INTERFACE cxx_std_20)
# Contraction would make bits depend on inlining; explicit fma is used instead. Never -ffast-math.
target_compile_options(levelhead_flags INTERFACE -ffp-contract=off -fno-math-errno -Wall -Wextra -Wpedantic -Wshadow
                                                 -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping and oversized copies inside std::string's operator+ that are not there.
  target_compile_options(levelhead_flags INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(LEVELHEAD_WARNINGS_AS_ERRORS)
  target_compile_options(levelhead_flags INTERFACE -Werror)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(levelhead_flags INTERFACE -march=x86-64-v2)
endif()
if(LEVELHEAD_SANITIZE)
  target_compile_options(levelhead_flags INTERFACE -fsanitize=${LEVELHEAD_SANITIZE} -fno-omit-frame-pointer
                                                   -fno-sanitize-recover=all)
  target_link_options(levelhead_flags INTERFACE -fsanitize=${LEVELHEAD_SANITIZE})
endif()
if(LEVELHEAD_COVERAGE)
  target_compile_options(levelhead_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(levelhead_flags INTERFACE --coverage)
endif()

# For code whose own speed nobody feels (the command's text, the tests): half the time to compile.
add_library(levelhead_quick INTERFACE)
target_compile_options(levelhead_quick INTERFACE $<$<CONFIG:Release>:-O1>)
if(LEVELHEAD_SANITIZE AND NOT LEVELHEAD_BUILD_FUZZERS)
  target_compile_options(levelhead_quick INTERFACE -O0)
endif()
