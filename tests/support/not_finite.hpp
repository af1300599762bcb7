// Short names for the two numbers that are not finite.
#pragma once

#include <limits>

namespace levelhead::test {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace levelhead::test
