// Policies become multipliers: their numbers, their bits at neutral settings, their gradients.
#include "core/scale.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/call.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

Problem filled(const Inputs& inputs, const Options& options) {
  Problem p = make_problem(inputs, options);
  fill_multipliers(p, inputs, options);
  return p;
}

// q, k and v [1, 1, 1, D] of any type: enough for the policies that need no keys.
double multiplier(const Scale& scale, std::int64_t D, DType type) {
  std::vector<double> data(static_cast<std::size_t>(D) + 1);
  const TensorView view(data.data(), type, {1, 1, 1, D});
  return filled({view, view, view}, {scale}).multiplier(0, 0, 0);
}

TEST(Scale, NumbersOfTheTable) {
  const DType f64 = DType::f64;
  EXPECT_EQ(multiplier(InvSqrtDim{}, 64, f64), 0.125);
  EXPECT_EQ(multiplier(InvSqrtDim{}, 5, f64), 1 / std::sqrt(5.0));
  EXPECT_EQ(multiplier(Constant{-2.5}, 64, f64), -2.5);
  EXPECT_EQ(multiplier(InvDim{}, 64, f64), 1.0 / 64);
  EXPECT_EQ(multiplier(InvDim{16}, 64, f64), 4.0 / 64);
  EXPECT_DOUBLE_EQ(multiplier(Yarn{40, 0.707}, 64, f64), 0.125 * std::pow(0.1 * 0.707 * std::log(40.0) + 1, 2));
  EXPECT_EQ(multiplier(QkNorm{}, 64, f64), 8.0);
  EXPECT_EQ(multiplier(QkNorm{QkNorm::Kind::rms, {}}, 64, f64), 0.125);
}

TEST(Scale, RoundedOnceToF32UnlessF64) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    EXPECT_EQ(multiplier(Constant{0.1}, 8, type), static_cast<double>(0.1F)) << name_of(type);
  EXPECT_EQ(multiplier(Constant{0.1}, 8, DType::f64), 0.1);
}

// The published factors of YaRN with mscale_all_dim 0.707 and 1 at factor 40.
TEST(Scale, YarnFactors) {
  EXPECT_NEAR(multiplier(Yarn{40, 0.707}, 64, DType::f64) * 8, 1.590, 5e-4);
  EXPECT_NEAR(multiplier(Yarn{40, 1.0}, 64, DType::f64) * 8, 1.874, 5e-4);
}

// 0 is a number, not "unset"; unset is 1 / sqrt(D).
TEST(Cases, B2) {
  EXPECT_EQ(Options{}.scale.index(), Scale(InvSqrtDim{}).index());
  EXPECT_EQ(multiplier(Options{}.scale, 16, DType::f32), 0.25);
  EXPECT_EQ(multiplier(Constant{0}, 16, DType::f32), 0.0);
  EXPECT_EQ(multiplier(Constant{-1}, 16, DType::f32), -1.0);
}

// The dim is q's own: 5, not the 8 it may be padded to in memory.
TEST(Cases, B4) {
  std::vector<float> padded(2 * 8);
  const TensorView view(padded.data(), DType::f32, {1, 1, 2, 5}, {16, 16, 8, 1});
  EXPECT_EQ(filled({view, view, view}, {}).multiplier(0, 0, 0),
            static_cast<double>(static_cast<float>(1 / std::sqrt(5.0))));
}

// Every policy at its neutral setting gives the bits of the plain call, for every D.
TEST(Cases, B15) {
  for (std::int64_t D = 1; D <= 512; ++D) {
    for (const DType type : {DType::f32, DType::f64}) {
      const double plain = multiplier(InvSqrtDim{}, D, type);
      const std::vector<float> single{static_cast<float>(plain)};
      const std::vector<double> wide{plain};
      const void* number = type == DType::f32 ? static_cast<const void*>(single.data()) : wide.data();
      EXPECT_EQ(multiplier(InvDim{static_cast<double>(D)}, D, type), plain) << D;
      EXPECT_EQ(multiplier(Yarn{1, 0.707}, D, type), plain) << D;
      EXPECT_EQ(multiplier(PerHead{TensorView(number, type, {1})}, D, type), plain) << D;
      EXPECT_EQ(multiplier(PerRow{TensorView(number, type, {1, 1, 1})}, D, type), plain) << D;
      EXPECT_EQ(multiplier(QkNorm{QkNorm::Kind::rms, {}}, D, type), plain) << D;
    }
  }
}

// raw is 0 at D = 0, so any finite number will do, and only the plain one is fixed: 1.
TEST(Scale, FiniteWithoutDimensions) {
  const std::vector<float> two{2.0F};
  const TensorView one_head(two.data(), DType::f32, {1});
  EXPECT_EQ(multiplier(InvSqrtDim{}, 0, DType::f32), 1.0);
  for (const Scale& scale : {Scale(InvDim{3}), Scale(Yarn{2, 1}), Scale(LogKeys{2}), Scale(Ssmax{one_head}),
                             Scale(QkNorm{}), Scale(QkNorm{QkNorm::Kind::rms, one_head}), Scale(PerHead{one_head})})
    EXPECT_TRUE(std::isfinite(multiplier(scale, 0, DType::f32))) << scale.index();
}

TEST(Scale, HeadsAndRowsThroughTheirStrides) {
  Call call;
  call.per_head.values = {1, 2, 3, 4};
  TensorView reversed = call.per_head.view();
  reversed.data = call.per_head.values.data() + 3, reversed.strides[0] = -1;
  call.options.scale = PerHead{reversed};
  Problem p = filled(call.inputs, call.options);
  EXPECT_EQ(p.multiplier(1, 0, 4), 4.0);
  EXPECT_EQ(p.multiplier(0, 3, 0), 1.0);
  EXPECT_EQ(p.multipliers.size(), 4U);  // rows share it

  Tensor<float> rows({5, 2, 4});  // [Nq, B, Hq]
  for (std::size_t i = 0; i < rows.values.size(); ++i) rows.values[i] = static_cast<float>(i);
  call.options.scale = PerRow{TensorView(rows.values.data(), DType::f32, {2, 4, 5}, {4, 1, 8})};
  p = filled(call.inputs, call.options);
  EXPECT_EQ(p.multiplier(1, 2, 3), 3 * 8 + 4 + 2);
}

// A row behind its length has no number, and none is read for it: NaN stands there.
TEST(Scale, RowsBehindALengthAreNotRead) {
  Call call;
  Tensor<std::int32_t> lengths({2}, std::vector<std::int32_t>{5, 2});
  call.inputs.q_lengths = lengths.view();
  for (std::size_t i = 0; i < 20; ++i)
    call.per_row.values[20 + i] = i % 5 < 2 ? 3.0F : std::numeric_limits<float>::quiet_NaN();
  call.options.scale = PerRow{call.per_row.view()};
  const Problem p = filled(call.inputs, call.options);
  EXPECT_EQ(p.multiplier(1, 3, 1), 3.0);
  EXPECT_EQ(p.multiplier(1, 3, 2), 0.0);
}

// n counts the keys that mask, bias, window and lengths leave, per head when they differ by head.
TEST(Scale, LogOfVisibleKeys) {
  Call call;
  Tensor<float> bias({4, 1, 5});  // head h sees keys h and later
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t j = 0; j < h; ++j)
      bias.values[static_cast<std::size_t>(h * 5 + j)] = -std::numeric_limits<float>::infinity();
  call.inputs.bias = bias.view();
  call.options.window = Window::causal();
  call.per_head.values = {1, 2, -3, 4};
  const auto n = [](std::int64_t h, std::int64_t i) { return std::max<std::int64_t>(0, i - h + 1); };
  const auto ln = [&](std::int64_t h, std::int64_t i) {
    return n(h, i) <= 1 ? 0 : std::log(static_cast<double>(n(h, i)));
  };
  call.options.scale = LogKeys{3};
  const Problem log_keys = filled(call.inputs, call.options);
  call.options.scale = Ssmax{call.per_head.view()};
  const Problem ssmax = filled(call.inputs, call.options);
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(log_keys.multiplier(1, h, i), static_cast<float>(ln(h, i) / std::log(3.0) / std::sqrt(8.0)));
      EXPECT_EQ(ssmax.multiplier(1, h, i),
                static_cast<float>(call.per_head.values[static_cast<std::size_t>(h)] * ln(h, i) / std::sqrt(8.0)));
    }
  EXPECT_EQ(log_keys.multiplier(1, 0, 2), static_cast<float>(1 / std::sqrt(8.0)));  // n = n0 is the plain scale
}

TEST(Scale, HeadsShareCountsWithoutOwnMasks) {
  Call call;
  call.inputs.mask = call.mask();
  call.options.scale = LogKeys{3};
  const Problem p = filled(call.inputs, call.options);
  EXPECT_EQ(p.multipliers.size(), 10U);
  EXPECT_EQ(p.multiplier(1, 3, 4), p.multiplier(1, 0, 4));
  EXPECT_GT(p.multiplier(1, 3, 4), 0.0);
}

// d multiplier / d parameter, by finite differences of fill_multipliers itself: reduce_dmultiplier is its transpose.
class ParameterGradient : public ::testing::Test {
 protected:
  // f64, causal, one row behind a length: rows differ in what they see.
  std::vector<double> data = std::vector<double>(2 * 3 * 4 * 2, 0.0);
  TensorView q{data.data(), DType::f64, {2, 3, 4, 2}};
  Inputs inputs{q, q, q};
  Tensor<std::int64_t> lengths{{2}, std::vector<std::int64_t>{4, 3}};
  Tensor<double> dmultiplier = normals<double>({2, 3, 4}, 5);
  Options options{InvSqrtDim{}, Window::causal()};

  void SetUp() override {
    inputs.q_lengths = inputs.k_lengths = lengths.view();
    for (std::size_t h = 0; h < 3; ++h) dmultiplier.values[(3 + h) * 4 + 3] = 0;  // an empty row has no gradient
  }

  double loss() const {
    const Problem p = filled(inputs, options);
    double sum = 0;
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < 3; ++h)
        for (std::int64_t i = 0; i < 4; ++i)
          sum += p.multiplier(b, h, i) * dmultiplier.values[static_cast<std::size_t>((b * 3 + h) * 4 + i)];
    return sum;
  }

  void expect_gradient(Tensor<double>& parameter, std::optional<MutableTensorView> Gradients::*which) {
    Tensor<double> out(parameter.sizes, -1.0);
    Gradients gradients;
    gradients.*which = out.view();
    const Problem p = filled(inputs, options);
    reduce_dmultiplier(p, options, dmultiplier.values, gradients);
    for (std::size_t at = 0; at < parameter.values.size(); ++at) {
      // The loss is linear in each parameter: a step of 1 has no truncation error.
      const double before = parameter.values[at], low = loss();
      parameter.values[at] = before + 1;
      EXPECT_NEAR(out.values[at], loss() - low, 1e-13) << at;
      parameter.values[at] = before;
    }
  }
};

TEST_F(ParameterGradient, PerHead) {
  Tensor<double> values({3}, std::vector<double>{1, 3, -2});
  options.scale = PerHead{values.view()};
  expect_gradient(values, &Gradients::dscale);
}
TEST_F(ParameterGradient, PerRow) {
  Tensor<double> values = normals<double>({2, 3, 4}, 6);
  options.scale = PerRow{values.view()};
  expect_gradient(values, &Gradients::dscale);
}
TEST_F(ParameterGradient, Ssmax) {
  Tensor<double> s({3}, std::vector<double>{0, 1, 0.5});
  options.scale = Ssmax{s.view()};
  expect_gradient(s, &Gradients::dssmax_s);
}
TEST_F(ParameterGradient, GainOfL2) {
  Tensor<double> gain({3}, std::vector<double>{4, 1, 2});
  options.scale = QkNorm{QkNorm::Kind::l2, gain.view()};
  expect_gradient(gain, &Gradients::dqk_gain);
}
TEST_F(ParameterGradient, GainOfRms) {
  Tensor<double> gain({3}, std::vector<double>{4, 1, 2});
  options.scale = QkNorm{QkNorm::Kind::rms, gain.view()};
  expect_gradient(gain, &Gradients::dqk_gain);
}
TEST_F(ParameterGradient, IsRoundedOnceThroughItsStride) {
  Tensor<double> values({3}, 1.0);
  options.scale = PerHead{values.view()};
  std::vector<float> out(6, -1.0F);
  Gradients gradients;
  gradients.dscale = MutableTensorView(out.data(), DType::f32, {3}, {2});
  reduce_dmultiplier(filled(inputs, options), options, dmultiplier.values, gradients);
  double sum = 0;
  for (const std::size_t at : {4, 5, 6, 7, 16, 17, 18, 19}) sum += dmultiplier.values[at];
  EXPECT_EQ(out[2], static_cast<float>(sum));
  EXPECT_EQ(out[1], -1.0F);
  EXPECT_EQ(out[3], -1.0F);
}

class ScaleRefused : public ::testing::TestWithParam<Wrong> {};

TEST_P(ScaleRefused, SaysWhy) {
  Call call;
  GetParam().spoil(call);
  EXPECT_EQ(sentence([&] { call.problem(); }), GetParam().says);
}

const Wrong scale_refused[] = {
    {"ConstantNan", [](Call& c) { c.options.scale = Constant{nan}; }, "the constant scale is nan but must be finite"},
    {"ConstantInf", [](Call& c) { c.options.scale = Constant{-inf}; }, "the constant scale is -inf but must be finite"},
    {"ConstantBeyondF32", [](Call& c) { c.options.scale = Constant{1e39}; },
     "the constant scale 1e+39 gives the multiplier inf at D = 8, which must be finite in f32"},
    {"InvDimZero", [](Call& c) { c.options.scale = InvDim{0}; }, "the base of inv_dim is 0 but must be finite and > 0"},
    {"InvDimNan", [](Call& c) { c.options.scale = InvDim{nan}; },
     "the base of inv_dim is nan but must be finite and > 0"},
    {"InvDimInf", [](Call& c) { c.options.scale = InvDim{inf}; },
     "the base of inv_dim is inf but must be finite and > 0"},
    {"InvDimBeyondF32", [](Call& c) { c.options.scale = InvDim{1e100}; },
     "inv_dim with base 1e+100 gives the multiplier inf at D = 8, which must be finite in f32"},
    {"YarnFactor",
     [](Call& c) {
       c.options.scale = Yarn{0, 1};
     },
     "the factor of yarn is 0 but must be finite and > 0"},
    {"YarnFactorNan",
     [](Call& c) {
       c.options.scale = Yarn{nan, 1};
     },
     "the factor of yarn is nan but must be finite and > 0"},
    {"YarnMscale",
     [](Call& c) {
       c.options.scale = Yarn{2, inf};
     },
     "the mscale of yarn is inf but must be finite"},
    {"YarnBeyondF32",
     [](Call& c) {
       c.options.scale = Yarn{2, 1e30};
     },
     "yarn with factor 2 and mscale 1e+30 gives the multiplier inf at D = 8, which must be finite in f32"},
    {"LogKeysOne", [](Call& c) { c.options.scale = LogKeys{1}; }, "the n0 of log_keys is 1 but must be finite and > 1"},
    {"LogKeysNan", [](Call& c) { c.options.scale = LogKeys{nan}; },
     "the n0 of log_keys is nan but must be finite and > 1"},
    {"LogKeysInf", [](Call& c) { c.options.scale = LogKeys{inf}; },
     "the n0 of log_keys is inf but must be finite and > 1"},
    {"PerHeadShape", [](Call& c) { c.options.scale = PerHead{c.per_row.view()}; },
     "scale [2, 4, 5] must be [Hq] = [4]"},
    {"PerHeadType", [](Call& c) { c.options.scale = PerHead{TensorView(c.q.values.data(), DType::bf16, {4})}; },
     "scale [4] is bf16 but must be f32, beside f32 q"},
    {"PerRowShape", [](Call& c) { c.options.scale = PerRow{c.per_head.view()}; },
     "scale [4] must be [B, Hq, Nq] = [2, 4, 5]"},
    {"PerRowType",
     [](Call& c) {
       c.options.scale = PerRow{TensorView(c.q.values.data(), DType::f64, {2, 4, 5})};
     },
     "scale [2, 4, 5] is f64 but must be f32, beside f32 q"},
    {"PerRowNoData",
     [](Call& c) {
       c.options.scale = PerRow{TensorView(nullptr, DType::f32, {2, 4, 5})};
     },
     "scale [2, 4, 5] has elements but its data is null"},
    {"SsmaxShape", [](Call& c) { c.options.scale = Ssmax{TensorView(c.q.values.data(), DType::f32, {2})}; },
     "ssmax_s [2] must be [Hq] = [4]"},
    {"GainShape",
     [](Call& c) {
       c.options.scale = QkNorm{QkNorm::Kind::l2, TensorView(c.q.values.data(), DType::f32, {8})};
     },
     "qk_gain [8] must be [Hq] = [4]"},
    {"GainType",
     [](Call& c) {
       c.options.scale = QkNorm{QkNorm::Kind::l2, TensorView(c.q.values.data(), DType::i32, {4})};
     },
     "qk_gain [4] is i32 but must be f32, beside f32 q"},
};
INSTANTIATE_TEST_SUITE_P(Scale, ScaleRefused, ::testing::ValuesIn(scale_refused),
                         name_of_wrong<::testing::TestParamInfo<Wrong>>);

}  // namespace
}  // namespace levelhead::test
