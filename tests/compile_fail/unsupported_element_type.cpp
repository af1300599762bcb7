// A view's element type has a DType, or there is no view.
#include "levelhead/levelhead.hpp"

void views(float* floats, [[maybe_unused]] short* shorts) {
  levelhead::view(floats, {2, 3});
#ifdef LEVELHEAD_WRONG
#line 1000
  levelhead::view(shorts, {2, 3});
#endif
}
