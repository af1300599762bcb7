// Group B: scale, softcap, sinks, temperature.
#include <cmath>

#include "kernels/cases.hpp"

namespace levelhead::test {
namespace {

// Unset is 1/sqrt(D); 0 is 0; negative is negative.
TEST_P(Cases, B2) {
  Case c = Case::random(type(), {.Nq = 3, .Nk = 4, .D = 6, .Dv = 1}, 2);
  for (std::int64_t j = 0; j < 4; ++j) c.v.set_flat(j, static_cast<double>(j));
  const Forward unset = run(c);
  c.scale = Constant{1 / std::sqrt(6.0)};
  EXPECT_TRUE(same_bits(run(c), unset));
  c.scale = Constant{0};
  const Forward zero = run(c);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(zero.o.flat(i), 1.5);
  c.scale = Constant{-1};
  const Forward negative = run(c);
  EXPECT_TRUE(near_statistics(negative, materialise(c), c));
  EXPECT_TRUE(near_o(negative, materialise(c), o_tolerance(), o_tolerance()));
}

// YaRN multiplies by the square of its mscale, seen with two keys.
TEST_P(Cases, B3) {
  Case c(type(), {.Nk = 2, .D = 4});
  c.q.fill(1);
  c.k.set({0, 0, 1, 0}, 1);
  const auto factor = [&](double mscale) {
    c.scale = Yarn{40, mscale};
    return run(c).row(0, 0).max / 0.5;  // 1/sqrt(4)
  };
  EXPECT_NEAR(factor(0.707), 1.590, 5e-4);
  EXPECT_NEAR(factor(1.0), 1.874, 5e-4);
}

// Zero padding of D leaves the result when the scale stays 1/sqrt of the true D.
TEST_P(Cases, B4) {
  const Case c = Case::random(type(), {.Nq = 4, .Nk = 9, .D = 5, .Dv = 3}, 4);
  Case padded(type(), {.Nq = 4, .Nk = 9, .D = 8, .Dv = 3});
  padded.v = c.v;
  padded.scale = Constant{1 / std::sqrt(5.0)};
  for (std::int64_t d = 0; d < 5; ++d) {
    for (std::int64_t i = 0; i < 4; ++i) padded.q.set({0, 0, i, d}, c.q.get({0, 0, i, d}));
    for (std::int64_t j = 0; j < 9; ++j) padded.k.set({0, 0, j, d}, c.k.get({0, 0, j, d}));
  }
  const Oracle oracle = materialise(c);
  EXPECT_TRUE(near_o(run(c), oracle, o_tolerance(), o_tolerance()));
  EXPECT_TRUE(near_o(run(padded), oracle, o_tolerance(), o_tolerance()));
  EXPECT_TRUE(near_statistics(run(padded), oracle, padded));
}

// QK-norm is really called: ten times q gives the same logits.
TEST_P(Cases, B8) {
  for (const Policy policy : {Policy::qk_l2, Policy::qk_rms}) {
    Case c = Case::random(type(), {.Hq = 2, .Nq = 3, .Nk = 5, .D = 8, .Dv = 2}, 8);
    c.policy = policy;
    const Forward once = run(c);
    EXPECT_TRUE(near_statistics(once, materialise(c), c));
    for (std::int64_t n = 0; n < c.q.elements(); ++n) c.q.set_flat(n, 10 * c.q.flat(n));
    const Forward ten_times = run(c);
    // q and k are rounded once after the norm, and so is 10 q before it; eps is 1e-6 of a sum of 8 squares
    const double bound = 8 * unit_roundoff(type()) + 1e-6;
    for (std::int64_t n = 0; n < 6; ++n)
      EXPECT_TRUE(near(ten_times.state[n].max, once.state[n].max, bound * std::sqrt(8.0))) << n;
  }
}

TEST_P(Cases, B9) {
  Case c = Case::logits(type(), {100});
  c.softcap = 50;
  EXPECT_NEAR(run(c).row(0, 0).max, 48.20, 5e-3);
}

// The cap's factor is taken before hiding, so backward stays finite.
TEST_P(Cases, B11) {
  Case c = Case::logits(type(), {0, 0});
  c.v = Tensor(type(), {1, 1, 2, 1}, {1, 1000});
  c.bias = c.side({2}, {0, -std::numeric_limits<double>::infinity()});
  c.softcap = 1;
  const Forward out = run(c);
  EXPECT_EQ(out.o.flat(0), 1);
  Upstream u;
  u.dout = Tensor(type(), {1, 1, 1, 1}, {1});
  const Backward back = backward(c, out, u, kernel());
  for (const auto& [name, gradient] : back.gradients) {
    for (std::int64_t n = 0; n < gradient.elements(); ++n) EXPECT_TRUE(std::isfinite(gradient.flat(n))) << name;
  }
  EXPECT_EQ(back.at("dk").flat(1), 0);
  EXPECT_EQ(back.at("dv").flat(1), 0);
}

TEST_P(Cases, B12) {
  Case c = Case::logits(type(), {0});
  c.v.fill(1);
  c.sinks = c.side({1}, {0});
  const Forward out = run(c);
  EXPECT_EQ(out.o.flat(0), 0.5);
  Upstream u;
  u.dout = Tensor(type(), {1, 1, 1, 1}, {1});
  EXPECT_EQ(backward(c, out, u, kernel()).at("dsinks").flat(0), -0.25);
}

// n counts the visible keys of the query's own document; one key gives the factor 0.
TEST_P(Cases, B14) {
  Case c(type(), {.Nq = 5, .Nk = 5, .D = 4, .Dv = 1});
  c.q.fill(1);
  c.k.fill(1);
  c.v.fill(1);
  c.window = Window::causal();
  c.q_offsets = c.k_offsets = Tensor(DType::i64, {3}, {0, 3, 5});
  c.policy = Policy::ssmax;
  c.scale_values = c.side({1}, {1});
  const Forward out = run(c);
  const std::int64_t counts[] = {1, 2, 3, 1, 2};
  for (std::int64_t i = 0; i < 5; ++i) {
    const double n = static_cast<double>(counts[i]);
    EXPECT_EQ(out.row(0, i).count, counts[i]);
    EXPECT_TRUE(near(out.row(0, i).max, 2 * std::log(n), statistic_bound(2 * std::log(n))));
    EXPECT_EQ(out.o.flat(i), 1);
  }
}

// Every policy at its neutral setting has the bits of the plain call.
TEST_P(Cases, B15) {
  const Shape shape{.B = 2, .Hq = 4, .Hk = 2, .Nq = 21, .Nk = 21, .D = 24, .Dv = 7};
  const Case plain = Case::random(type(), shape, 15);
  const Forward want = run(plain);
  const auto expect_neutral = [&](const char* name, auto change) {
    Case c = plain;
    change(c);
    EXPECT_TRUE(same_bits(run(c), want)) << name;
  };
  const double inv_sqrt = 1 / std::sqrt(24.0);
  expect_neutral("inv_dim", [](Case& c) { c.scale = InvDim{24}; });
  expect_neutral("yarn", [](Case& c) { c.scale = Yarn{1, 0.7}; });
  expect_neutral("constant", [&](Case& c) { c.scale = Constant{inv_sqrt}; });
  expect_neutral("per head", [&](Case& c) {
    c.policy = Policy::per_head;
    c.scale_values = Tensor(side_type(type()), {4}).fill(inv_sqrt);
  });
  expect_neutral("per row", [&](Case& c) {
    c.policy = Policy::per_row;
    c.scale_values = Tensor(side_type(type()), {2, 4, 21}).fill(inv_sqrt);
  });
  expect_neutral("mask", [](Case& c) { c.mask = Tensor(DType::boolean, {21}).fill(1); });
  expect_neutral("bias", [](Case& c) { c.bias = Tensor(side_type(c.dtype), {21, 21}); });
  expect_neutral("slopes", [](Case& c) { c.slopes = Tensor(side_type(c.dtype), {4}); });
  expect_neutral("window", [](Case& c) { c.window = Window::sliding(21, 21); });
  expect_neutral("lengths", [](Case& c) { c.q_lengths = c.k_lengths = Tensor(DType::i64, {2}).fill(21); });
}

// A scale per head scales its head.
TEST_P(Cases, B17) {
  Case c = Case::random(type(), {.Hq = 2, .Hk = 2, .Nq = 3, .Nk = 5, .D = 4, .Dv = 3}, 17);
  c.policy = Policy::per_head;
  c.scale_values = c.side({2}, {1, 3});
  const Forward out = run(c);
  const Oracle oracle = materialise(c);
  EXPECT_TRUE(near_statistics(out, oracle, c));
  // weights of logits of size L err by L times the unit roundoff of f32
  const double widest = *std::max_element(oracle.magnitude.begin(), oracle.magnitude.end());
  EXPECT_TRUE(near_o(out, oracle, o_tolerance(), o_tolerance(widest)));
}

}  // namespace
}  // namespace levelhead::test
