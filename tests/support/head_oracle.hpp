// Head statistics straight from the definitions of docs/numbers.md, over the materialised logits of an Oracle.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/oracle.hpp"

namespace levelhead::test {

struct ExpectedHead {
  std::map<std::string, double> values;  ///< absent statistics are not in it
  double adjacent_mass = 0;              ///< over rows that are neither empty nor NaN
};

/// Linear interpolation between the sorted values, as NumPy does it.
double expected_quantile(std::vector<double> x, double q);

/// Query head h over all batch items and rows.
ExpectedHead expected_head(const Oracle& oracle, std::int64_t h);

}  // namespace levelhead::test
