#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "levelhead/verdict.hpp"

namespace levelhead {
namespace {

using ::testing::HasSubstr;
using Name = Verdict::Name;

std::vector<HeadStatistics> heads(const std::vector<double>& spreads, std::int64_t n_max = 16) {
  std::vector<HeadStatistics> all;
  for (const double spread : spreads) {
    HeadStatistics h;
    h.rows = n_max;
    h.n_max = n_max;
    h.entropy_ratio = 0.97;  // which H75 would call too flat
    h.logit_std_within = spread;
    all.push_back(h);
  }
  return all;
}

TEST(JudgeFresh, LevelNeedsEveryHeadWithinATenthOfOne) {
  EXPECT_EQ(judge_fresh(heads({0.9, 1, 1.1}), 0.125).name, Name::level) << "the limits belong to level";
  EXPECT_EQ(judge_fresh(heads({0.9, 1.05, std::nextafter(1.1, 2)}), 0.125).name, Name::too_sharp);
  EXPECT_EQ(judge_fresh(heads({std::nextafter(0.9, 0), 0.95, 1.05}), 0.125).name, Name::too_flat);
  EXPECT_EQ(judge_fresh(heads({1.0}), 0.125).name, Name::level) << "a fresh model may have one head";
}

TEST(JudgeFresh, SaysWhichWayByTheMedian) {
  const FreshVerdict verdict = judge_fresh(heads({8, 0.5, 2, 4}), 1);
  EXPECT_EQ(verdict.name, Name::too_sharp);
  EXPECT_EQ(verdict.spread, 3);
  EXPECT_EQ(verdict.suggested_scale, 1.0 / 3);
  EXPECT_EQ(verdict.heads, 4);
  EXPECT_EQ(verdict.outside, 4);
  EXPECT_EQ(verdict.reason, "the spread of 4 of 4 heads lies outside 0.900 to 1.100, the median is 3.000");
  EXPECT_EQ(judge_fresh(heads({0.25, 0.5, 1}), 1).suggested_scale, 2);
  EXPECT_EQ(judge_fresh(heads({0.25, 0.5, 1}), 1).name, Name::too_flat);
  EXPECT_EQ(judge_fresh(heads({2, 2}), -1).suggested_scale, -0.5);
}

TEST(JudgeFresh, SuggestsForAHead) {
  EXPECT_EQ(suggested_scale(0.5, heads({4})[0]), 0.125);
  EXPECT_EQ(suggested_scale(0.5, heads({0})[0]), std::nullopt);
  EXPECT_EQ(suggested_scale(0, heads({0})[0]), std::nullopt);
  EXPECT_EQ(suggested_scale(0.5, heads({std::numeric_limits<double>::infinity()})[0]), std::nullopt);
  EXPECT_EQ(suggested_scale(0.5, HeadStatistics()), std::nullopt);
  const FreshVerdict flat = judge_fresh(heads({0, 0}), 0);
  EXPECT_EQ(flat.name, Name::too_flat);
  EXPECT_EQ(flat.suggested_scale, std::nullopt);
}

TEST(JudgeFresh, BrokenComesFirstAndItsNumbersAreShown) {
  auto some = heads({1, 3, 3}, 4);
  some[0].nan_rows = 1;
  some[0].logit_std_within = std::nan("");
  const FreshVerdict verdict = judge_fresh(some, 1, Scope::part);
  EXPECT_EQ(verdict.name, Name::broken);
  EXPECT_EQ(verdict.reason, "1 row of 1 head holds a visible NaN");
  EXPECT_EQ(verdict.spread, 3);
}

TEST(JudgeFresh, Undecided) {
  const FreshVerdict part = judge_fresh(heads({3, 3}), 1, Scope::part);
  EXPECT_EQ(part.name, Name::undecided);
  EXPECT_EQ(part.suggested_scale, 1.0 / 3);
  EXPECT_EQ(judge_fresh(heads({1}, 15), 1).name, Name::undecided);
  EXPECT_THAT(judge_fresh(heads({1}, 15), 1).reason, HasSubstr("15 keys"));
  auto missing = heads({1, 1});
  missing[1].logit_std_within.reset();
  EXPECT_EQ(judge_fresh(missing, 1).name, Name::undecided);
  EXPECT_EQ(judge_fresh(missing, 1).reason, "1 head has no row with two keys, the rule needs every head");
  EXPECT_EQ(judge_fresh({}, 1).name, Name::undecided);
  EXPECT_EQ(judge_fresh({}, 1).spread, std::nullopt);
}

TEST(JudgeFresh, LikelyMistakeOnlyWhenTheVerdictIsBad) {
  const std::vector<NamedScale> names{{"1/sqrt(Dv)", 0.125, true}, {"1", 1, false}};
  EXPECT_EQ(judge_fresh(heads({8}), 1, Scope::whole, names).likely_mistake, "1");
  EXPECT_EQ(judge_fresh(heads({1}), 1, Scope::whole, names).likely_mistake, std::nullopt);
  EXPECT_EQ(judge_fresh(heads({8}), 1, Scope::part, names).likely_mistake, std::nullopt);
}

}  // namespace
}  // namespace levelhead
