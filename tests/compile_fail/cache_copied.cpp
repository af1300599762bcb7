// A KvCache is moved or handed on by reference: a copy of a cache is rarely meant.
#include "levelhead/levelhead.hpp"

std::int64_t room(levelhead::KvCache& cache) {
#ifdef LEVELHEAD_WRONG
#line 1000
  const levelhead::KvCache mine = cache;
#else
  const levelhead::KvCache& mine = cache;
#endif
  return mine.capacity();
}
