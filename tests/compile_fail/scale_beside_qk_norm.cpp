// QK-norm brings its own multiplier: one of the policies, never one more beside another.
#include "levelhead/levelhead.hpp"

levelhead::Options options() {
  using namespace levelhead;
#ifdef LEVELHEAD_WRONG
#line 1000
  return {.scale = {QkNorm{}, Constant{2}}};
#else
  return {.scale = {QkNorm{}}};
#endif
}
