// The generator and the moments: known answers, and numbers that must be the same on every machine.
#include "lab/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lab/moments.hpp"

namespace levelhead::lab {
namespace {

TEST(Random, BitsOfThePublishedGenerators) {
  EXPECT_EQ(mixed(0), 0xe220a8397b1dcdafU);  // SplitMix64's first number of seed 0
  Random random(std::array<std::uint64_t, 4>{1, 2, 3, 4});
  for (const std::uint64_t expected : {11520U, 0U, 1509978240U}) EXPECT_EQ(random.bits(), expected);
  EXPECT_EQ(random.bits(), 1215971899390074240U);
}

TEST(Random, StreamsDiffer) {
  const auto first = [](std::uint64_t seed, std::initializer_list<std::uint64_t> path) {
    return Random(seed, path).bits();
  };
  EXPECT_EQ(first(1, {2, 3}), first(1, {2, 3}));
  EXPECT_NE(first(1, {2, 3}), first(2, {2, 3}));
  EXPECT_NE(first(1, {2, 3}), first(1, {3, 2}));
  EXPECT_NE(first(1, {2, 3}), first(1, {2}));
  EXPECT_NE(first(1, {2}), first(2, {1}));
}

TEST(Random, LogarithmToSomeUlp) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  Random random(1, {});
  for (int draw = 0; draw < 100'000; ++draw) {
    const double x = std::ldexp(1 - random.uniform(), static_cast<int>(random.bits() % 200) - 100);
    EXPECT_NEAR(natural_log(x), std::log(x), 4 * eps * std::fabs(std::log(x)) + eps / 8) << x;
  }
  EXPECT_EQ(natural_log(1), 0);
}

// Digits to the last bit: IEEE 754 fixes + - * / and sqrt, and nothing else is used.
TEST(Random, NormalsAreTheSameEverywhere) {
  Random random(1, {2, 3});
  std::vector<double> drawn;
  for (int draw = 0; draw < 4; ++draw) drawn.push_back(random.normal());
  EXPECT_EQ(drawn, (std::vector<double>{0x1.72b8c4bf1a4d8p-2, -0x1.f9f2f0677acb6p0, -0x1.174038817a11fp-2,
                                        0x1.6a0c0dfb8d667p-2}));
}

TEST(Random, NormalsHaveTheirMoments) {
  Random random(5, {});
  Moments x, fourth;
  int beyond3 = 0;
  constexpr int count = 400'000;
  for (int draw = 0; draw < count; ++draw) {
    const double z = random.normal();
    x.push(z);
    fourth.push(z * z * z * z);
    if (std::fabs(z) > 3) ++beyond3;
  }
  EXPECT_NEAR(x.mean(), 0, 4 * x.mean_error());
  EXPECT_NEAR(x.variance(), 1, 4 * x.variance_error());
  EXPECT_NEAR(fourth.mean(), 3, 4 * fourth.mean_error());
  const double p = std::erfc(3 / std::sqrt(2.0));
  EXPECT_NEAR(beyond3, p * count, 4 * std::sqrt(p * count));
}

TEST(Moments, OfNumbersDoneByHand) {
  Moments a(2), b(2), whole(2);
  for (const double x : {1.0, 2.0, 4.0}) a.push(x), whole.push(x);
  b.push(9), whole.push(9);
  a.add(b);
  EXPECT_EQ(a.count(), 4);
  EXPECT_DOUBLE_EQ(a.mean(), 4);
  EXPECT_DOUBLE_EQ(a.variance(), 9.5);  // (9 + 4 + 0 + 25) / 4
  EXPECT_DOUBLE_EQ(a.mean_error(), std::sqrt(9.5 / 4));
  // m4 = (81 + 16 + 0 + 625) / 4 = 180.5
  EXPECT_DOUBLE_EQ(a.variance_error(), std::sqrt((180.5 - 9.5 * 9.5) / 4));
  EXPECT_DOUBLE_EQ(a.sd_error(), a.variance_error() / (2 * std::sqrt(9.5)));
  EXPECT_EQ(a.variance_error(), whole.variance_error());
  EXPECT_TRUE(std::isnan(Moments().mean()));
}

TEST(Moments, NoNumberHidesNan) {
  EXPECT_EQ(worse(1, 2), 2);
  EXPECT_EQ(worse(2, 1), 2);
  EXPECT_TRUE(std::isnan(worse(std::nan(""), 1)));
  EXPECT_TRUE(std::isnan(worse(1, std::nan(""))));
}

TEST(Moments, RatioAndLimits) {
  const Measured r = ratio({8, 0.8}, {2, 0.1});
  EXPECT_DOUBLE_EQ(r.value, 4);
  EXPECT_DOUBLE_EQ(r.error, 4 * std::hypot(0.1, 0.05));
  EXPECT_NEAR(worst_of(1), 3, 1e-12);
  EXPECT_NEAR(std::erfc(worst_of(70) / std::sqrt(2.0)) * 70, std::erfc(3 / std::sqrt(2.0)), 1e-12);
}

}  // namespace
}  // namespace levelhead::lab
