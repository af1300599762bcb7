// Every kernel on larger random problems in any layout: o within what rounding can do, statistics at the tolerances of
// docs/numbers.md. The error rule is error_test.cpp's.
#include <cstdlib>
#include <sstream>

#include "support/random_case.hpp"

namespace levelhead::test {
namespace {

class RandomProblems : public KernelTest {};

// LEVELHEAD_RANDOM_CASES=150 makes it the long check.
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
    const Forward got = run(c, seed % 3 + 1);
    const Oracle want = materialise(c);
    EXPECT_TRUE(near_o_by_arithmetic(got, want, c));
    EXPECT_TRUE(near_statistics(got, want, c));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomProblems, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

}  // namespace
}  // namespace levelhead::test
