// The yardstick of docs/numbers.md, "How exact": forward and backward materialised [Nq, Nk] with every number in one
// arithmetic. In long double it is the truth, in a kernel's own arithmetic the naive run whose error the kernel may
// double.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/kit.hpp"

namespace levelhead::test {

/// Row-major values of each output by name: o, and of the gradients dq dk dv dbias dsinks dslopes dscale (that of
/// per_row) those whose input is there. QK-norm has no gradients here.
struct Materialised {
  std::map<std::string, std::vector<double>> values;
  /// The same expressions over absolute values: what cancels in `values` does not here.
  std::map<std::string, std::vector<double>> absolute;
};

/// float, double or long double. Beside 16-bit inputs, float rounds each matrix (logits, weights, their gradients,
/// results) to the type of q, as a run of matrix products in that type does.
template <class T>
Materialised materialised_run(const Case& c, const Upstream& upstream);

/// The error of one output over many problems, each relative to its expression over absolute values (Frobenius):
/// in one small problem the naive run may be exact by luck.
struct Errors {
  double kernel = 0, naive = 0, floor = 0;  // sums of squares
  bool exact_zeros = true;                  // what has no terms is 0

  void add(const Tensor& got, const std::vector<double>& rough, const std::vector<double>& truth,
           const std::vector<double>& absolute, double eps);
  /// kernel <= 2 naive + eps.
  ::testing::AssertionResult within_twice_naive() const;
};

}  // namespace levelhead::test
