// Causal is right = 0: a right bound beside it could only contradict it.
#include "levelhead/levelhead.hpp"

levelhead::Window window() {
  const levelhead::Window::Bound left = 7;
#ifdef LEVELHEAD_WRONG
#line 1000
  return levelhead::Window::causal(left, 5, levelhead::Align::top_left());
#else
  return levelhead::Window::sliding(left, 5, levelhead::Align::top_left());
#endif
}
