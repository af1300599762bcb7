// QK-norm: the copies that stand in for q and k, and the gradient back through the norm.
#include "core/qk_norm.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/call.hpp"
#include "core/element.hpp"

namespace levelhead::test {
namespace {

using Kind = QkNorm::Kind;

// The definition for one token.
std::vector<double> normalised(std::vector<double> x, Kind kind) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double S = kind == Kind::l2 ? squares : squares / static_cast<double>(x.size());
  for (double& value : x) value /= std::sqrt(S + 1e-6);
  return x;
}

TEST(QkNorm, NormalisesEveryTokenOfQAndK) {
  for (const Kind kind : {Kind::l2, Kind::rms}) {
    Call call;
    call.inputs.k = TensorView(call.k.values.data() + 79, DType::f32, {1, 2, 5, 8}, {80, -40, -8, -1});
    call.inputs.q.sizes[0] = call.inputs.v.sizes[0] = 1;
    Problem p = call.problem();
    const Normalised norm = normalise(p, kind);
    EXPECT_EQ(norm.original_k.data, call.inputs.k.data);
    EXPECT_EQ(norm.original_q.data, call.inputs.q.data);
    EXPECT_NE(p.q.data, norm.original_q.data);
    for (const auto& [x, y, heads] : {std::tuple{norm.original_q, p.q, p.Hq}, std::tuple{norm.original_k, p.k, p.Hk}})
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t n = 0; n < 5; ++n) {
          std::vector<double> token(8);
          for (std::int64_t c = 0; c < 8; ++c) token[static_cast<std::size_t>(c)] = load(x, 0, h, n, c);
          token = normalised(token, kind);
          for (std::int64_t c = 0; c < 8; ++c)
            EXPECT_EQ(load(y, 0, h, n, c), static_cast<float>(token[static_cast<std::size_t>(c)])) << h << n << c;
        }
  }
}

// Case B8: q * 10 must not change the logits, up to eps.
TEST(QkNorm, LengthOfQDoesNotMatter) {
  Call call;
  Problem one = call.problem();
  const Normalised norm = normalise(one, Kind::rms);
  for (float& x : call.q.values) x *= 10;
  Problem ten = call.problem();
  const Normalised norm_ten = normalise(ten, Kind::rms);
  // eps moves a unit-normal token by eps / 2 relative, less as it grows; rounding by 2^-24 each.
  for (std::int64_t at = 0; at < 320; ++at) {
    const double a = load(one.q.data, one.q.dtype, at), b = load(ten.q.data, ten.q.dtype, at);
    double squares = 0;
    for (std::int64_t c = 0; c < 8; ++c)
      squares += std::pow(call.q.values[static_cast<std::size_t>(at / 8 * 8 + c)] / 10, 2) / 8;
    EXPECT_NEAR(a, b, std::abs(a) * (0.5e-6 / squares + 2 * std::ldexp(1, -24))) << at;
  }
}

TEST(QkNorm, RoundsOnceToTheTypeOfQ) {
  for (const DType type : {DType::bf16, DType::f16, DType::f64}) {
    std::vector<double> memory(64), values{3, -1, 0.5, 7};
    const Writable write{memory.data(), type, {4, 4, 4, 1}};
    for (std::int64_t c = 0; c < 4; ++c) store(write, 0, 0, 0, c, values[static_cast<std::size_t>(c)]);
    const TensorView q(memory.data(), type, {1, 1, 1, 4});
    Problem p = make_problem({q, q, q}, {QkNorm{}});
    const Normalised norm = normalise(p, Kind::l2);
    EXPECT_EQ(norm.q.size(), 4 * size_of(type));
    std::vector<double> expected_memory(64);
    const Writable expected{expected_memory.data(), type, {4, 4, 4, 1}};
    for (std::int64_t c = 0; c < 4; ++c) {
      store(expected, 0, 0, 0, c, values[static_cast<std::size_t>(c)] * (1 / std::sqrt(59.25 + 1e-6)));
      EXPECT_EQ(load(p.q, 0, 0, 0, c), load(expected_memory.data(), type, c)) << name_of(type);
    }
  }
}

TEST(QkNorm, ZeroStaysZeroAndNanStaysNan) {
  for (const Kind kind : {Kind::l2, Kind::rms}) {
    Call call;
    for (std::size_t c = 0; c < 8; ++c) call.q.values[c] = 0;
    call.q.values[8 + 3] = std::numeric_limits<float>::quiet_NaN();
    Problem p = call.problem();
    const Normalised norm = normalise(p, kind);
    for (std::int64_t c = 0; c < 8; ++c) {
      EXPECT_EQ(load(p.q, 0, 0, 0, c), 0.0);
      EXPECT_TRUE(std::isnan(load(p.q, 0, 0, 1, c)));
      EXPECT_FALSE(std::isnan(load(p.q, 0, 0, 2, c)));
    }
  }
}

TEST(QkNorm, LargeTokensDoNotOverflow) {
  std::vector<float> x{3e30F, 4e30F};
  const TensorView q(x.data(), DType::f32, {1, 1, 1, 2});
  Problem p = make_problem({q, q, q}, {QkNorm{}});
  const Normalised norm = normalise(p, Kind::l2);
  EXPECT_FLOAT_EQ(static_cast<float>(load(p.q, 0, 0, 0, 0)), 0.6F);
  EXPECT_FLOAT_EQ(static_cast<float>(load(p.q, 0, 0, 0, 1)), 0.8F);
}

TEST(QkNorm, NoDimensionNoTokenNoHead) {
  for (const Dims& sizes : {Dims{2, 4, 5, 0}, Dims{2, 4, 0, 8}, Dims{2, 0, 5, 8}, Dims{0, 4, 5, 8}}) {
    const TensorView q(nullptr, DType::f32, {sizes[0], sizes[1], sizes[2], sizes[3]});
    Problem p = make_problem({q, q, q}, {QkNorm{}});
    const Normalised norm = normalise(p, Kind::rms);
    EXPECT_TRUE(norm.q.empty());
    normalise_backward(p, Kind::rms, false, norm.original_q, {}, {});
  }
}

// What lies behind a length is not read (here: is no memory) and its gradient is 0.
TEST(QkNorm, StopsAtLengths) {
  Tensor<double> q({1, 1, 4, 2}, 1.0), dq({1, 1, 4, 2}, -7.0);
  std::vector<double> short_k(2 * 2, 1.0);
  Tensor<std::int32_t> lengths({1}, std::vector<std::int32_t>{2});
  Inputs inputs{q.view(), TensorView(short_k.data(), DType::f64, {1, 1, 4, 2}), q.view()};
  inputs.k_lengths = inputs.q_lengths = lengths.view();
  Problem p = make_problem(inputs, {QkNorm{}});
  const Normalised norm = normalise(p, Kind::l2);
  EXPECT_EQ(load(p.k, 0, 0, 2, 0), 0.0);
  EXPECT_NE(load(p.k, 0, 0, 1, 0), 0.0);
  const std::vector<double> dnormalised{1, 0, 1, 0, 1, 0, 1, 0};
  const Writable out{dq.values.data(), DType::f64, {8, 8, 2, 1}};
  normalise_backward(p, Kind::l2, true, norm.original_k, dnormalised, out);
  EXPECT_NE(dq.values[2], 0.0);
  for (const std::size_t at : {4, 5, 6, 7}) EXPECT_EQ(dq.values[at], 0.0);
}

// A key that no query sees may hold NaN; its gradient is 0 all the same.
TEST(QkNorm, HiddenNanHasNoGradient) {
  Tensor<double> q({1, 1, 2, 2}, std::numeric_limits<double>::quiet_NaN()), dq({1, 1, 2, 2}, -7.0);
  const Inputs inputs{q.view(), q.view(), q.view()};
  Problem p = make_problem(inputs, {QkNorm{}});
  const Normalised norm = normalise(p, Kind::rms);
  const Writable out{dq.values.data(), DType::f64, {4, 4, 2, 1}};
  normalise_backward(p, Kind::rms, true, norm.original_k, {0, -0.0, 1, 0}, out);
  EXPECT_EQ(dq.values[0], 0.0);
  EXPECT_EQ(dq.values[1], 0.0);
  EXPECT_TRUE(std::isnan(dq.values[2]));
}

// Against central differences in f64, r = 1 / sqrt(S + eps) of the token: a step of 1e-5 / r is wrong by some 1e-10 r
// of the third derivative and by 2^-53 times a loss of some units over the step, again 1e-10 r.
TEST(QkNorm, GradientIsTheDerivative) {
  for (const Kind kind : {Kind::l2, Kind::rms}) {
    for (const bool keys : {false, true}) {
      const std::int64_t H = keys ? 2 : 4, N = keys ? 3 : 2, D = 5;
      Tensor<double> q = normals<double>({2, 4, 2, D}, 11), k = normals<double>({2, 2, 3, D}, 12);
      Tensor<double>& x = keys ? k : q;
      for (std::size_t c = 0; c < 5; ++c) x.values[c] = 1e-3 * static_cast<double>(c + 1);  // eps counts here
      const Inputs inputs{q.view(), k.view(), k.view()};
      const Tensor<double> dnormalised = normals<double>({2, H, N, D}, 13);
      const auto loss = [&] {
        Problem p = make_problem(inputs, {QkNorm{kind, {}}});
        const Normalised norm = normalise(p, kind);
        const Readable& y = keys ? p.k : p.q;
        double sum = 0;
        for (std::size_t at = 0; at < dnormalised.values.size(); ++at)
          sum += load(y.data, y.dtype, static_cast<std::int64_t>(at)) * dnormalised.values[at];
        return sum;
      };
      Problem p = make_problem(inputs, {QkNorm{kind, {}}});
      const Normalised norm = normalise(p, kind);
      Tensor<double> dx({N, 2, H, D}, -7.0);  // a permuted output
      const Writable out{dx.values.data(), DType::f64, {H * D, D, 2 * H * D, 1}};
      normalise_backward(p, kind, keys, keys ? norm.original_k : norm.original_q, dnormalised.values, out);
      for (std::size_t at = 0; at < x.values.size(); ++at) {
        const auto i = static_cast<std::int64_t>(at);
        const std::int64_t c = i % D, n = i / D % N, h = i / D / N % H, b = i / D / N / H;
        double squares = 0;
        for (std::int64_t d = 0; d < D; ++d) squares += std::pow(x.values[static_cast<std::size_t>(i - c + d)], 2);
        const double r = 1 / std::sqrt((kind == Kind::l2 ? squares : squares / static_cast<double>(D)) + 1e-6);
        const double before = x.values[at], step = 1e-5 / r;
        x.values[at] = before + step;
        const double high = loss();
        x.values[at] = before - step;
        const double low = loss();
        x.values[at] = before;
        const double gradient = dx.values[static_cast<std::size_t>(out.at(b, h, n, c))];
        EXPECT_NEAR(gradient, (high - low) / (2 * step), 2e-9 * r) << at;
      }
    }
  }
}

}  // namespace
}  // namespace levelhead::test
