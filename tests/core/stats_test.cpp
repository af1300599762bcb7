// The state of a row: merging it, finishing it, and what each level lets out.
#include "levelhead/stats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/kit.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

// The state of logits given in double, straight from the definitions.
RowState state_of(const std::vector<double>& logits, std::int64_t first_key = 0) {
  RowState s;
  s.level = StatisticsLevel::all;
  s.count = static_cast<std::int64_t>(logits.size());
  if (logits.empty()) return s;
  s.first_key = first_key;
  s.first_logit = logits.front();
  for (const double x : logits) {
    s.max = std::max(s.max, x);
    s.min = std::min(s.min, x);
    s.absmax_uncapped = std::max(s.absmax_uncapped, std::abs(x));
    s.mean += x / static_cast<double>(logits.size());
  }
  for (const double x : logits) {
    const double e = x == -inf ? 0 : std::exp(x - s.max);
    s.sum += e;
    s.weighted += e == 0 ? 0 : e * (x - s.max);
    s.sum2 += e * e;
    s.sum3 += e * e * e;
    s.m2 += (x - s.mean) * (x - s.mean);
  }
  return s;
}

std::vector<std::string> names_at(StatisticsLevel level) {
  RowStatistics row;
  row.level = level;
  std::vector<std::string> names;
  for_each_statistic(row, [&](std::string_view name, auto) { names.emplace_back(name); });
  return names;
}

TEST(RowStatistics, NamesInTheOrderOfTheTable) {
  EXPECT_EQ(names_at(StatisticsLevel::all),
            (std::vector<std::string>{"count", "mean", "variance", "max", "min", "absmax", "absmax_uncapped", "lse",
                                      "entropy", "entropy_sink", "effective_keys", "perplexity", "top1", "trace_gain",
                                      "frobenius_gain", "first_key_mass", "sink_mass", "saturated"}));
  EXPECT_EQ(names_at(StatisticsLevel::lse_max), (std::vector<std::string>{"count", "max", "lse"}));
  EXPECT_EQ(names_at(StatisticsLevel::entropy),
            (std::vector<std::string>{"count", "max", "lse", "entropy", "entropy_sink", "perplexity", "top1",
                                      "sink_mass", "saturated"}));
}

TEST(RowState, EmptyIsNeutral) {
  const RowState empty, x = state_of({1, -2, 0.5}, 7);
  EXPECT_TRUE(same_bits(merge(empty, x), x));
  EXPECT_TRUE(same_bits(merge(x, empty), x));
  EXPECT_EQ(merge(empty, empty).count, 0);
}

TEST(RowState, MergeIsTheUnion) {
  const std::vector<double> logits{3, -1, 0.25, 800, -700, 5, 799.5};
  const RowStatistics want = row_statistics(state_of(logits), {});
  for (std::size_t cut = 0; cut <= logits.size(); ++cut) {
    const RowState left = state_of({logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(cut)});
    const RowState right =
        state_of({logits.begin() + static_cast<std::ptrdiff_t>(cut), logits.end()}, static_cast<std::int64_t>(cut));
    for (const RowState& merged : {merge(left, right), merge(right, left)}) {
      EXPECT_EQ(merged.first_key, 0);
      const RowStatistics got = row_statistics(merged, {});
      std::vector<double> values;
      for_each_statistic(want, [&](std::string_view, auto x) { values.push_back(static_cast<double>(x)); });
      std::size_t n = 0;
      for_each_statistic(got, [&](std::string_view name, auto x) {
        EXPECT_TRUE(near(static_cast<double>(x), values[n], 1e-14 * (1 + std::abs(values[n])))) << name << " " << cut;
        ++n;
      });
    }
  }
}

TEST(RowState, FirstKeyIsTheSmallerAndTieIsTheFirst) {
  const RowState a = state_of({1}, 5), b = state_of({2}, 3), c = state_of({9}, 5);
  EXPECT_EQ(merge(a, b).first_logit, 2);
  EXPECT_EQ(merge(b, a).first_logit, 2);
  EXPECT_EQ(merge(a, c).first_logit, 1);
  EXPECT_EQ(merge(c, a).first_logit, 9);
}

TEST(RowState, LevelIsTheLower) {
  RowState a = state_of({1, 2}), b = state_of({3});
  b.level = StatisticsLevel::entropy;
  const RowState merged = merge(a, b);
  EXPECT_EQ(merged.level, StatisticsLevel::entropy);
  EXPECT_NE(merged.weighted, 0);
  EXPECT_EQ(merged.sum2, 0) << "not measured";
}

TEST(RowState, NanIsCarried) {
  RowState a = state_of({1, 2});
  a.sum = std::nan("");
  for (const RowState& merged : {merge(a, state_of({3})), merge(state_of({3}), a)}) {
    EXPECT_EQ(merged.count, 3);
    for (const double x : {merged.max, merged.sum, merged.weighted, merged.mean, merged.min, merged.first_logit})
      EXPECT_TRUE(std::isnan(x));
    EXPECT_TRUE(std::isnan(log_sum_exp(merged, 1.0)));
  }
}

// A sink far above or below the keys overflows nowhere.
TEST(RowStatistics, SinksFarAway) {
  const RowState s = state_of({0, 0});
  EXPECT_EQ(log_sum_exp(s, 5000), 5000);
  EXPECT_DOUBLE_EQ(log_sum_exp(s, -5000), std::log(2));
  EXPECT_EQ(log_sum_exp(s, -inf), std::log(2));
  const RowStatistics above = row_statistics(s, 5000), below = row_statistics(s, -5000), none = row_statistics(s, -inf);
  EXPECT_EQ(above.sink_mass, 1);
  EXPECT_EQ(above.first_key_mass, 0);
  EXPECT_EQ(above.entropy_sink, 0);
  EXPECT_DOUBLE_EQ(above.entropy, std::log(2));
  EXPECT_EQ(below.sink_mass, 0);
  EXPECT_EQ(below.first_key_mass, 0.5);
  EXPECT_DOUBLE_EQ(none.entropy_sink, std::log(2));
  const RowStatistics beside = row_statistics(state_of({0}), 0);
  EXPECT_DOUBLE_EQ(beside.entropy_sink, std::log(2));
  EXPECT_EQ(beside.top1, 1) << "the sink is left out";
}

// What goes wrong with keys is not the sink's, and the other way round.
TEST(RowStatistics, NanSinkTouchesOnlyWhatCountsIt) {
  const RowStatistics row = row_statistics(state_of({1, 2}), std::nan(""));
  EXPECT_TRUE(std::isnan(row.lse) && std::isnan(row.entropy_sink) && std::isnan(row.sink_mass));
  EXPECT_TRUE(std::isnan(row.first_key_mass));
  EXPECT_FALSE(std::isnan(row.entropy) || std::isnan(row.mean));
}

TEST(RowStatistics, EmptyRow) {
  const RowStatistics row = row_statistics(state_of({}), {}), with_sink = row_statistics(state_of({}), 2);
  EXPECT_TRUE(std::isnan(row.mean) && std::isnan(row.variance));
  EXPECT_EQ(row.max, -inf);
  EXPECT_EQ(row.min, inf);
  EXPECT_EQ(row.lse, -inf);
  for (const double x :
       {row.absmax, row.absmax_uncapped, row.entropy, row.entropy_sink, row.effective_keys, row.perplexity, row.top1,
        row.trace_gain, row.frobenius_gain, row.first_key_mass, row.sink_mass})
    EXPECT_EQ(x, 0);
  EXPECT_FALSE(row.saturated);
  EXPECT_EQ(with_sink.lse, 2);
  EXPECT_EQ(with_sink.sink_mass, 1);
}

// Rounding does not push a statistic out of its range.
TEST(RowStatistics, StaysInRange) {
  RowState s = state_of({1, 1, 1});
  s.sum2 = 3 * (1 - 1e-12);  // a hair more than 3 keys
  const RowStatistics three = row_statistics(s, {});
  EXPECT_EQ(three.effective_keys, 3);
  RowState one = state_of({1});
  one.weighted = 1e-13;
  one.sum2 = 1 + 1e-13;
  const RowStatistics single = row_statistics(one, {});
  EXPECT_EQ(single.entropy, 0);
  EXPECT_EQ(single.perplexity, 1);
  EXPECT_EQ(single.effective_keys, 1);
  EXPECT_EQ(single.trace_gain, 0);
  EXPECT_FALSE(single.saturated) << "one key is not a choice";
  EXPECT_TRUE(row_statistics(state_of({0, -10}), {}).saturated);
  EXPECT_FALSE(row_statistics(state_of({0, -4}), {}).saturated);
}

TEST(RowStatistics, MinusInfinityAmongTheLogits) {
  const RowStatistics row = row_statistics(merge(state_of({-inf, -inf}), state_of({2, 2}, 2)), {});
  EXPECT_EQ(row.count, 4);
  EXPECT_EQ(row.min, -inf);
  EXPECT_EQ(row.mean, -inf);
  EXPECT_TRUE(std::isnan(row.variance));
  EXPECT_DOUBLE_EQ(row.entropy, std::log(2));
  EXPECT_EQ(row.first_key_mass, 0);
  const RowState two_of_it = merge(state_of({-inf}), state_of({-inf}, 1));
  EXPECT_EQ(log_sum_exp(merge(two_of_it, state_of({2}, 2)), {}), 2) << "two shards of nothing but -inf, then a number";
  EXPECT_TRUE(std::isnan(row_statistics(state_of({-inf}), {}).lse));
  EXPECT_TRUE(std::isnan(row_statistics(merge(state_of({-inf}), state_of({-inf}, 1)), {}).top1));
}

}  // namespace
}  // namespace levelhead::test
