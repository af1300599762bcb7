// Groups I and J: precision, merging, determinism.
#include <cmath>

#include "kernels/cases.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

double cosine(const Tensor& a, const Tensor& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::int64_t n = 0; n < a.elements(); ++n) {
    ab += a.flat(n) * b.flat(n);
    aa += a.flat(n) * a.flat(n);
    bb += b.flat(n) * b.flat(n);
  }
  return ab / std::sqrt(aa * bb);
}

// Frobenius norm of o - truth over that of truth.
// One training step's gradients keep their direction in every type.
TEST_P(Cases, I2) {
  const Shape shape{.Hq = 2, .Hk = 2, .Nq = 48, .Nk = 48, .D = 32, .Dv = 32};
  Case exact = Case::random(DType::f64, shape, 1);
  exact.window = Window::causal();
  Upstream u;
  Random random(2);
  u.dout = Tensor(DType::f64, {1, 2, 48, 32}).fill_normal(random);
  const Backward want = backward(exact, forward(exact, "reference"), u, "reference");
  Case c = exact;
  c.dtype = type();
  for (Tensor* t : {&c.q, &c.k, &c.v}) *t = t->as(type());
  Upstream rounded;
  rounded.dout = u.dout->as(type());
  const Backward got = backward(c, run(c), rounded, kernel());
  for (const auto& [name, gradient] : got.gradients) EXPECT_GT(cosine(gradient, want.at(name)), 0.9999) << name;
}

// Merging far apart sums neither overflows nor depends on the order; -inf with -inf stays.
TEST_P(Cases, I4) {
  const auto state = [&](double logit) { return run(Case::logits(type(), {logit})).state[0]; };
  const RowState high = state(200), low = state(-200);
  EXPECT_EQ(log_sum_exp(merge(high, low), {}), 200);
  EXPECT_EQ(log_sum_exp(merge(low, high), {}), 200);
  const RowState empty;
  EXPECT_EQ(log_sum_exp(merge(empty, empty), {}), -inf);
  EXPECT_TRUE(same_bits(merge(empty, high), high));
  EXPECT_TRUE(same_bits(merge(high, empty), high));
  EXPECT_TRUE(std::isnan(log_sum_exp(merge(state(-inf), state(-inf)), {})));
  EXPECT_EQ(log_sum_exp(merge(state(-inf), high), {}), 200);
}

// The error to double, by type: recorded, and within the yardstick of docs/numbers.md.
TEST_P(Cases, I6) {
  const Case c = Case::random(type(), {.Nq = 64, .Nk = 64, .D = 64, .Dv = 64}, 4);
  const Oracle oracle = materialise(c);
  const double error = relative_error(run(c).o, oracle.o);
  RecordProperty("relative_error", std::to_string(error));
  const Tensor rounded(type(), {1, 1, 64, 64}, oracle.o);
  const double rounding = relative_error(rounded, oracle.o);
  switch (type()) {
    case DType::f64: EXPECT_LE(error, 1e-15); break;
    case DType::f32: EXPECT_LE(error, 2e-6); break;
    // weights may be in 16 bits: docs/numbers.md allows 1.5 times the naive run, which rounds them too
    default: EXPECT_LE(error, 1.1 * rounding + unit_roundoff(type()));
  }
}

void expect_deterministic(const Case& c, const std::string& kernel, int repeats) {
  const Upstream u = Upstream::random(c, 5);
  const Forward want = forward(c, kernel, 1);
  const Backward want_back = backward(c, want, u, kernel, 1);
  for (int n = 0; n < repeats; ++n) {
    const int threads = n % 2 == 0 ? 8 : 1;
    const Forward got = forward(c, kernel, threads);
    ASSERT_TRUE(same_bits(got, want)) << "repeat " << n;
    const Backward back = backward(c, got, u, kernel, threads);
    for (const auto& [name, gradient] : back.gradients)
      ASSERT_TRUE(same_bits(gradient, want_back.at(name))) << name << ", repeat " << n;
  }
}

// Thirty runs with 1 and 8 threads; the bias is shared by all heads, so its gradient is summed across tasks.
TEST_P(Cases, J1) {
  Case c = Case::random(type(), {.B = 2, .Hq = 3, .Hk = 3, .Nq = 20, .Nk = 24, .D = 8, .Dv = 8}, 6);
  Random random(7);
  c.bias = Tensor(DType::f32, {20, 24}).fill_normal(random);
  c.sinks = c.side({3}, {0.1, -1, 2});
  c.slopes = c.side({3}, {0.1, 0.2, 0.3});
  c.window = Window::all(Align::bottom_right());
  c.policy = Policy::per_head;
  c.scale_values = c.side({3}, {0.3, 0.4, 0.5});
  expect_deterministic(c, kernel(), 30);
}

// Many more heads than threads.
TEST_P(Cases, J2) {
  Case c = Case::random(type(), {.B = 8, .Hq = 8, .Hk = 8, .Nq = 3, .Nk = 5, .D = 4, .Dv = 4}, 8);
  c.sinks = Tensor(side_type(type()), {8}).fill(0.5);
  expect_deterministic(c, kernel(), 30);
}

// Grouped heads add into one dk and dv.
TEST_P(Cases, J3) {
  expect_deterministic(Case::random(type(), {.Hq = 8, .Hk = 2, .Nq = 9, .Nk = 40, .D = 16, .Dv = 4}, 9), kernel(), 30);
}

}  // namespace
}  // namespace levelhead::test
