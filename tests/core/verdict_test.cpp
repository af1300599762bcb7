#include "levelhead/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace levelhead {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HeadStatistics head(double entropy_ratio, std::int64_t n_max = 16) {
  HeadStatistics h;
  h.rows = n_max;
  h.n_max = n_max;
  h.entropy_ratio = entropy_ratio;
  return h;
}

std::vector<HeadStatistics> heads_with_h75(double h75) { return std::vector<HeadStatistics>(18, head(h75)); }

TEST(Quantile, IsLinearBetweenNeighbours) {
  const std::vector<double> x{1, 2, 4, 8};
  EXPECT_EQ(quantile(x, 0), 1);
  EXPECT_EQ(quantile(x, 0.75), 5);
  EXPECT_EQ(quantile(x, 0.5), 3);
  EXPECT_EQ(quantile(x, 1), 8);
  EXPECT_EQ(quantile(std::vector<double>{3}, 0.95), 3);
  EXPECT_EQ(quantile({}, 0.5), std::nullopt);
}

TEST(Judge, H75IsThe75thPercentileOverAllHeads) {
  std::vector<HeadStatistics> heads;
  for (int i = 20; i > 0; --i) heads.push_back(head(i / 32.0));
  const Verdict verdict = judge(heads);
  EXPECT_EQ(verdict.h75, 15.25 / 32);  // place 14.25 of 1/32 ... 20/32
  EXPECT_EQ(verdict.name, Verdict::Name::too_sharp);
}

TEST(Judge, LimitsBelongToLevel) {
  const auto name = [](double h75) { return judge(heads_with_h75(h75)).name; };
  EXPECT_EQ(name(0.48), Verdict::Name::level);
  EXPECT_EQ(name(std::nextafter(0.48, 0)), Verdict::Name::too_sharp);
  EXPECT_EQ(name(0.90), Verdict::Name::level);
  EXPECT_EQ(name(std::nextafter(0.90, 1)), Verdict::Name::too_flat);
}

TEST(Judge, GivesTheDistanceToBothLimits) {
  const Verdict verdict = judge(heads_with_h75(0.5));
  EXPECT_DOUBLE_EQ(*verdict.above_sharp(), 0.5 - 0.48);
  EXPECT_DOUBLE_EQ(*verdict.below_flat(), 0.90 - 0.5);
  EXPECT_THAT(verdict.reason, HasSubstr("0.500"));
}

TEST(Judge, FewHeadsAreUndecidedAndStillMeasured) {
  const std::vector<HeadStatistics> heads(17, head(0.99));
  const Verdict verdict = judge(heads);
  EXPECT_EQ(verdict.name, Verdict::Name::undecided);
  EXPECT_EQ(verdict.h75, 0.99);
  EXPECT_THAT(verdict.reason, HasSubstr("17 heads"));
}

TEST(Judge, HeadsWithoutRatioDoNotCount) {
  std::vector<HeadStatistics> heads = heads_with_h75(0.99);
  heads[3].entropy_ratio.reset();
  EXPECT_EQ(judge(heads).name, Verdict::Name::undecided);
}

TEST(Judge, ShortRowsAreUndecided) {
  const std::vector<HeadStatistics> heads(18, head(0.99, 15));
  EXPECT_EQ(judge(heads).name, Verdict::Name::undecided);
  EXPECT_THAT(judge(heads).reason, HasSubstr("15 keys"));
}

TEST(Judge, PartOfAModelIsUndecided) {
  const Verdict verdict = judge(heads_with_h75(0.99), Scope::part);
  EXPECT_EQ(verdict.name, Verdict::Name::undecided);
  EXPECT_EQ(verdict.h75, 0.99);
}

TEST(Judge, BrokenComesFirst) {
  std::vector<HeadStatistics> heads(3, head(0.1, 4));
  heads[1].nan_rows = 2;
  const Verdict verdict = judge(heads, Scope::part);
  EXPECT_EQ(verdict.name, Verdict::Name::broken);
  EXPECT_EQ(verdict.h75, 0.1);
  EXPECT_EQ(verdict.reason, "2 rows of 1 head hold a visible NaN");
}

TEST(Judge, NoHeadsHaveNoH75) {
  const Verdict verdict = judge({});
  EXPECT_EQ(verdict.name, Verdict::Name::undecided);
  EXPECT_FALSE(verdict.h75 || verdict.above_sharp() || verdict.below_flat());
}

TEST(Judge, LikelyMistakeOnlyWhenTheVerdictIsBad) {
  const std::vector<NamedScale> names{{"1/sqrt(Dv)", 0.125, true}, {"1", 1, false}, {"1/D", 1, false}};
  EXPECT_EQ(judge(heads_with_h75(0.2), Scope::whole, names).likely_mistake, "1");
  EXPECT_EQ(judge(heads_with_h75(0.95), Scope::whole, names).likely_mistake, "1");
  EXPECT_FALSE(judge(heads_with_h75(0.7), Scope::whole, names).likely_mistake);
  EXPECT_FALSE(judge(heads_with_h75(0.2), Scope::part, names).likely_mistake);
  EXPECT_FALSE(judge(heads_with_h75(0.2), Scope::whole, std::span(names).first(1)).likely_mistake);
}

TEST(Judge, NamesOfVerdicts) {
  using Name = Verdict::Name;
  EXPECT_EQ(name_of(Name::broken), "broken");
  EXPECT_EQ(name_of(Name::undecided), "undecided");
  EXPECT_EQ(name_of(Name::too_sharp), "too_sharp");
  EXPECT_EQ(name_of(Name::too_flat), "too_flat");
  EXPECT_EQ(name_of(Name::level), "level");
}

std::vector<std::string> names(const std::vector<NamedScale>& scales) {
  std::vector<std::string> all;
  for (const NamedScale& scale : scales) all.push_back(scale.name);
  return all;
}

// A model of 9 heads, 3 for keys, d_model 576, D 64; Dv 48 so that it differs.
constexpr ScaleFacts facts{64, 9, 3, 576, 48, 1.2};

TEST(ScaleIs, KnowsEveryNameInOrder) {
  EXPECT_THAT(
      names(known_scales(facts)),
      ElementsAre("1/sqrt(D)", "1", "1/D", "1/sqrt(heads)", "1/sqrt(kv_heads)", "1/sqrt(d_model)",
                  "1/sqrt(D rounded up to a multiple of 128)", "1/sqrt(Dv)", "sqrt(D)", "1/sqrt(D) times log2(e)",
                  "1/sqrt(D) over log2(e)", "1/sqrt(D) times the square of the YaRN mscale"));
}

TEST(ScaleIs, NamesEachByItsNumber) {
  const auto is = [](double scale) { return names(scale_is(scale, facts)); };
  EXPECT_THAT(is(1.0 / 8), ElementsAre("1/sqrt(D)"));
  EXPECT_THAT(is(1), ElementsAre("1"));
  EXPECT_THAT(is(1.0 / 64), ElementsAre("1/D"));
  EXPECT_THAT(is(1.0 / 3), ElementsAre("1/sqrt(heads)"));
  EXPECT_THAT(is(0.57735), ElementsAre("1/sqrt(kv_heads)"));
  EXPECT_THAT(is(1.0 / 24), ElementsAre("1/sqrt(d_model)"));
  EXPECT_THAT(is(0.0883883), ElementsAre("1/sqrt(D rounded up to a multiple of 128)"));
  EXPECT_THAT(is(0.1443376), ElementsAre("1/sqrt(Dv)"));
  EXPECT_THAT(is(8), ElementsAre("sqrt(D)"));
  EXPECT_THAT(is(0.125 * 1.4426950), ElementsAre("1/sqrt(D) times log2(e)"));
  EXPECT_THAT(is(0.125 / 1.4426950), ElementsAre("1/sqrt(D) over log2(e)"));
  EXPECT_THAT(is(0.125 * 1.44), ElementsAre("1/sqrt(D) times the square of the YaRN mscale"));
  EXPECT_THAT(is(-1), IsEmpty());
  EXPECT_THAT(is(0), IsEmpty());
}

TEST(ScaleIs, ToATenthOfAPercent) {
  EXPECT_THAT(names(scale_is(0.125 * 1.0009, facts)), ElementsAre("1/sqrt(D)"));
  EXPECT_THAT(names(scale_is(0.125 * 0.9991, facts)), ElementsAre("1/sqrt(D)"));
  EXPECT_THAT(scale_is(0.125 * 1.0011, facts), IsEmpty());
  EXPECT_THAT(scale_is(0.125 * 0.9989, facts), IsEmpty());
}

TEST(ScaleIs, ListsAllThatAreEqual) {
  EXPECT_THAT(names(scale_is(1.0 / 8, {64, 64, 64, 64, 64, 1.0})),
              ElementsAre("1/sqrt(D)", "1/sqrt(heads)", "1/sqrt(kv_heads)", "1/sqrt(d_model)", "1/sqrt(Dv)",
                          "1/sqrt(D) times the square of the YaRN mscale"));
  for (const NamedScale& scale : scale_is(1.0 / 8, {64, 64, 64, 64, 64, 1.0})) EXPECT_TRUE(scale.plain) << scale.name;
}

TEST(ScaleIs, RoundedUpDimensions) {
  const ScaleFacts odd{20, 5, 5, {}, {}, {}};
  EXPECT_THAT(names(scale_is(1 / std::sqrt(32.0), odd)),
              ElementsAre("1/sqrt(D rounded up to a multiple of 16)", "1/sqrt(D rounded up to a multiple of 32)"));
  EXPECT_THAT(names(scale_is(1 / std::sqrt(24.0), odd)), ElementsAre("1/sqrt(D rounded up to a multiple of 8)"));
}

TEST(ScaleIs, WhatIsNotKnownHasNoName) {
  EXPECT_THAT(names(known_scales({0, 0, 0, {}, {}, {}})), ElementsAre("1"));
  EXPECT_TRUE(known_scales({0, 0, 0, {}, {}, {}}).front().plain);  // the multiplier of D = 0 is 1
  EXPECT_THAT(scale_is(1.0 / 24, {64, 9, 3, {}, {}, {}}), IsEmpty());
}

}  // namespace
}  // namespace levelhead
