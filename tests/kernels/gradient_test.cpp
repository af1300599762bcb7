// Every gradient of the reference against finite differences of its own forward, in double.
#include <algorithm>
#include <cmath>

#include "support/kit.hpp"

namespace levelhead::test {
namespace {

double inner(const std::optional<Tensor>& gradient, const Tensor& value) {
  double sum = 0;
  for (std::int64_t n = 0; gradient && n < value.elements(); ++n) sum += gradient->flat(n) * value.flat(n);
  return sum;
}

// <dout, o> + <dlse, lse> + <dentropy, entropy>; rows without a key have no entropy to move.
double loss(const Case& c, const Upstream& u) {
  const Forward run = forward(c, "reference");
  Tensor entropy(DType::f64, run.lse.sizes()), lse = run.lse;
  for (std::int64_t n = 0; n < lse.elements(); ++n) {
    entropy.set_flat(n, row_statistics(run.state[static_cast<std::size_t>(n)], {}).entropy);
    if (std::isinf(lse.flat(n))) lse.set_flat(n, 0);  // an empty row without a sink: constant
  }
  return inner(u.dout, run.o) + inner(u.dlse, lse) + inner(u.dentropy, entropy);
}

// The five-point formula: with step 1e-3 its own error, step^4 / 30 of the fifth derivative and rounding / step,
// is near 1e-12 of the loss.
double difference_quotient(Case& c, Tensor& input, std::int64_t n, const Upstream& u) {
  constexpr double step = 1e-3;
  const double x = input.flat(n);
  const auto at = [&](double shift) {
    input.set_flat(n, x + shift * step);
    return loss(c, u);
  };
  const double result = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
  input.set_flat(n, x);
  return result;
}

void expect_gradients(Case c, const Upstream& u) {
  const Backward back = backward(c, forward(c, "reference"), u, "reference");
  for (const auto& [name, gradient] : back.gradients) {
    Tensor& input = input_of(c, name);
    double largest = 0;
    for (std::int64_t n = 0; n < gradient.elements(); ++n) largest = std::max(largest, std::abs(gradient.flat(n)));
    ASSERT_TRUE(std::isfinite(largest)) << name;
    for (std::int64_t n = 0; n < gradient.elements(); ++n) {
      const double got = gradient.flat(n);
      if (std::isinf(input.flat(n))) {
        EXPECT_EQ(got, 0) << name << " of a hidden pair, element " << n;
        continue;
      }
      const double want = difference_quotient(c, input, n, u);
      EXPECT_TRUE(near(got, want, 1e-6 * std::abs(want) + 1e-8 * std::max(largest, 1e-3))) << name << ", element " << n;
    }
  }
}

void expect_gradients(const Case& c, std::uint64_t seed = 99) { expect_gradients(c, Upstream::random(c, seed)); }

constexpr Shape small{.B = 1, .Hq = 2, .Hk = 2, .Nq = 4, .Nk = 5, .D = 3, .Dv = 3};
constexpr Shape grouped{.B = 2, .Hq = 4, .Hk = 2, .Nq = 4, .Nk = 6, .D = 3, .Dv = 2};

Tensor normals(const Sizes& sizes, std::uint64_t seed, double scale = 1) {
  Random random(seed);
  return Tensor(DType::f64, sizes).fill_normal(random, scale);
}

TEST(Gradient, OfEachOutputAlone) {
  const Case c = Case::random(DType::f64, small, 1);
  const Upstream all = Upstream::random(c, 2);
  expect_gradients(c, {all.dout, {}, {}});
  expect_gradients(c, {{}, all.dlse, {}});
  expect_gradients(c, {{}, {}, all.dentropy});
  expect_gradients(c, all);
}

TEST(Gradient, GroupedHeads) { expect_gradients(Case::random(DType::f64, grouped, 3)); }

TEST(Gradient, ValueDimLargerAndSmaller) {
  expect_gradients(Case::random(DType::f64, {.Nq = 3, .Nk = 4, .D = 2, .Dv = 5}, 4));
  expect_gradients(Case::random(DType::f64, {.Nq = 3, .Nk = 4, .D = 5, .Dv = 1}, 5));
}

TEST(Gradient, Softcap) {
  Case c = Case::random(DType::f64, small, 6);
  c.scale = Constant{2};
  c.softcap = 1.5;
  expect_gradients(c);
}

TEST(Gradient, Windows) {
  Case c = Case::random(DType::f64, grouped, 7);
  c.window = Window::causal(Align::bottom_right());
  expect_gradients(c);
  c.window = Window::sliding(1, 0, Align::at(-2));  // leading rows see nothing
  expect_gradients(c);
  c.window = Window::sliding(2, 1, Align::top_left());
  expect_gradients(c);
}

TEST(Gradient, MaskWithAnEmptyRow) {
  Case c = Case::random(DType::f64, small, 8);
  c.mask = Tensor(DType::boolean, {4, 5});
  Random random(9);
  for (std::int64_t n = 5; n < 20; ++n) c.mask->set_flat(n, random.chance(0.6) ? 1 : 0);
  c.sinks = normals({2}, 10);
  expect_gradients(c);
}

TEST(Gradient, Lengths) {
  Case c = Case::random(DType::f64, grouped, 11);
  c.q_lengths = Tensor(DType::i64, {2}, {3, 4});
  c.k_lengths = Tensor(DType::i32, {2}, {6, 2});
  c.window = Window::causal(Align::bottom_right());
  c.slopes = normals({4}, 12, 0.3);
  Upstream u = Upstream::random(c, 13);
  for (std::int64_t h = 0; h < 4; ++h) {  // row 3 of item 0 lies behind its length: nothing of it is read
    u.dlse->set({0, h, 3}, 0);
    u.dentropy->set({0, h, 3}, 0);
  }
  expect_gradients(c, u);
}

TEST(Gradient, Documents) {
  Case c = Case::random(DType::f64, {.Hq = 2, .Nq = 5, .Nk = 6, .D = 3, .Dv = 2}, 14);
  c.q_offsets = Tensor(DType::i64, {5}, {0, 2, 2, 4, 5});
  c.k_offsets = Tensor(DType::i64, {5}, {0, 3, 4, 6, 6});  // the last document has no key
  c.window = Window::causal(Align::top_left());
  c.sinks = normals({2}, 15);
  expect_gradients(c);
}

TEST(Gradient, BiasOfEveryShape) {
  for (const Sizes& sizes :
       {Sizes{6}, Sizes{4, 6}, Sizes{4, 1}, Sizes{1, 4, 1, 6}, Sizes{2, 1, 1, 6}, Sizes{1, 1}, Sizes{2, 4, 4, 6}}) {
    Case c = Case::random(DType::f64, grouped, 16);
    c.bias = normals(sizes, 17);
    expect_gradients(c);
  }
}

TEST(Gradient, BiasThatHides) {
  Case c = Case::random(DType::f64, small, 18);
  c.bias = normals({4, 5}, 19);
  c.bias->set({1, 2}, -std::numeric_limits<double>::infinity());
  c.bias->set({3, 0}, -std::numeric_limits<double>::infinity());
  expect_gradients(c);
}

TEST(Gradient, Slopes) {
  Case c = Case::random(DType::f64, grouped, 20);
  c.window = Window::all(Align::bottom_right());
  c.slopes = normals({4}, 21, 0.5);
  expect_gradients(c);
}

TEST(Gradient, SinksBelowAndAboveTheKeys) {
  Case c = Case::random(DType::f64, small, 22);
  c.sinks = Tensor(DType::f64, {2}, {-3, 6});
  expect_gradients(c);
}

TEST(Gradient, ScalePerHeadAndPerRow) {
  Case c = Case::random(DType::f64, grouped, 23);
  c.policy = Policy::per_head;
  c.scale_values = normals({4}, 24);
  expect_gradients(c);
  c.policy = Policy::per_row;
  c.scale_values = normals({2, 4, 4}, 25);
  expect_gradients(c);
}

TEST(Gradient, Ssmax) {
  Case c = Case::random(DType::f64, {.Hq = 2, .Nq = 5, .Nk = 5, .D = 3, .Dv = 2}, 26);
  c.policy = Policy::ssmax;
  c.scale_values = normals({2}, 27);
  c.window = Window::causal();
  expect_gradients(c);
}

TEST(Gradient, LogKeys) {
  Case c = Case::random(DType::f64, {.Hq = 2, .Nq = 5, .Nk = 5, .D = 3, .Dv = 2}, 28);
  c.scale = LogKeys{4};
  c.window = Window::causal();
  expect_gradients(c);
}

TEST(Gradient, QkNorm) {
  for (const Policy policy : {Policy::qk_l2, Policy::qk_rms}) {
    Case c = Case::random(DType::f64, grouped, 29);
    c.policy = policy;
    expect_gradients(c);
    c.scale_values = normals({4}, 30);
    expect_gradients(c);
  }
}

TEST(Gradient, EverythingTogether) {
  Case c = Case::random(DType::f64, {.B = 2, .Hq = 4, .Hk = 2, .Nq = 4, .Nk = 6, .D = 3, .Dv = 5}, 31);
  c.policy = Policy::per_row;
  c.scale_values = normals({2, 4, 4}, 32);
  c.softcap = 2;
  c.sinks = normals({4}, 33);
  c.slopes = normals({4}, 34, 0.2);
  c.bias = normals({4, 1, 6}, 35);
  c.mask = Tensor(DType::boolean, {1, 6}, {1, 1, 0, 1, 1, 1});
  c.k_lengths = Tensor(DType::i64, {2}, {6, 5});
  c.window = Window::sliding(3, 1, Align::bottom_right());
  expect_gradients(c);
}

// Other types: the gradient of the rounded inputs, rounded once. Products in D = 4 keep the multiplier exact.
TEST(Gradient, OfOtherTypesIsRoundedOnce) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    Case c = Case::random(type, {.B = 1, .Hq = 4, .Hk = 2, .Nq = 6, .Nk = 9, .D = 4, .Dv = 3}, 36);
    c.sinks = Tensor(DType::f32, {4}, {0.5, -1, 2, 0});
    Case wide = c;
    wide.dtype = DType::f64;
    for (Tensor* t : {&wide.q, &wide.k, &wide.v}) *t = t->as(DType::f64);
    const Upstream u = Upstream::random(c, 37);
    Upstream wide_u = u;
    wide_u.dout = u.dout->as(DType::f64);
    const Backward got = backward(c, forward(c, "reference"), u, "reference");
    const Backward want = backward(wide, forward(wide, "reference"), wide_u, "reference");
    for (const auto& [name, gradient] : want.gradients)
      EXPECT_TRUE(same_bits(got.at(name), gradient.as(got.at(name).dtype()))) << name << " " << name_of(type);
  }
}

// A faster kernel saves m and l of logits that it rounded to f32, here by as much as 1e-5: the gradients must not mix
// them with logits in double.
TEST(Gradient, AfterAnyKernelsForward) {
  for (const KernelType& k : kernel_types()) {
    if (!k.available || k.type == DType::f64) continue;
    Case c = Case::random(k.type, {.B = 1, .Hq = 4, .Hk = 2, .Nq = 9, .Nk = 2, .D = 64, .Dv = 3}, 38);
    Random random(39);
    c.q.fill_normal(random, 30);
    c.sinks = Tensor(DType::f32, {4}, {0.5, 150, -20, 0});
    const Upstream u = Upstream::random(c, 40);
    const Backward got = backward(c, forward(c, k.kernel), u, k.kernel);
    const Backward want = backward(c, forward(c, "reference"), u, "reference");
    for (const auto& [name, gradient] : want.gradients) {
      const double ulp = 2 * unit_roundoff(gradient.dtype());
      EXPECT_TRUE(near(got.at(name), gradient, ulp, 1e-12)) << name << " after " << k.kernel << " " << name_of(k.type);
    }
  }
}

}  // namespace
}  // namespace levelhead::test
