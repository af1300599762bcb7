// Group C: rows without keys, -inf, NaN; F and G: who sees whom.
#include <cmath>

#include "kernels/cases.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

void expect_finite(const Backward& back) {
  for (const auto& [name, gradient] : back.gradients) {
    for (std::int64_t n = 0; n < gradient.elements(); ++n)
      EXPECT_TRUE(std::isfinite(gradient.flat(n))) << name << ", element " << n;
  }
}

// A row that may attend to nothing is zero, and so is its gradient.
TEST_P(Cases, C1) {
  Case c = Case::random(type(), {.Nq = 2, .Nk = 2}, 1);
  c.mask = Tensor(DType::boolean, {2, 2}, {0, 0, 1, 1});
  const Forward out = run(c);
  EXPECT_EQ(out.o.flat(0), 0);
  EXPECT_EQ(out.o.flat(1), 0);
  EXPECT_EQ(out.lse.flat(0), -inf);
  EXPECT_EQ(out.row(0, 0).count, 0);
  const Oracle oracle = materialise(c);
  EXPECT_TRUE(near_o(out, oracle, o_tolerance(), o_tolerance()));
  EXPECT_TRUE(near_statistics(out, oracle, c));
  const Backward back = backward(c, out, Upstream::random(c, 2), kernel());
  expect_finite(back);
  EXPECT_EQ(back.at("dq").flat(0), 0);
  EXPECT_EQ(back.at("dq").flat(1), 0);
}

// A finite bias, however small, hides nothing.
TEST_P(Cases, C2) {
  Case c = Case::logits(type(), {1, 2, 3, 4});
  c.bias = Tensor(DType::f32, {1, 4}).fill(-3.4e38);
  const Forward out = run(c);
  EXPECT_EQ(out.o.flat(0), 1.5);
  EXPECT_EQ(out.row(0, 0).count, 4);
}

// NaN behind a mask, a bias, a window or a length reaches nobody, and gets no gradient.
TEST_P(Cases, C3) {
  Case clean = Case::random(type(), {.Nq = 3, .Nk = 5, .D = 8, .Dv = 4}, 3);
  Case dirty = clean;
  for (std::int64_t d = 0; d < 8; ++d) dirty.k.set({0, 0, 4, d}, d % 2 == 0 ? nan : inf);
  for (std::int64_t d = 0; d < 4; ++d) dirty.v.set({0, 0, 4, d}, nan);
  const auto expect_hidden = [&](const char* what, auto hide) {
    hide(clean);
    hide(dirty);
    const Forward want = run(clean), got = run(dirty);
    EXPECT_TRUE(same_bits(got, want)) << what;
    const Upstream u = Upstream::random(clean, 4);
    const Backward back = backward(dirty, got, u, kernel());
    const Backward back_want = backward(clean, want, u, kernel());
    for (const auto& [name, gradient] : back.gradients)
      EXPECT_TRUE(same_bits(gradient, back_want.at(name))) << what << ": " << name;
    for (std::int64_t d = 0; d < 8; ++d) EXPECT_EQ(back.at("dk").get({0, 0, 4, d}), 0) << what;
    for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(back.at("dv").get({0, 0, 4, d}), 0) << what;
  };
  expect_hidden("mask", [](Case& c) { c.mask = Tensor(DType::boolean, {5}, {1, 1, 1, 1, 0}); });
  expect_hidden("bias", [](Case& c) {
    c.mask = {};
    c.bias = Tensor(DType::f32, {5}, {0, 0, 0, 0, -inf});
  });
  expect_hidden("window", [](Case& c) {
    c.bias = {};
    c.window = Window::causal(Align::top_left());
  });
  expect_hidden("length", [](Case& c) {
    c.window = Window::all();
    c.k_lengths = Tensor(DType::i32, {1}, {4});
  });
}

// NaN hidden from one row but seen by another of the same block stays with the other.
TEST_P(Cases, C3OtherRowsOfTheBlock) {
  Case clean = Case::random(type(), {.Nq = 40, .Nk = 40, .D = 16, .Dv = 8}, 5);
  clean.window = Window::causal();
  Case dirty = clean;
  for (std::int64_t d = 0; d < 16; ++d) dirty.k.set({0, 0, 20, d}, nan);
  for (std::int64_t d = 0; d < 8; ++d) dirty.v.set({0, 0, 20, d}, nan);
  const Forward want = run(clean), got = run(dirty);
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t d = 0; d < 8; ++d) {
      const double x = got.o.get({0, 0, i, d});
      if (i < 20) {
        EXPECT_EQ(x, want.o.get({0, 0, i, d})) << i;
      } else {
        EXPECT_TRUE(std::isnan(x)) << i;
      }
    }
    if (i < 20) {
      EXPECT_TRUE(same_bits(got.row_state(0, i), want.row_state(0, i))) << i;
    } else {
      EXPECT_TRUE(std::isnan(got.lse.flat(i)) && std::isnan(got.row(0, i).entropy)) << i;
    }
  }
}

// A visible NaN in q or k is NaN in its row, one in v in its component; never a number.
TEST_P(Cases, C4) {
  const Case clean = Case::random(type(), {.Nq = 3, .Nk = 4, .D = 4, .Dv = 2}, 6);
  Case c = clean;
  c.q.set({0, 0, 1, 2}, nan);
  c.v.set({0, 0, 3, 1}, nan);
  const Forward out = run(c);
  EXPECT_TRUE(near_o(out, materialise(c), o_tolerance(), 4 * o_tolerance()));  // NaN equals NaN only
  EXPECT_TRUE(near_statistics(out, materialise(c), c));
  EXPECT_EQ(out.row(0, 1).count, 4);
  EXPECT_TRUE(std::isnan(out.row(0, 1).max));
  EXPECT_FALSE(std::isnan(out.o.get({0, 0, 0, 0})));
}

// A visible +inf is NaN; -inf has weight 0, and a row of nothing else is NaN.
TEST_P(Cases, C4Infinities) {
  const auto o = [&](const std::vector<double>& logits) { return run(Case::logits(type(), logits)).o.flat(0); };
  EXPECT_TRUE(std::isnan(o({0, inf, 1})));
  EXPECT_EQ(o({-inf, 2, -inf}), 1);
  EXPECT_TRUE(std::isnan(o({-inf, -inf})));
  for (const auto& logits : {std::vector<double>{0, inf, 1}, {-inf, 2, -inf}, {-inf, -inf}}) {
    const Case c = Case::logits(type(), logits);
    EXPECT_TRUE(near_statistics(run(c), materialise(c), c));
  }
  Case wide =
      Case::random(type(), {.Nq = 2, .Nk = 40, .D = 32, .Dv = 32}, 17);  // whole vectors of each instruction set
  for (std::int64_t d = 0; d < 32; ++d) wide.v.set({0, 0, 39, d}, d % 2 == 0 ? inf : nan);
  wide.q.set({0, 0, 1, 7}, -inf);
  const Forward out = run(wide);
  for (std::int64_t d = 0; d < 32; ++d) {
    EXPECT_TRUE(d % 2 == 0 ? out.o.flat(d) == inf : std::isnan(out.o.flat(d))) << d;
    EXPECT_TRUE(std::isnan(out.o.get({0, 0, 1, d}))) << d;
  }
}

// A masked batch item leaves the gradients of the other alone.
TEST_P(Cases, C5) {
  const Shape shape{.B = 2, .Nq = 3, .Nk = 4, .D = 4, .Dv = 3};
  Case c = Case::random(type(), shape, 7);
  c.mask = Tensor(DType::boolean, {2, 1, 1, 4}, {0, 0, 0, 0, 1, 1, 1, 1});
  Case unmasked = c;
  unmasked.mask = {};
  const Upstream u = Upstream::random(c, 8);
  const Backward got = backward(c, run(c), u, kernel()), want = backward(unmasked, run(unmasked), u, kernel());
  for (const auto& [name, gradient] : got.gradients) {
    const std::int64_t half = gradient.elements() / 2;
    for (std::int64_t n = 0; n < half; ++n) {
      EXPECT_EQ(gradient.flat(n), 0) << name;
      EXPECT_EQ(gradient.flat(half + n), want.at(name).flat(half + n)) << name;
    }
  }
}

// -inf in a bias and false in a mask are the same.
TEST_P(Cases, C7) {
  Case by_mask = Case::random(type(), {.Nq = 3, .Nk = 3, .D = 5, .Dv = 4}, 9), by_bias = by_mask;
  by_mask.mask = Tensor(DType::boolean, {3, 3}, {0, 0, 0, 1, 0, 1, 1, 1, 1});
  by_bias.bias = Tensor(DType::f32, {3, 3}, {-inf, -inf, -inf, 0, -inf, 0, 0, 0, 0});
  EXPECT_TRUE(same_bits(run(by_bias), run(by_mask)));
  for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(run(by_mask).o.flat(d), 0);
}

// More queries than keys, aligned bottom-right: the leading rows are empty.
TEST_P(Cases, C8) {
  Case c = Case::random(type(), {.Nq = 3, .Nk = 1}, 10);
  c.window = Window::causal(Align::bottom_right());
  const Forward out = run(c);
  for (std::int64_t n = 0; n < 4; ++n) EXPECT_EQ(out.o.flat(n), 0);
  for (std::int64_t d = 0; d < 2; ++d) EXPECT_EQ(out.o.get({0, 0, 2, d}), c.v.flat(d));
}

// An empty row with a sink: its lse is the sink, and dsinks receives dlse.
TEST_P(Cases, C8Sink) {
  Case c = Case::random(type(), {.Nq = 2, .Nk = 1}, 10);
  c.window = Window::causal(Align::bottom_right());
  c.sinks = c.side({1}, {1.5});
  const Forward out = run(c);
  EXPECT_EQ(out.lse.flat(0), 1.5);
  EXPECT_EQ(out.row(0, 0).sink_mass, 1);
  EXPECT_EQ(out.row(0, 0).entropy_sink, 0);
  Upstream u;
  u.dlse = c.side({1, 1, 2}, {3, 0});
  EXPECT_EQ(backward(c, out, u, kernel()).at("dsinks").flat(0), 3);
}

// The comparator itself: NaN against a number is a difference, in either place.
TEST_P(Cases, C11) {
  EXPECT_FALSE(near(nan, 1.0, 1e9));
  EXPECT_FALSE(near(1.0, nan, 1e9));
  EXPECT_FALSE(near(inf, 1e300, 1e300));
  EXPECT_TRUE(near(nan, nan, 0));
  const Tensor number(DType::f32, {1}, {0}), other(DType::f32, {1}, {nan}), negative(DType::f32, {1}, {-0.0});
  EXPECT_FALSE(near(number, other, 1, 1e9));
  EXPECT_FALSE(near(other, number, 1, 1e9));
  EXPECT_FALSE(same_bits(number, other));
  EXPECT_FALSE(same_bits(number, negative));
}

// A row whose first blocks of keys are wholly hidden.
TEST_P(Cases, C13) {
  Case c = Case::random(type(), {.Nq = 4, .Nk = 700, .D = 4, .Dv = 3}, 13);
  c.mask = Tensor(DType::boolean, {4, 700}).fill(1);
  for (std::int64_t j = 0; j < 650; ++j) {
    c.mask->set({1, j}, 0);
    if (j < 300) c.mask->set({2, j}, 0);
    if (j > 100 && j < 600) c.mask->set({3, j}, 0);
  }
  const Forward out = run(c);
  const Oracle oracle = materialise(c);
  EXPECT_TRUE(near_o(out, oracle, o_tolerance(), 4 * o_tolerance()));
  EXPECT_TRUE(near_statistics(out, oracle, c));
}

// Fewer tokens than a block: the sanitizers watch the ends.
TEST_P(Cases, C14) {
  for (const std::int64_t tokens : {1, 9, 12}) {
    for (const std::int64_t dim : {1, 5, 16}) {
      Case c = Case::random(type(), {.Nq = tokens, .Nk = tokens, .D = dim, .Dv = dim}, 14);
      c.window = Window::causal();
      const Forward out = run(c);
      EXPECT_TRUE(near_o(out, materialise(c), o_tolerance(), 4 * o_tolerance())) << tokens << " " << dim;
      backward(c, out, Upstream::random(c, 15), kernel());
    }
  }
}

Case counting(DType type, std::int64_t queries, std::int64_t keys) {
  Case c(type, {.Nq = queries, .Nk = keys, .D = 1, .Dv = 1});
  for (std::int64_t j = 0; j < keys; ++j) c.v.set_flat(j, static_cast<double>(j));
  return c;
}

void expect_counts(const Forward& run, const std::vector<std::int64_t>& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(run.row(0, static_cast<std::int64_t>(i)).count, counts[i]) << "row " << i;
}

// One query at the top-left corner, or at the bottom-right one.
TEST_P(Cases, F1) {
  Case c = counting(type(), 1, 4);
  c.window = Window::causal(Align::top_left());
  EXPECT_EQ(run(c).o.flat(0), 0);
  c.window = Window::causal(Align::bottom_right());
  EXPECT_EQ(run(c).o.flat(0), 1.5);
}

// Unequal lengths: both corners, and an error that asks for one.
TEST_P(Cases, F2) {
  Case c = counting(type(), 2, 5);
  c.window = Window::causal(Align::top_left());
  expect_counts(run(c), {1, 2});
  c.window = Window::causal(Align::bottom_right());
  expect_counts(run(c), {4, 5});
  c.window = Window::causal();
  EXPECT_THROW(run(c), Error);
}

// The alignment does not turn with which side is longer.
TEST_P(Cases, F4) {
  Case c = counting(type(), 5, 2);
  c.window = Window::causal(Align::top_left());
  expect_counts(run(c), {1, 2, 2, 2, 2});
  c.window = Window::causal(Align::bottom_right());
  expect_counts(run(c), {0, 0, 0, 1, 2});
  c.window = Window::causal(Align::at(1));
  expect_counts(run(c), {2, 2, 2, 2, 2});
}

// left counts the keys before the query's own, which is seen too.
TEST_P(Cases, G1) {
  Case c = counting(type(), 6, 6);
  c.window = Window::sliding(3, 0);
  expect_counts(run(c), {1, 2, 3, 4, 4, 4});
  c.window = Window::sliding(1, 2);
  expect_counts(run(c), {3, 4, 4, 4, 3, 2});
  c.window = Window::sliding({}, 1);
  expect_counts(run(c), {2, 3, 4, 5, 6, 6});
  c.window = Window::sliding(0, {});
  expect_counts(run(c), {6, 5, 4, 3, 2, 1});
}

// What lies outside the window, however large, is not there.
TEST_P(Cases, G3) {
  Case c = Case::random(type(), {.Nq = 30, .Nk = 30, .D = 4, .Dv = 3}, 16);
  c.window = Window::sliding(2, 0);
  const Forward want = run(c);
  for (std::int64_t d = 0; d < 4; ++d) c.k.set({0, 0, 5, d}, 1e3);
  for (std::int64_t d = 0; d < 3; ++d) c.v.set({0, 0, 5, d}, 1e3);
  const Forward got = run(c);
  for (std::int64_t i = 0; i < 30; ++i) {
    if (i >= 5 && i <= 7) continue;
    EXPECT_TRUE(same_bits(got.row_state(0, i), want.row_state(0, i))) << i;
    for (std::int64_t d = 0; d < 3; ++d) EXPECT_EQ(got.o.get({0, 0, i, d}), want.o.get({0, 0, i, d})) << i;
  }
}

}  // namespace
}  // namespace levelhead::test
