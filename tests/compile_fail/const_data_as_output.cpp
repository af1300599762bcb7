// What is read only cannot be written.
#include "levelhead/levelhead.hpp"

levelhead::Outputs outputs(float* o, [[maybe_unused]] const float* constant) {
#ifdef LEVELHEAD_WRONG
#line 1000
  return {.o = levelhead::view(constant, {1, 2, 3, 4})};
#else
  return {.o = levelhead::view(o, {1, 2, 3, 4})};
#endif
}
