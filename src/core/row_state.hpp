// What a row's state is once a visible logit is NaN or +inf: no softmax exists, so no field is a number.
#pragma once

#include <limits>

#include "levelhead/stats.hpp"

namespace levelhead {

/// Makes every floating field NaN; count, first_key and level stay.
inline void make_nan(RowState& s) noexcept {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  s.max = s.sum = s.weighted = s.sum2 = s.sum3 = s.mean = s.m2 = s.min = s.absmax_uncapped = s.first_logit = nan;
}

}  // namespace levelhead
