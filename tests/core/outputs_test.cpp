// make_outputs and make_backward: shapes, types, and that what is written shares no memory.
#include <gtest/gtest.h>

#include "core/call.hpp"

namespace levelhead::test {
namespace {

TEST(Outputs, ResolvesViews) {
  Call call;
  call.outputs.lse->strides = {20, 5, 1, 0};
  const ForwardOutputs out = call.forward();
  EXPECT_EQ(out.o.at(1, 3, 4, 5), 120 + 3 * 30 + 4 * 6 + 5);
  EXPECT_EQ(out.lse.at(1, 3, 4, 0), 20 + 15 + 4);
  EXPECT_EQ(out.state, call.state.data());
  EXPECT_EQ(&out.state_at(call.problem(), 1, 3, 4), call.state.data() + 39);
}

TEST(Outputs, MayAllBeAbsent) {
  Call call;
  call.outputs = {};
  const ForwardOutputs out = call.forward();
  EXPECT_FALSE(out.o);
  EXPECT_FALSE(out.lse);
  EXPECT_EQ(out.state, nullptr);
}

TEST(Outputs, HalfInputsMayKeepAnF32Result) {
  std::vector<bf16> half(1000);
  std::vector<float> o(1000);
  const TensorView q(half.data(), DType::bf16, {1, 2, 3, 4});
  const Inputs inputs{q, q, q};
  for (const DType type : {DType::bf16, DType::f32})
    EXPECT_EQ(sentence([&] {
                make_outputs(make_problem(inputs, {}), inputs, {MutableTensorView(o.data(), type, {1, 2, 3, 4})});
              }),
              "");
  EXPECT_EQ(sentence([&] {
              make_outputs(make_problem(inputs, {}), inputs, {MutableTensorView(o.data(), DType::f16, {1, 2, 3, 4})});
            }),
            "o [1, 2, 3, 4] is f16 but must be bf16, the type of q, or f32");
}

TEST(Backward, ResolvesViews) {
  Call call;
  call.incoming.dout->strides = {0, 0, 0, 0};  // the gradient of a sum, expanded (case D3)
  const BackwardTensors t = call.backward();
  EXPECT_EQ(t.state, call.state.data());
  EXPECT_EQ(t.dout.at(1, 3, 4, 5), 0);
  EXPECT_EQ(t.dlse.at(1, 3, 4, 0), 39);
  EXPECT_FALSE(t.dentropy);
  EXPECT_EQ(t.dv.at(1, 1, 4, 5), 60 + 30 + 24 + 5);
  EXPECT_EQ(t.dsinks, nullptr);
}

// A saved state of any level is enough, for dentropy too: backward recomputes what it needs.
TEST(Backward, EntropyNeedsNoLevel) {
  Call call;
  for (RowState& s : call.state) s.count = 3, s.level = StatisticsLevel::lse_max;
  call.incoming.dentropy = call.lse.view();
  EXPECT_TRUE(call.backward().dentropy);
}

TEST(Backward, GradientsAreOptional) {
  Call call;
  call.gradients = {};
  EXPECT_FALSE(call.backward().dq);
}

// f64 q: what is measured and every reduced gradient is f64, whatever type its input has.
TEST(Backward, F64Types) {
  std::vector<double> data(100), dq(100), dsinks(2);
  std::vector<float> sinks(2), dlse(20);
  std::vector<RowState> state(6);
  const TensorView q(data.data(), DType::f64, {1, 2, 3, 4});
  Inputs inputs{q, q, q};
  inputs.sinks = TensorView(sinks.data(), DType::f32, {2});
  Gradients gradients{MutableTensorView(dq.data(), DType::f64, {1, 2, 3, 4})};
  gradients.dsinks = MutableTensorView(dsinks.data(), DType::f64, {2});
  const OutputGradients incoming{{}, TensorView(dlse.data(), DType::f32, {1, 2, 3})};
  const auto run = [&] { make_backward(make_problem(inputs, {}), inputs, {}, {state}, incoming, gradients); };
  EXPECT_EQ(sentence(run), "");
  gradients.dsinks = MutableTensorView(sinks.data(), DType::f32, {2});
  EXPECT_EQ(sentence(run), "dsinks [2] is f32 but must be f64, as everything measured beside f64 q");
}

// Without a head nothing is written, yet no product of sizes may wrap.
TEST(Backward, BiasOfMoreSumsThan64Bits) {
  constexpr std::int64_t queries = std::int64_t{1} << 40, keys = std::int64_t{1} << 21;
  float one = 0;
  const TensorView q(&one, DType::f32, {1, 0, queries, 1}), k(&one, DType::f32, {1, 0, keys, 1});
  Inputs inputs{q, k, k};
  inputs.bias = TensorView(&one, DType::f32, {0, queries, keys});
  Gradients gradients;
  gradients.dbias = MutableTensorView(&one, DType::f32, {0, queries, keys});
  const OutputGradients incoming{{}, TensorView(&one, DType::f32, {1, 0, queries})};
  EXPECT_EQ(sentence([&] { make_backward(make_problem(inputs, {}), inputs, {}, {{}}, incoming, gradients); }),
            "dbias [0, 1099511627776, 2097152] overflows: its sums of 8 bytes exceed 64 bits");
}

class OutputsRefused : public ::testing::TestWithParam<Wrong> {};

TEST_P(OutputsRefused, SaysWhy) {
  Call call;
  ASSERT_EQ(sentence([&] { call.forward(); }), "");
  GetParam().spoil(call);
  EXPECT_EQ(sentence([&] { call.forward(); }), GetParam().says);
}

const Wrong outputs_refused[] = {
    {"OShape", [](Call& c) { c.outputs.o->sizes[3] = 8; }, "o [2, 4, 5, 8] must be [B, Hq, Nq, Dv] = [2, 4, 5, 6]"},
    {"ORank", [](Call& c) { c.outputs.o->rank = 3; }, "o [2, 4, 5] must be [B, Hq, Nq, Dv] = [2, 4, 5, 6]"},
    {"OType", [](Call& c) { c.outputs.o->dtype = DType::bf16; },
     "o [2, 4, 5, 6] is bf16 but must be f32, the type of q"},
    {"OData", [](Call& c) { c.outputs.o->data = nullptr; }, "o [2, 4, 5, 6] has elements but its data is null"},
    {"LseShape", [](Call& c) { c.outputs.lse->sizes[1] = 2; }, "lse [2, 2, 5] must be [B, Hq, Nq] = [2, 4, 5]"},
    {"LseType", [](Call& c) { c.outputs.lse->dtype = DType::f64; },
     "lse [2, 4, 5] is f64 but must be f32, as everything measured beside f32 or 16-bit q"},
    {"StateSize", [](Call& c) { c.outputs.state = c.outputs.state.first(39); },
     "state holds 39 rows but must be empty or hold B * Hq * Nq = 2 * 4 * 5 = 40"},
    {"StateAddress",
     [](Call& c) {
       const auto between = reinterpret_cast<std::uintptr_t>(c.state.data()) + 1;
       c.outputs.state = {reinterpret_cast<RowState*>(between), c.state.size()};
     },
     "state starts at an address that is no multiple of 8"},
    {"StrideZero", [](Call& c) { c.outputs.o->strides[1] = 0; },
     "o [2, 4, 5, 6] has stride 0 on axis 1 but outputs need positive strides"},
    {"StrideNegative", [](Call& c) { c.outputs.lse->strides[2] = -1, c.outputs.lse->data = c.lse.values.data() + 4; },
     "lse [2, 4, 5] has stride -1 on axis 2 but outputs need positive strides"},
    {"StridesOverlap", [](Call& c) { c.outputs.o->strides[2] = 5; },
     "o [2, 4, 5, 6] with strides [120, 30, 5, 1] may hold one element at two indices: outputs must not overlap "
     "themselves"},
    {"InPlace",
     [](Call& c) {
       c.outputs.o = MutableTensorView(c.q.values.data(), DType::f32, {2, 4, 5, 6});
     },
     "o [2, 4, 5, 6] overlaps the input q [2, 4, 5, 8]: what is written must share no memory with it"},
    {"OverMask",
     [](Call& c) {
       c.inputs.mask = TensorView(c.lse.values.data(), DType::boolean, {5, 5});
     },
     "lse [2, 4, 5] overlaps the input mask [5, 5]: what is written must share no memory with it"},
    {"OverBias",
     [](Call& c) {
       c.inputs.bias = TensorView(c.o.values.data() + 3, DType::f32, {5, 5});
     },
     "o [2, 4, 5, 6] overlaps the input bias [5, 5]: what is written must share no memory with it"},
    {"OverScale", [](Call& c) { c.options.scale = PerHead{TensorView(c.o.values.data(), DType::f32, {4})}; },
     "o [2, 4, 5, 6] overlaps the input scale [4]: what is written must share no memory with it"},
    {"OutputsOverlap",
     [](Call& c) {
       c.outputs.lse = MutableTensorView(c.o.values.data() + 10, DType::f32, {2, 4, 5});
     },
     "lse [2, 4, 5] overlaps o [2, 4, 5, 6]: outputs must share no memory"},
    {"StateOverlaps",
     [](Call& c) {
       c.outputs.lse = MutableTensorView(c.state.data() + 39, DType::f32, {2, 4, 5}, {1, 2, 8});
     },
     "state [4160] overlaps lse [2, 4, 5]: outputs must share no memory"},
};
INSTANTIATE_TEST_SUITE_P(Outputs, OutputsRefused, ::testing::ValuesIn(outputs_refused),
                         name_of_wrong<::testing::TestParamInfo<Wrong>>);

class BackwardRefused : public ::testing::TestWithParam<Wrong> {};

TEST_P(BackwardRefused, SaysWhy) {
  Call call;
  ASSERT_EQ(sentence([&] { call.backward(); }), "");
  GetParam().spoil(call);
  EXPECT_EQ(sentence([&] { call.backward(); }), GetParam().says);
}

const Wrong backward_refused[] = {
    {"NothingIncoming", [](Call& c) { c.incoming = {}; }, "backward needs at least one of dout, dlse and dentropy"},
    {"DoutShape", [](Call& c) { c.incoming.dout->sizes[2] = 4; },
     "dout [2, 4, 4, 6] must be [B, Hq, Nq, Dv] = [2, 4, 5, 6]"},
    {"DoutType", [](Call& c) { c.incoming.dout->dtype = DType::f16; },
     "dout [2, 4, 5, 6] is f16 but must be f32, the type of q"},
    {"DlseShape", [](Call& c) { c.incoming.dlse->rank = 2; }, "dlse [2, 4] must be [B, Hq, Nq] = [2, 4, 5]"},
    {"DlseType", [](Call& c) { c.incoming.dlse->dtype = DType::bf16; },
     "dlse [2, 4, 5] is bf16 but must be f32, beside f32 q"},
    {"DentropyShape", [](Call& c) { c.incoming.dentropy = c.q.view(); },
     "dentropy [2, 4, 5, 8] must be [B, Hq, Nq] = [2, 4, 5]"},
    {"StateSize", [](Call& c) { c.saved.state = {}; },
     "state holds 0 rows but backward needs B * Hq * Nq = 2 * 4 * 5 = 40"},
    {"DqShape", [](Call& c) { c.gradients.dq->sizes[1] = 2; }, "dq [2, 2, 5, 8] must have the shape of q [2, 4, 5, 8]"},
    {"DkRank", [](Call& c) { c.gradients.dk->rank = 3; }, "dk [2, 2, 5] must have the shape of k [2, 2, 5, 8]"},
    {"DvType", [](Call& c) { c.gradients.dv->dtype = DType::bf16; },
     "dv [2, 2, 5, 6] is bf16 but must be f32, the type of v"},
    {"DqStrideZero", [](Call& c) { c.gradients.dq->strides[0] = 0; },
     "dq [2, 4, 5, 8] has stride 0 on axis 0 but outputs need positive strides"},
    {"DbiasWithoutBias", [](Call& c) { c.gradients.dbias = c.dbias.view(); },
     "dbias [5, 5] is asked for but there is no bias it could be the gradient of"},
    {"DbiasShape",
     [](Call& c) {
       c.inputs.bias = c.bias.view();
       c.gradients.dbias = MutableTensorView(c.dbias.values.data(), DType::f32, {1, 5, 5});
     },
     "dbias [1, 5, 5] must have the shape of bias [5, 5]"},
    {"DbiasType",
     [](Call& c) {
       c.inputs.bias = c.bias.view();
       c.gradients.dbias = c.dbias.view();
       c.gradients.dbias->dtype = DType::bf16;
     },
     "dbias [5, 5] is bf16 but must be f32, as everything measured beside f32 or 16-bit q"},
    {"DsinksWithoutSinks", [](Call& c) { c.gradients.dsinks = c.d_per_head.view(); },
     "dsinks [4] is asked for but there is no sinks it could be the gradient of"},
    {"DslopesWithoutSlopes", [](Call& c) { c.gradients.dalibi_slopes = c.d_per_head.view(); },
     "dalibi_slopes [4] is asked for but there is no alibi_slopes it could be the gradient of"},
    {"DscaleWithoutScale", [](Call& c) { c.gradients.dscale = c.d_per_head.view(); },
     "dscale [4] is asked for but there is no per-head or per-row scale it could be the gradient of"},
    {"DscaleShape",
     [](Call& c) {
       c.options.scale = PerRow{c.per_row.view()};
       c.gradients.dscale = c.d_per_head.view();
     },
     "dscale [4] must have the shape of per-head or per-row scale [2, 4, 5]"},
    {"DssmaxWithoutSsmax",
     [](Call& c) {
       c.options.scale = PerHead{c.per_head.view()};
       c.gradients.dssmax_s = c.d_per_head.view();
     },
     "dssmax_s [4] is asked for but there is no ssmax_s it could be the gradient of"},
    {"DgainWithoutGain",
     [](Call& c) {
       c.options.scale = QkNorm{};
       c.gradients.dqk_gain = c.d_per_head.view();
     },
     "dqk_gain [4] is asked for but there is no qk_gain it could be the gradient of"},
    {"DscaleBesideSsmax",
     [](Call& c) {
       c.options.scale = Ssmax{c.per_head.view()};
       c.gradients.dscale = c.d_per_head.view();
     },
     "dscale [4] is asked for but there is no per-head or per-row scale it could be the gradient of"},
    {"DkOverK", [](Call& c) { c.gradients.dk = c.k.view(); },
     "dk [2, 2, 5, 8] overlaps the input k [2, 2, 5, 8]: what is written must share no memory with it"},
    {"DqOverDout",
     [](Call& c) {
       c.incoming.dout = TensorView(c.dq.values.data(), DType::f32, {2, 4, 5, 6});
     },
     "dq [2, 4, 5, 8] overlaps the input dout [2, 4, 5, 6]: what is written must share no memory with it"},
    {"DqOverState",
     [](Call& c) {
       c.gradients.dq = MutableTensorView(c.state.data(), DType::f32, {2, 4, 5, 8});
     },
     "dq [2, 4, 5, 8] overlaps the input state [4160]: what is written must share no memory with it"},
    {"DkOverDv",
     [](Call& c) {
       c.gradients.dv = MutableTensorView(c.dk.values.data() + 40, DType::f32, {2, 2, 5, 6});
     },
     "dv [2, 2, 5, 6] overlaps dk [2, 2, 5, 8]: outputs must share no memory"},
    {"ReducedOverlap",
     [](Call& c) {
       c.inputs.sinks = c.inputs.alibi_slopes = c.per_head.view();
       c.gradients.dsinks = c.gradients.dalibi_slopes = c.d_per_head.view();
     },
     "dalibi_slopes [4] overlaps dsinks [4]: outputs must share no memory"},
};
INSTANTIATE_TEST_SUITE_P(Backward, BackwardRefused, ::testing::ValuesIn(backward_refused),
                         name_of_wrong<::testing::TestParamInfo<Wrong>>);

// Each reduced gradient is accepted where its input is.
TEST(Backward, EveryGradientBesideItsInput) {
  Call call;
  call.inputs.bias = call.bias.view();
  call.inputs.sinks = call.per_head.view();
  call.gradients.dbias = call.dbias.view();
  call.gradients.dsinks = call.d_per_head.view();
  call.options.scale = PerRow{call.per_row.view()};
  call.gradients.dscale = call.d_per_row.view();
  EXPECT_EQ(sentence([&] { call.backward(); }), "");

  call.gradients.dscale.reset();
  call.gradients.dsinks.reset();
  call.options.scale = Ssmax{call.per_head.view()};
  call.gradients.dssmax_s = call.d_per_head.view();
  EXPECT_EQ(sentence([&] { call.backward(); }), "");

  call.gradients.dssmax_s.reset();
  call.options.scale = QkNorm{QkNorm::Kind::rms, call.per_head.view()};
  call.gradients.dqk_gain = call.d_per_head.view();
  EXPECT_EQ(sentence([&] { call.backward(); }), "");
}

// dq, dk and dv in one buffer, as they come out of a fused projection.
TEST(Backward, FusedGradients) {
  const std::int64_t B = 2, N = 5, H = 4, Hk = 2, D = 8, width = (H + 2 * Hk) * D;
  std::vector<float> fused(static_cast<std::size_t>(B * N * width)), q(1000), state_unused;
  std::vector<RowState> state(static_cast<std::size_t>(B * H * N));
  const auto part = [&](float* data, std::int64_t heads, std::int64_t first) {
    return MutableTensorView(data + first * D, DType::f32, {B, heads, N, D}, {N * width, D, width, 1});
  };
  const Inputs inputs{part(q.data(), H, 0), part(q.data(), Hk, H), part(q.data(), Hk, H + Hk)};
  Gradients gradients{part(fused.data(), H, 0), part(fused.data(), Hk, H), part(fused.data(), Hk, H + Hk)};
  const OutputGradients incoming{{}, TensorView(q.data(), DType::f32, {B, H, N})};
  const auto run = [&] { make_backward(make_problem(inputs, {}), inputs, {}, {state}, incoming, gradients); };
  EXPECT_EQ(sentence(run), "");
  gradients.dv = part(fused.data(), Hk, H + Hk - 1);
  EXPECT_EQ(sentence(run), "dv [2, 2, 5, 8] overlaps dk [2, 2, 5, 8]: outputs must share no memory");
}

}  // namespace
}  // namespace levelhead::test
