// There is no default corner, and none that a truth value could pick.
#include "levelhead/levelhead.hpp"

levelhead::Window window() {
#ifdef LEVELHEAD_WRONG
#line 1000
  return levelhead::Window::causal(true);
#else
  return levelhead::Window::causal(levelhead::Align::bottom_right());
#endif
}
