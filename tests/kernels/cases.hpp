// Faults reported against other implementations, each as its smallest input; a test bears the id of its fault.
// All run on every kernel and type; backward is the reference's where a kernel has none.
#pragma once

#include "support/kit.hpp"
#include "support/oracle.hpp"

namespace levelhead::test {

class Cases : public KernelTest {
 protected:
  /// The bound of docs/numbers.md for a closed form whose logits are exact: without the factor L.
  double statistic_bound(double x) const { return statistic_tolerance("entropy", type(), Precision::fast, x, 1); }
  RowStatistics only_row(const Case& c) const { return run(c).row(0, 0); }
};

}  // namespace levelhead::test
