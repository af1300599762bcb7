// A Context owns its threads: it is handed on by reference.
#include "levelhead/levelhead.hpp"

int threads(levelhead::Context& context) {
#ifdef LEVELHEAD_WRONG
#line 1000
  const levelhead::Context mine = context;
#else
  const levelhead::Context& mine = context;
#endif
  return mine.threads();
}
