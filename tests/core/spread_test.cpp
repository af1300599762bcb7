// The expected spread against drawn data, and against the formula by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/call.hpp"
#include "levelhead/verdict.hpp"

namespace levelhead::test {
namespace {

/// Components that differ in mean, deviation and correlation of q and k.
struct Law {
  double mean_q, std_q, mean_k, std_k, correlation;
};

struct Drawn {
  Tensor<double> q, k;
  Inputs inputs{};
  Options options;
  std::vector<RowState> state;

  /// B items of n tokens, one head; correlated at the same token.
  Drawn(std::int64_t B, std::int64_t n, const std::vector<Law>& laws, unsigned seed)
      : q({B, 1, n, static_cast<std::int64_t>(laws.size())}), k(q.sizes), state(static_cast<std::size_t>(B * n)) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (std::size_t at = 0; at < q.values.size(); ++at) {
      const Law& law = laws[at % laws.size()];
      const double x = normal(random), y = normal(random);
      const double r = law.correlation;
      q.values[at] = law.mean_q + law.std_q * x;
      k.values[at] = law.mean_k + law.std_k * (r * x + std::sqrt(1 - r * r) * y);
    }
    options.scale = Constant{0.3};
    options.statistics.level = StatisticsLevel::all;
  }
  Drawn(const Drawn&) = delete;

  void forward() {
    inputs.q = q.view(), inputs.k = k.view();
    inputs.v = {k.values.data(), DType::f64, {k.sizes[0], k.sizes[1], k.sizes[2], 0}};
    Context context(1);
    Outputs outputs;
    outputs.state = state;
    levelhead::forward(context, inputs, options, outputs);
  }
  double measured() { return *head_statistics(inputs, options, state)[0].logit_std_within; }
  double expected() { return *expected_spread(inputs, options, state)[0]; }
};

std::vector<Law> laws(double correlation) {
  std::vector<Law> all;
  for (int c = 0; c < 16; ++c)
    all.push_back(
        {0.2 * (c % 5), 0.5 + 0.1 * c, -0.3 * (c % 3), 1.5 - 0.05 * c, correlation * (c % 4 == 3 ? -0.5 : 1)});
  return all;
}

// Few keys, so that the own one counts, and many items, so that chance does not: of 4800 rows each, 1 % is some five
// standard errors of the spread.
TEST(ExpectedSpread, IsThatOfDrawnData) {
  for (const double correlation : {0.0, 0.5, 0.9, -0.9})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << "correlation " << correlation << ", causal " << causal);
      Drawn drawn(600, 8, laws(correlation), 7);
      if (causal) drawn.options.window = Window::causal();
      drawn.forward();
      EXPECT_NEAR(drawn.expected() / drawn.measured(), 1, 0.01);
    }
}

TEST(ExpectedSpread, ManyKeysToo) {
  Drawn drawn(4, 256, laws(0.6), 8);
  drawn.forward();
  EXPECT_NEAR(drawn.expected() / drawn.measured(), 1, 0.01);
}

// One component over all keys leaves nothing to be independent: measured and expected differ by the own key's share
// alone, which is none for values that do not correlate.
TEST(ExpectedSpread, OfOneComponentByHand) {
  Drawn drawn(1, 4, {{0, 1, 0, 1, 0}}, 1);
  drawn.q.values = {1, -1, 1, -1};
  drawn.k.values = {3, 3, 5, 5};
  drawn.forward();
  EXPECT_DOUBLE_EQ(drawn.measured(), 0.3);
  EXPECT_DOUBLE_EQ(drawn.expected(), 0.3);  // V = 4/3 * 1, times 3/4

  drawn.k.values = {5, 3, 5, 3};  // covariance 4/3: (3 * 4/3 + 3/4 * 2 * 16/9) / 4 = 5/3
  drawn.forward();
  EXPECT_DOUBLE_EQ(drawn.expected(), 0.3 * std::sqrt(5.0 / 3));
}

// A mean of k moves whole rows, which softmax can't see.
TEST(ExpectedSpread, MeanOfKeysIsNotInIt) {
  Drawn drawn(1, 32, laws(0.3), 3);
  drawn.forward();
  const double before = drawn.expected();
  for (double& x : drawn.k.values) x += 8;
  drawn.forward();
  EXPECT_NEAR(drawn.expected(), before, 1e-12);
  for (double& x : drawn.q.values) x += 8;
  drawn.forward();
  EXPECT_GT(drawn.expected(), 3 * before);
}

// Query i and key i of cross-attention are no pair.
TEST(ExpectedSpread, CrossAttentionHasNoCorrelation) {
  Call call;
  Tensor<float> k = normals<float>({2, 2, 7, 8}, 5), v = normals<float>({2, 2, 7, 6}, 6);
  call.inputs.k = k.view(), call.inputs.v = v.view();
  call.options.statistics.level = StatisticsLevel::all;
  Context context(1);
  levelhead::forward(context, call.inputs, call.options, call.outputs);
  const auto expected = expected_spread(call.inputs, call.options, call.state);
  ASSERT_EQ(expected.size(), 4U);
  for (std::int64_t h = 0; h < 4; ++h) {
    double sum = 0;  // of var(k_c) E(q_c^2), population variance: 6/7 of the unbiased one
    for (std::int64_t c = 0; c < 8; ++c) {
      double q2 = 0, k1 = 0, k2 = 0;
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t i = 0; i < 5; ++i) q2 += std::pow(call.q.values[((b * 4 + h) * 5 + i) * 8 + c], 2) / 10;
        for (std::int64_t j = 0; j < 7; ++j) k1 += k.values[((b * 2 + h / 2) * 7 + j) * 8 + c] / 14;
      }
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t j = 0; j < 7; ++j) k2 += std::pow(k.values[((b * 2 + h / 2) * 7 + j) * 8 + c] - k1, 2) / 13;
      sum += q2 * k2;
    }
    EXPECT_NEAR(*expected[static_cast<std::size_t>(h)], std::sqrt(sum * 6 / 7 / 8), 1e-6);
  }
}

TEST(ExpectedSpread, AbsentWithoutTwoKeys) {
  Drawn one(3, 1, laws(0), 1);
  one.forward();
  EXPECT_EQ(expected_spread(one.inputs, one.options, one.state)[0], std::nullopt);
}

TEST(ExpectedSpread, NeedsAStateForEachRow) {
  Drawn drawn(1, 4, laws(0), 1);
  drawn.forward();
  drawn.state.pop_back();
  EXPECT_THAT(sentence([&] { (void)expected_spread(drawn.inputs, drawn.options, drawn.state); }),
              ::testing::HasSubstr("4 rows but got 3"));
}

}  // namespace
}  // namespace levelhead::test
