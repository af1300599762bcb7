// A number is a scale only once it says which policy it belongs to.
#include "levelhead/levelhead.hpp"

levelhead::Options options() {
#ifdef LEVELHEAD_WRONG
#line 1000
  return {.scale = 0.5};
#else
  return {.scale = levelhead::Constant{0.5}};
#endif
}
