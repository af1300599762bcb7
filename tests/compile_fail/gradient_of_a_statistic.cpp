// Of the statistics only lse and entropy carry a gradient.
#include "levelhead/levelhead.hpp"

levelhead::OutputGradients gradients(const float* d) {
#ifdef LEVELHEAD_WRONG
#line 1000
  return {.dvariance = levelhead::view(d, {1, 2, 3})};
#else
  return {.dentropy = levelhead::view(d, {1, 2, 3})};
#endif
}
