// Group D: strides, layouts, shapes.
#include <cmath>

#include "kernels/cases.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

constexpr Shape odd_shape{.B = 2, .Hq = 4, .Hk = 2, .Nq = 7, .Nk = 21, .D = 10, .Dv = 6};

// q as a transposed view, its inner stride not 1.
TEST_P(Cases, D1) {
  Case c = Case::random(type(), odd_shape, 1);
  const Forward want = run(c);
  c.q = c.q.relaid({0, 1, 3, 2});
  EXPECT_TRUE(same_bits(run(c), want));
}

// Each of q, k, v alone in every kind of layout; backward too.
TEST_P(Cases, D2) {
  const Case dense = Case::random(type(), odd_shape, 2);
  const Forward want = run(dense);
  const Upstream u = Upstream::random(dense, 3);
  const Backward want_back = backward(dense, want, u, kernel());
  const auto expect_same = [&](const Case& c, const char* what) {
    const Forward got = run(c);
    EXPECT_TRUE(same_bits(got, want)) << what;
    const Backward back = backward(c, got, u, kernel());
    for (const auto& [name, gradient] : back.gradients)
      EXPECT_TRUE(same_bits(gradient, want_back.at(name))) << what << ": " << name;
  };
  for (Tensor Case::*which : {&Case::q, &Case::k, &Case::v}) {
    const auto changed = [&](const std::vector<int>& axes, std::int64_t gap, bool reversed) {
      Case c = dense;
      c.*which = (c.*which).relaid(axes, gap, reversed);
      return c;
    };
    expect_same(changed({0, 2, 1, 3}, 0, false), "tokens before heads");
    expect_same(changed({3, 2, 1, 0}, 0, false), "all axes turned");
    expect_same(changed({0, 1, 2, 3}, 2, false), "gaps");
    expect_same(changed({0, 1, 2, 3}, 0, true), "negative strides");
    expect_same(changed({1, 0, 3, 2}, 1, true), "everything");
  }
}

// Keys and values shared by all batch items through stride 0.
TEST_P(Cases, D2Broadcast) {
  Case c = Case::random(type(), {.B = 1, .Hq = 2, .Hk = 1, .Nq = 3, .Nk = 5, .D = 4, .Dv = 3}, 4);
  const Forward one = run(c);
  c.shape.B = 3;
  c.q = c.q.expanded(0, 3);
  c.k = c.k.expanded(0, 3);
  c.v = c.v.expanded(0, 3);
  const Forward three = run(c);
  for (std::int64_t n = 0; n < three.o.elements(); ++n)
    EXPECT_EQ(three.o.flat(n), one.o.flat(n % one.o.elements())) << n;
}

// Incoming gradients that are one number, expanded.
TEST_P(Cases, D3) {
  const Case c = Case::random(type(), odd_shape, 5);
  const Forward out = run(c);
  Upstream dense, expanded;
  dense.dout = Tensor(type(), {2, 4, 7, 6}).fill(0.75);
  expanded.dout = Tensor(type(), {1, 1, 1, 1}, {0.75}).expanded(0, 2).expanded(1, 4).expanded(2, 7).expanded(3, 6);
  const Backward want = backward(c, out, dense, kernel()), got = backward(c, out, expanded, kernel());
  for (const auto& [name, gradient] : got.gradients) EXPECT_TRUE(same_bits(gradient, want.at(name))) << name;
}

// Masks of every rank and broadcast equal the whole mask.
TEST_P(Cases, D6) {
  const Case plain = Case::random(type(), odd_shape, 6);
  Random random(7);
  for (const Sizes& sizes : {Sizes{21}, Sizes{1, 21}, Sizes{7, 1}, Sizes{2, 1, 1, 21}, Sizes{1, 4, 1, 21},
                             Sizes{4, 7, 21}, Sizes{2, 4, 7, 21}}) {
    Case c = plain, whole = plain;
    c.mask = Tensor(DType::boolean, sizes);
    for (std::int64_t n = 0; n < c.mask->elements(); ++n) c.mask->set_flat(n, random.chance(0.7) ? 1 : 0);
    whole.mask = Tensor(DType::boolean, {2, 4, 7, 21});
    const Oracle oracle = materialise(c);
    for (std::size_t n = 0; n < oracle.visible.size(); ++n)
      whole.mask->set_flat(static_cast<std::int64_t>(n), oracle.visible[n] ? 1 : 0);
    const Forward got = run(c);
    EXPECT_TRUE(same_bits(got, run(whole)));
    EXPECT_TRUE(near_statistics(got, oracle, c));
    c.mask = c.mask->relaid(sizes.size() == 4   ? std::vector<int>{3, 1, 0, 2}
                            : sizes.size() == 3 ? std::vector<int>{2, 0, 1}
                            : sizes.size() == 2 ? std::vector<int>{1, 0}
                                                : std::vector<int>{0},
                            1, true);
    EXPECT_TRUE(same_bits(run(c), got));
  }
}

// k and v that disagree are an error that names both numbers.
TEST_P(Cases, D7) {
  Case c = Case::random(type(), {.Nq = 2, .Nk = 5}, 8);
  c.v = Tensor(type(), {1, 1, 6, 2});
  try {
    run(c);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find('5'), std::string::npos) << what;
    EXPECT_NE(what.find('6'), std::string::npos) << what;
  }
}

// Every size 0 is legal.
TEST_P(Cases, D8) {
  for (std::int64_t Shape::*zero : {&Shape::B, &Shape::Hq, &Shape::Hk, &Shape::Nq, &Shape::Nk, &Shape::D, &Shape::Dv}) {
    Shape s{.B = 2, .Hq = 2, .Hk = 2, .Nq = 3, .Nk = 4, .D = 5, .Dv = 6};
    s.*zero = 0;
    if (s.Hk == 0) s.Hq = 0;
    const Case c = Case::random(type(), s, 9);
    const Forward out = run(c);
    EXPECT_TRUE(near_o(out, materialise(c), o_tolerance(), 4 * o_tolerance()));
    EXPECT_TRUE(near_statistics(out, materialise(c), c));
    const Backward back = backward(c, out, Upstream::random(c, 10), kernel());
    for (const auto& [name, gradient] : back.gradients) {
      for (std::int64_t n = 0; n < gradient.elements(); ++n) EXPECT_TRUE(std::isfinite(gradient.flat(n))) << name;
    }
  }
}

// A bias of any width, in f32 or the type of q.
TEST_P(Cases, D10) {
  for (const std::int64_t keys : {1, 3, 7, 77}) {
    for (const DType bias_type : {DType::f32, type()}) {
      Case c = Case::random(type(), {.Hq = 2, .Nq = 5, .Nk = keys, .D = 8, .Dv = 3}, 11);
      Random random(12);
      c.bias = Tensor(bias_type, {2, 5, keys}).fill_normal(random);
      const Forward out = run(c);
      const Oracle oracle = materialise(c);
      EXPECT_TRUE(near_o(out, oracle, o_tolerance(), 4 * o_tolerance())) << keys;
      EXPECT_TRUE(near_statistics(out, oracle, c)) << keys;
    }
  }
}

// Query head h reads key head h / G.
TEST_P(Cases, D11) {
  Case c = Case::random(type(), {.Hq = 6, .Hk = 2, .Nq = 2, .Nk = 3, .D = 4, .Dv = 1}, 13);
  for (std::int64_t j = 0; j < 3; ++j) {
    c.v.set({0, 0, j, 0}, 0);
    c.v.set({0, 1, j, 0}, 1);
  }
  const Forward out = run(c);
  for (std::int64_t h = 0; h < 6; ++h) EXPECT_TRUE(near(out.o.get({0, h, 1, 0}), h < 3 ? 0 : 1, o_tolerance())) << h;
  EXPECT_THROW(run(Case(type(), {.Hq = 5, .Hk = 2, .Nq = 2, .Nk = 3})), Error);
}

// true may attend, -inf hides, and a mask of 0/1 numbers is an error.
TEST_P(Cases, D12) {
  Case c = Case::random(type(), {.Nq = 2, .Nk = 3}, 14);
  Case by_bias = c, by_number = c;
  c.mask = Tensor(DType::boolean, {3}, {1, 0, 1});
  by_bias.bias = Tensor(DType::f32, {3}, {0, -inf, 0});
  EXPECT_TRUE(same_bits(run(c), run(by_bias)));
  by_number.mask = Tensor(DType::f32, {3}, {1, 0, 1});
  EXPECT_THROW(run(by_number), Error);
}

}  // namespace
}  // namespace levelhead::test
