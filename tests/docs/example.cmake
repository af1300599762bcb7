# README's C++ example is the consumer test's source, letter by letter, so that it compiles and prints what is said.
file(READ ${root}/README.md readme)
file(READ ${root}/tests/consumer/installed/main.cpp source)
string(FIND "${readme}" "```cpp\n${source}```" at)
if(at EQUAL -1)
  message(FATAL_ERROR "README.md does not quote tests/consumer/installed/main.cpp as it is")
endif()

# The same of docs/decode.md, which core_problem_test runs.
file(READ ${root}/docs/decode.md page)
file(READ ${root}/tests/core/decode_example.hpp source)
string(FIND "${page}" "```cpp\n${source}```" at)
if(at EQUAL -1)
  message(FATAL_ERROR "docs/decode.md does not quote tests/core/decode_example.hpp as it is")
endif()
