// Pooling of rows into heads, against the definitions over materialised logits.
#include "core/head.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "levelhead/verdict.hpp"
#include "support/head_oracle.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::map<std::string, double> reported(const HeadStatistics& head) {
  std::map<std::string, double> values;
  struct Visit {
    std::map<std::string, double>& values;
    void operator()(std::string_view name, std::int64_t x) const { values[std::string(name)] = static_cast<double>(x); }
    void operator()(std::string_view name, const std::optional<double>& x) const {
      if (x) values[std::string(name)] = *x;
    }
  };
  for_each_head_statistic(head, Visit{values});
  return values;
}

// f64 throughout: the statistics of docs/numbers.md to 1e-11 |x| + 1e-12 L; pooling adds only means and roots.
void expect_head(const HeadStatistics& head, const ExpectedHead& expected, double magnitude) {
  const auto values = reported(head);
  for (const auto& [name, want] : expected.values) {
    ASSERT_TRUE(values.contains(name)) << name;
    EXPECT_TRUE(near(values.at(name), want, 1e-11 * std::abs(want) + 1e-12 * magnitude)) << name;
  }
  EXPECT_EQ(values.size(), expected.values.size());
}

std::vector<HeadStatistics> heads_of(const Case& c) {
  const Forward run = forward(c, "reference");
  return head_statistics(c.inputs(), c.options(), run.state);
}

double largest(const Oracle& oracle) {
  double m = 1;
  for (const double x : oracle.magnitude) m = std::max(m, x);
  return m;
}

void expect_heads(const Case& c) {
  const Oracle oracle = materialise(c);
  const auto heads = heads_of(c);
  ASSERT_EQ(static_cast<std::int64_t>(heads.size()), c.shape.Hq);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    SCOPED_TRACE(h);
    const ExpectedHead expected = expected_head(oracle, static_cast<std::int64_t>(h));
    expect_head(heads[h], expected, largest(oracle));
    if (!heads[h].adjacent_mass) continue;
    EXPECT_TRUE(near(*heads[h].adjacent_mass, expected.adjacent_mass, 1e-12 * largest(oracle)));
  }
}

Tensor random_mask(const Shape& s, std::uint64_t seed, double visible) {
  Random random(seed);
  Tensor mask(DType::boolean, {s.B, s.Hq, s.Nq, s.Nk});
  for (std::int64_t n = 0; n < mask.elements(); ++n) mask.set_flat(n, random.chance(visible) ? 1 : 0);
  return mask;
}

TEST(Head, PoolsRowsOfEveryCount) {
  Case c = Case::random(DType::f64, {2, 4, 2, 9, 9, 5, 3}, 1);
  c.scale = Constant{1.7};
  c.window = Window::causal();
  expect_heads(c);
}

TEST(Head, PoolsEmptyRowsAndSinks) {
  Case c = Case::random(DType::f64, {2, 3, 3, 7, 7, 4, 2}, 2);
  c.mask = random_mask(c.shape, 3, 0.2);  // rows of 0, 1 and more keys
  c.sinks = c.side({3}, {-1, 0.5, 4});
  c.scale = Constant{3};
  expect_heads(c);
}

TEST(Head, AdjacentMassFollowsEveryTermOfTheLogit) {
  Case c = Case::random(DType::f64, {1, 2, 1, 8, 8, 4, 2}, 4);
  Random random(5);
  c.bias = Tensor(DType::f64, {1, 2, 8, 8}).fill_normal(random);
  c.slopes = c.side({2}, {0.5, 0.25});
  c.softcap = 2;
  c.policy = Policy::qk_rms;
  c.scale_values = c.side({2}, {3, 4});
  c.window = Window::sliding(3, 0);
  const auto heads = heads_of(c);
  for (const HeadStatistics& head : heads) ASSERT_TRUE(head.adjacent_mass);
  expect_heads(c);
}

// Row 0 of every head stands on the diagonal; the previous key does not exist.
TEST(Head, AdjacentMassOfOneHotRows) {
  Case c(DType::f64, {1, 1, 1, 3, 3, 3, 1});
  for (std::int64_t i = 0; i < 3; ++i) {
    c.q.set({0, 0, i, i}, 1);
    c.k.set({0, 0, i, (i + 2) % 3}, 1);  // query i meets key (i + 1) % 3
  }
  c.scale = Constant{100};
  const double e = std::exp(-100.0);
  // Keys 1, 2, 0: row 0 and 1 look ahead (own and previous key e^-100 each), row 2 two keys back.
  EXPECT_NEAR(*heads_of(c)[0].adjacent_mass, 0, 4 * e);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t x = 0; x < 3; ++x) c.k.set({0, 0, i, x}, x == i + 1 ? 1 : 0);  // query i meets key i - 1
  EXPECT_NEAR(*heads_of(c)[0].adjacent_mass, (1.0 / 3 + 1 + 1) / 3, 1e-12);
}

TEST(Head, AdjacentMassNeedsSelfAttention) {
  Case c = Case::random(DType::f64, {2, 1, 1, 4, 5, 3, 2}, 6);
  EXPECT_FALSE(heads_of(c)[0].adjacent_mass);
  c.q_lengths = Tensor(DType::i64, {2}, {3, 4});
  c.k_lengths = Tensor(DType::i64, {2}, {3, 4});
  EXPECT_TRUE(heads_of(c)[0].adjacent_mass);
  expect_heads(c);
}

TEST(Head, OneNanRowMakesTheNumbersNan) {
  Case c = Case::random(DType::f64, {1, 2, 2, 6, 6, 4, 2}, 7);
  c.q.set({0, 0, 2, 1}, nan);
  c.q.set({0, 1, 3, 0}, std::numeric_limits<double>::infinity());
  const auto heads = heads_of(c);
  EXPECT_EQ(heads[0].nan_rows, 1);
  EXPECT_EQ(heads[1].nan_rows, 1);
  for_each_member([&](std::string_view name, auto member) {
    ASSERT_TRUE(heads[0].*member) << name;
    EXPECT_EQ(std::isnan(*(heads[0].*member)), name != "saturated") << name;
  });
  EXPECT_TRUE(flags(heads[0]) == std::vector<std::string_view>{"nan"});
}

TEST(Head, RowOfMinusInfinitiesIsNan) {
  RowState state;
  state.count = 2;
  state.level = StatisticsLevel::all;
  EXPECT_TRUE(is_nan(state));
  EXPECT_FALSE(is_nan(RowState{}));
}

TEST(Head, AbsentWithoutRows) {
  HeadPool pool;
  pool.add({}, std::nullopt);
  EXPECT_THAT(reported(pool.finish()),
              (::testing::UnorderedElementsAre(std::pair<const std::string, double>("rows", 1),
                                               std::pair<const std::string, double>("empty_rows", 1),
                                               std::pair<const std::string, double>("nan_rows", 0))));
}

TEST(Head, ANanOutputIsCountedAndItsLogitsMeasured) {
  RowState state;
  state.max = 0, state.sum = 2, state.count = 2, state.sum2 = 2, state.sum3 = 2, state.min = 0;
  state.level = StatisticsLevel::all;
  HeadPool pool;
  pool.add(state, std::nullopt, true);
  const HeadStatistics head = pool.finish();
  EXPECT_EQ(head.nan_rows, 1);
  EXPECT_DOUBLE_EQ(*head.entropy, std::log(2.0));
}

TEST(Head, OneKeyRowsHaveNoRatioAndNoZ) {
  Case c = Case::random(DType::f64, {1, 1, 1, 3, 1, 2, 2}, 8);
  const HeadStatistics head = heads_of(c)[0];
  for (const auto& absent : {head.entropy_ratio, head.saturated, head.first_key_mass, head.logit_std_within, head.z})
    EXPECT_FALSE(absent);
  EXPECT_EQ(head.top1, 1);
  expect_heads(c);
}

TEST(Head, WhatWasNotMeasuredIsAbsent) {
  Case c = Case::random(DType::f64, {1, 1, 1, 4, 4, 2, 2}, 9);
  c.statistics.level = StatisticsLevel::entropy;
  const HeadStatistics entropy = heads_of(c)[0];
  EXPECT_TRUE(entropy.entropy_ratio && entropy.top1_q95 && entropy.logit_max);
  EXPECT_FALSE(entropy.logit_mean || entropy.z || entropy.effective_keys || entropy.first_key_mass);
  c.statistics.level = StatisticsLevel::lse_max;
  EXPECT_THAT(reported(heads_of(c)[0]).size(), 5U);  // the three counts, logit_max, lse
}

TEST(Head, StatesMustFitTheInputs) {
  const Case c = Case::random(DType::f64, {1, 2, 2, 3, 3, 2, 2}, 10);
  EXPECT_THROW(head_statistics(c.inputs(), c.options(), std::vector<RowState>(5)), Error);
}

HeadStatistics flagged(double entropy_ratio, double saturated, double first_key_mass, double adjacent_mass) {
  HeadStatistics head;
  head.rows = 4;
  head.entropy_ratio = entropy_ratio;
  head.saturated = saturated;
  head.first_key_mass = first_key_mass;
  head.adjacent_mass = adjacent_mass;
  return head;
}

TEST(Flags, EachByItsOwnLimit) {
  EXPECT_THAT(flags(flagged(0.9, 0.5, 0.5, 0.5)), IsEmpty());
  EXPECT_THAT(flags(flagged(0.9001, 0.5, 0.5, 0.5)), ElementsAre("flat"));
  EXPECT_THAT(flags(flagged(0.9, 0.5001, 0.5, 0.5)), ElementsAre("frozen"));
  EXPECT_THAT(flags(flagged(0.9, 0.5, 0.5001, 0.5)), ElementsAre("sink"));
  EXPECT_THAT(flags(flagged(0.9, 0.5, 0.5, 0.5001)), ElementsAre("local"));
}

TEST(Flags, NanAndEmpty) {
  HeadStatistics head;
  head.rows = 4;
  EXPECT_THAT(flags(head), IsEmpty());
  head.nan_rows = 1;
  EXPECT_THAT(flags(head), ElementsAre("nan"));
  head.empty_rows = 1;
  EXPECT_THAT(flags(head), ElementsAre("nan", "empty"));
  head.nan_rows = 0;
  EXPECT_THAT(flags(head), ElementsAre("empty"));
}

}  // namespace
}  // namespace levelhead::test
