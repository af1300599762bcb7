// Every kernel on random problems, against the materialised oracle: o by the rule of spec section 7 (twice the error of
// a naive f32 run on the same input, plus a floor for results that cancel), statistics at the tolerances of section 5.
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "support/oracle.hpp"
#include "support/random_case.hpp"

namespace levelhead::test {
namespace {

class RandomProblems : public KernelTest {};

struct Norms {
  double frobenius = 0, largest = 0;
  void add(double x) {
    frobenius = std::hypot(frobenius, x);
    largest = std::max(largest, std::abs(x));
  }
};

// The rounding of the result, that of the sum over absolute values, and that of each logit: a dot product whose terms
// add up to L in absolute value rounds by u L wherever its partial sums are largest, in whatever order it is taken. On
// the smallest of these problems a single logit decides, so luck alone would break twice the naive error.
double floor_of(DType type, double o, double o_abs, double magnitude) {
  return unit_roundoff(type) * std::abs(o) + unit_roundoff(DType::f32) * (2 + magnitude) * o_abs;
}

void expect_output(const Forward& got, const Oracle& want, const std::vector<double>& naive, DType type) {
  Norms error, yardstick, floor;
  for (std::size_t x = 0; x < want.o.size(); ++x) {
    error.add(got.o.flat(static_cast<std::int64_t>(x)) - want.o[x]);
    yardstick.add(naive[x] - want.o[x]);
    floor.add(floor_of(type, want.o[x], want.o_abs[x], want.magnitude[x / static_cast<std::size_t>(want.shape.Dv)]));
  }
  EXPECT_LE(error.frobenius, 2 * yardstick.frobenius + floor.frobenius);
  EXPECT_LE(error.largest, 2 * yardstick.largest + floor.largest);
}

// LEVELHEAD_RANDOM_CASES=300 makes it the long check.
int cases() {
  const char* const asked = std::getenv("LEVELHEAD_RANDOM_CASES");
  return asked == nullptr ? 30 : std::atoi(asked);
}

// Larger than the property tests' problems (several blocks and tasks), in any layout.
Case problem(DType type, std::uint64_t seed, std::ostream& description) {
  Random random(seed);
  Limits limits;
  limits.queries = 130, limits.keys = 200, limits.dim = 80;
  const Parameters parameters = random_parameters(random, limits);
  description << parameters;
  Case c = make_case(type, parameters);
  for (Tensor* x : {&c.q, &c.k, &c.v}) {
    switch (random.integer(0, 5)) {
      case 0: *x = x->relaid({0, 2, 1, 3}); break;     // [B, N, H, D]
      case 1: *x = x->relaid({0, 1, 3, 2}); break;     // components outermost
      case 2: *x = x->relaid({2, 1, 0, 3}, 2); break;  // gaps
      case 3: *x = x->relaid({0, 1, 2, 3}, 0, true); break;
      default: break;
    }
  }
  return c;
}

TEST_P(RandomProblems, OutputAndStatistics) {
  for (int seed = 1; seed <= cases() && !HasFailure(); ++seed) {
    std::ostringstream description;
    const Case c = problem(type(), static_cast<std::uint64_t>(seed), description);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + description.str());
    const Oracle want = materialise(c);
    const Forward got = run(c, seed % 3 + 1);
    if (type() == DType::f64) {
      EXPECT_TRUE(near_o(got, want, 0, 1e-13));
    } else {
      expect_output(got, want, naive_o(c), type());
    }
    EXPECT_TRUE(near_statistics(got, want, c));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomProblems, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

}  // namespace
}  // namespace levelhead::test
