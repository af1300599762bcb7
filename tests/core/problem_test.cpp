// make_problem: how it resolves what it accepts, and the sentence for each thing it refuses.
#include "core/problem.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/call.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;

TEST(Problem, ResolvesSizesAndViews) {
  Call call;
  call.inputs.q.strides[0] = 0;
  const Problem p = call.problem();
  EXPECT_EQ(p.B, 2);
  EXPECT_EQ(p.Hq, 4);
  EXPECT_EQ(p.Hk, 2);
  EXPECT_EQ(p.group(), 2);
  EXPECT_EQ(p.Nq, 5);
  EXPECT_EQ(p.Nk, 5);
  EXPECT_EQ(p.D, 8);
  EXPECT_EQ(p.Dv, 6);
  EXPECT_EQ(p.q.at(1, 3, 2, 7), 3 * 40 + 2 * 8 + 7);
  EXPECT_EQ(p.v.at(1, 1, 4, 5), 60 + 30 + 24 + 5);
  EXPECT_FALSE(p.mask);
  EXPECT_FALSE(p.bias);
  EXPECT_TRUE(p.sinks.empty());
  ASSERT_EQ(p.segments.size(), 2U);
  EXPECT_EQ(p.segments[1].b, 1);
  EXPECT_EQ(p.left, unbounded);
  EXPECT_EQ(p.right, unbounded);
}

TEST(Problem, ReadsHeadNumbersThroughTheirStride) {
  Call call;
  call.per_head.values = {1, 2, 3, 4};
  call.inputs.sinks = call.per_head.view();
  call.inputs.sinks->data = call.per_head.values.data() + 3;
  call.inputs.sinks->strides[0] = -1;
  call.inputs.alibi_slopes = call.per_head.view();
  call.inputs.alibi_slopes->strides[0] = 0;
  const Problem p = call.problem();
  EXPECT_EQ(p.sinks, (std::vector<double>{4, 3, 2, 1}));
  EXPECT_EQ(p.slopes, (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(p.sink(1), 3.0);
}

// Masks and biases align on the right; axes of size 1 and missing axes repeat.
TEST(Cases, D6) {
  Call call;
  struct Form {
    std::vector<std::int64_t> sizes;
    Dims strides;
  };
  for (const Form& form :
       {Form{{}, {0, 0, 0, 0}}, Form{{5}, {0, 0, 0, 1}}, Form{{1, 5}, {0, 0, 0, 1}}, Form{{2, 1, 1, 5}, {5, 0, 0, 1}},
        Form{{1, 4, 1, 5}, {0, 5, 0, 1}}, Form{{4, 5, 1}, {0, 5, 1, 0}}, Form{{2, 4, 5, 5}, {100, 25, 5, 1}}}) {
    Tensor<float> bias(form.sizes);
    call.inputs.bias = bias.view();
    call.inputs.mask = bias.view();
    call.inputs.mask->dtype = DType::boolean;
    EXPECT_EQ(call.problem().bias.strides, form.strides);
    EXPECT_EQ(call.problem().mask.strides, form.strides);
  }
}

TEST(Problem, EveryZeroSizeIsLegal) {
  // B, Hq, Hk, Nq, Nk, D, Dv; no tensor that lacks elements needs data.
  for (const auto& s : std::vector<std::array<std::int64_t, 7>>{{0, 4, 2, 5, 5, 8, 6},
                                                                {2, 0, 2, 5, 5, 8, 6},
                                                                {2, 0, 0, 5, 5, 8, 6},
                                                                {2, 4, 2, 0, 5, 8, 6},
                                                                {2, 4, 2, 5, 0, 8, 6},
                                                                {2, 4, 2, 5, 5, 0, 6},
                                                                {2, 4, 2, 5, 5, 8, 0},
                                                                {0, 0, 0, 0, 0, 0, 0}}) {
    const auto [B, Hq, Hk, Nq, Nk, D, Dv] = s;
    std::vector<float> data(1000);
    const auto view = [&](std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
      return MutableTensorView(b * h * n * d == 0 ? nullptr : data.data(), DType::f32, {b, h, n, d});
    };
    const Inputs inputs{view(B, Hq, Nq, D), view(B, Hk, Nk, D), view(B, Hk, Nk, Dv)};
    std::vector<float> o(1000), dq(1000), dk(1000), dv(1000);
    std::vector<RowState> state(static_cast<std::size_t>(B * Hq * Nq));
    const auto output = [](MutableTensorView v, std::vector<float>& memory) {
      if (v.data != nullptr) v.data = memory.data();
      return v;
    };
    const Outputs outputs{output(view(B, Hq, Nq, Dv), o), {}, state};
    const Gradients gradients{output(view(B, Hq, Nq, D), dq), output(view(B, Hk, Nk, D), dk),
                              output(view(B, Hk, Nk, Dv), dv)};
    EXPECT_EQ(sentence([&] {
                const Problem p = make_problem(inputs, {});
                make_outputs(p, inputs, outputs);
                make_backward(p, inputs, {}, {state}, {TensorView(*outputs.o)}, gradients);
              }),
              "")
        << B << Hq << Hk << Nq << Nk << D << Dv;
  }
}

// No row, so nothing is made for the batch items, however many a hostile header names.
TEST(Problem, ManyBatchItemsWithoutRowsCostNothing) {
  const std::int64_t many = std::int64_t{1} << 20;
  const TensorView empty(nullptr, DType::f32, {many, 1, 0, 4});
  EXPECT_TRUE(make_problem({empty, empty, empty}, {}).segments.empty());
}

class InputsRefused : public ::testing::TestWithParam<Wrong> {};

TEST_P(InputsRefused, SaysWhy) {
  Call call;
  ASSERT_EQ(sentence([&] { call.problem(); }), "");
  GetParam().spoil(call);
  EXPECT_EQ(sentence([&] { call.problem(); }), GetParam().says);
}

const Wrong qkv[] = {
    {"RankThree",
     [](Call& c) {
       c.inputs.q = TensorView(c.q.values.data(), DType::f32, {4, 5, 8});
     },
     "q [4, 5, 8] has rank 3 but must have 4: [B, heads, tokens, dim]"},
    {"RankFive", [](Call& c) { c.inputs.v.rank = 5; }, "v has rank 5 but tensors have 0 to 4 axes"},
    {"RankNegative", [](Call& c) { c.inputs.k.rank = -1; }, "k has rank -1 but tensors have 0 to 4 axes"},
    {"IntegerQ", [](Call& c) { c.inputs.q.dtype = DType::i32; },
     "q [2, 4, 5, 8] is i32 but q, k and v must be f64, f32, bf16 or f16"},
    {"TypesDiffer", [](Call& c) { c.inputs.v.dtype = DType::bf16; },
     "q is f32 but v is bf16: q, k and v must have one type"},
    {"BatchesDiffer", [](Call& c) { c.inputs.k.sizes[0] = 1; },
     "q has 2 batch items but k has 1: q [2, 4, 5, 8] and k [1, 2, 5, 8] must agree on axis 0"},
    {"BatchOfV", [](Call& c) { c.inputs.v.sizes[0] = 1; },
     "k has 2 batch items but v has 1: k [2, 2, 5, 8] and v [1, 2, 5, 6] must agree on axis 0"},
    {"HeadsOfKAndV", [](Call& c) { c.inputs.v.sizes[1] = 1; },
     "k has 2 heads but v has 1: k [2, 2, 5, 8] and v [2, 1, 5, 6] must agree on axis 1"},
    {"D7_TokensOfKAndV",
     [](Call& c) {
       c.inputs.v = TensorView(c.q.values.data(), DType::f32, {2, 2, 6, 6});
     },
     "k has 5 tokens but v has 6: k [2, 2, 5, 8] and v [2, 2, 6, 6] must agree on axis 2"},
    {"DimsOfQAndK", [](Call& c) { c.inputs.k.sizes[3] = 7; },
     "q has 8 components but k has 7: q [2, 4, 5, 8] and k [2, 2, 5, 7] must agree on axis 3"},
    {"D11_HeadsDoNotDivide", [](Call& c) { c.inputs.q.sizes[1] = 3; },
     "q has 3 heads and k has 2: q [2, 3, 5, 8] must have a multiple of the heads of k [2, 2, 5, 8]"},
    {"NoKeyHead", [](Call& c) { c.inputs.k.sizes[1] = c.inputs.v.sizes[1] = 0; },
     "q has 4 heads and k has 0: q [2, 4, 5, 8] must have a multiple of the heads of k [2, 0, 5, 8]"},
    {"NegativeSize", [](Call& c) { c.inputs.q.sizes[2] = -1; },
     "q [2, 4, -1, 8] has size -1 on axis 2: no size is negative"},
    {"NegativeSizeBesideZero", [](Call& c) { c.inputs.q.sizes[0] = 0, c.inputs.q.sizes[2] = -1; },
     "q [0, 4, -1, 8] has size -1 on axis 2: no size is negative"},
    {"NoData", [](Call& c) { c.inputs.k.data = nullptr; }, "k [2, 2, 5, 8] has elements but its data is null"},
    {"Misaligned", [](Call& c) { c.inputs.k.data = reinterpret_cast<const char*>(c.k.values.data()) + 1; },
     "k [2, 2, 5, 8] starts at an address that is no multiple of the 4 bytes of f32"},
};
INSTANTIATE_TEST_SUITE_P(Qkv, InputsRefused, ::testing::ValuesIn(qkv), name_of_wrong<::testing::TestParamInfo<Wrong>>);

const Wrong others[] = {
    {"D12_FloatMask", [](Call& c) { c.inputs.mask = c.bias.view(); },
     "mask [5, 5] is f32 but masks are bool, true where a query may attend; give float masks (0 and -inf, added to the "
     "logit) as bias"},
    {"ByteMask", [](Call& c) { c.inputs.mask = c.mask_bytes.view(); },
     "mask [5, 5] is u8 but masks are bool, true where a query may attend; give float masks (0 and -inf, added to the "
     "logit) as bias"},
    {"MaskTooLong",
     [](Call& c) {
       c.inputs.mask = c.mask();
       c.inputs.mask->sizes[1] = 4;
     },
     "mask [5, 4] does not broadcast to [B, Hq, Nq, Nk] = [2, 4, 5, 5]: axis 1 has size 4 and must have 1 or 5"},
    {"MaskHeads",
     [](Call& c) {
       c.inputs.mask = TensorView(c.mask_bytes.values.data(), DType::boolean, {2, 5, 1});
     },
     "mask [2, 5, 1] does not broadcast to [B, Hq, Nq, Nk] = [2, 4, 5, 5]: axis 0 has size 2 and must have 1 or 4"},
    {"BoolBias", [](Call& c) { c.inputs.bias = c.mask(); },
     "bias [5, 5] is bool but a bias is added: give bool masks as mask"},
    {"BiasType",
     [](Call& c) {
       c.inputs.bias = c.bias.view();
       c.inputs.bias->dtype = DType::f16;
     },
     "bias [5, 5] is f16 but must be f32 or the type of q, f32"},
    {"BiasShape",
     [](Call& c) {
       c.inputs.bias = TensorView(c.q.values.data(), DType::f32, {0, 5});
     },
     "bias [0, 5] does not broadcast to [B, Hq, Nq, Nk] = [2, 4, 5, 5]: axis 0 has size 0 and must have 1 or 5"},
    {"BiasWithoutData",
     [](Call& c) {
       c.inputs.bias = TensorView(nullptr, DType::f32, {5, 5});
     },
     "bias [5, 5] has elements but its data is null"},
    {"SlopesShape", [](Call& c) { c.inputs.alibi_slopes = TensorView(c.q.values.data(), DType::f32, {2}); },
     "alibi_slopes [2] must be [Hq] = [4]"},
    {"SlopesRank",
     [](Call& c) {
       c.inputs.alibi_slopes = TensorView(c.q.values.data(), DType::f32, {1, 4});
     },
     "alibi_slopes [1, 4] must be [Hq] = [4]"},
    {"SinksType",
     [](Call& c) {
       c.inputs.sinks = c.per_head.view();
       c.inputs.sinks->dtype = DType::bf16;
     },
     "sinks [4] is bf16 but must be f32, beside f32 q"},
    {"SinksF64", [](Call& c) { c.inputs.sinks = TensorView(c.q.values.data(), DType::f64, {4}); },
     "sinks [4] is f64 but must be f32, beside f32 q"},
    {"SplitsNegative", [](Call& c) { c.options.splits = -1; },
     "splits is -1 but must be >= 0 (0: ranges of a fixed size)"},
    {"SoftcapNegative", [](Call& c) { c.options.softcap = -1; },
     "softcap is -1 but must be finite and >= 0 (0 is off)"},
    {"SoftcapNan", [](Call& c) { c.options.softcap = nan; }, "softcap is nan but must be finite and >= 0 (0 is off)"},
    {"SoftcapInf", [](Call& c) { c.options.softcap = inf; }, "softcap is inf but must be finite and >= 0 (0 is off)"},
    {"SoftcapBeyondF32", [](Call& c) { c.options.softcap = 1e300; },
     "softcap is 1e+300 but beside f32 q it must be 0 or a normal f32 number, 1.1754944e-38 "
     "to 3.4028235e+38"},
};
INSTANTIATE_TEST_SUITE_P(Others, InputsRefused, ::testing::ValuesIn(others),
                         name_of_wrong<::testing::TestParamInfo<Wrong>>);

// Products that leave 64 bits: an error from arithmetic alone; no tensor here has memory behind it.
const Wrong overflows[] = {
    {"Size", [](Call& c) { c.inputs.q.sizes[2] = huge; },
     "q [2, 4, 4611686018427387904, 8] has size 4611686018427387904 on axis 2: positions overflow above "
     "1152921504606846976"},
    {"Stride", [](Call& c) { c.inputs.q.strides[2] = huge; },
     "q [2, 4, 5, 8] with strides [160, 40, 4611686018427387904, 1] overflows: its f32 elements lie more than "
     "1152921504606846976 bytes apart"},
    {"NegativeStride", [](Call& c) { c.inputs.k.strides[0] = std::numeric_limits<std::int64_t>::min(); },
     "k [2, 2, 5, 8] with strides [-9223372036854775808, 40, 8, 1] overflows: its f32 elements lie more than "
     "1152921504606846976 bytes apart"},
    {"SumOfStrides",
     [](Call& c) {
       for (int axis = 0; axis < 4; ++axis) c.inputs.q.strides[axis] = huge / 128;
     },
     "q [2, 4, 5, 8] with strides [36028797018963968, 36028797018963968, 36028797018963968, 36028797018963968] "
     "overflows: its f32 elements lie more than 1152921504606846976 bytes apart"},
    {"AddressBelowZero", [](Call& c) { c.inputs.q.strides[0] = -(huge / 16); },
     "q [2, 4, 5, 8] with strides [-288230376151711744, 40, 8, 1] overflows the address space"},
    {"Rows", [](Call& c) { c.inputs.q.sizes[2] = std::int64_t{1} << 57, c.inputs.q.strides = {}; },
     "q [2, 4, 144115188075855872, 8] overflows: B * Hq * Nq * D components of 8 bytes exceed 64 bits"},
    {"RowsOfNoDim",
     [](Call& c) {
       c.inputs.q.sizes[2] = std::int64_t{1} << 56, c.inputs.q.strides = {};
       c.inputs.q.sizes[3] = c.inputs.k.sizes[3] = 0;
     },
     "q [2, 4, 72057594037927936, 0] overflows: B * Hq * Nq outputs of Dv components of 8 bytes exceed 64 bits"},
    {"States",
     [](Call& c) {
       c.inputs.q.sizes[2] = std::int64_t{1} << 56, c.inputs.q.strides = {};
       c.inputs.q.sizes[3] = c.inputs.k.sizes[3] = c.inputs.v.sizes[3] = 0;
     },
     "q [2, 4, 72057594037927936, 0] overflows: B * Hq * Nq row states exceed 64 bits"},
    {"Keys",
     [](Call& c) {
       c.inputs.k.sizes[2] = c.inputs.v.sizes[2] = std::int64_t{1} << 57;
       c.inputs.k.strides = c.inputs.v.strides = {};
     },
     "k [2, 2, 144115188075855872, 8] overflows: B * Hk * Nk * D components of 8 bytes exceed 64 bits"},
    {"Values",
     [](Call& c) {
       c.inputs.k.sizes[2] = c.inputs.v.sizes[2] = std::int64_t{1} << 56;
       c.inputs.k.sizes[3] = c.inputs.q.sizes[3] = 1;
       c.inputs.k.strides = c.inputs.v.strides = {};
     },
     "v [2, 2, 72057594037927936, 6] overflows: B * Hk * Nk * Dv components of 8 bytes exceed 64 bits"},
    {"Scratch",
     [](Call& c) {
       c.inputs.k.sizes[2] = c.inputs.v.sizes[2] = std::int64_t{1} << 40;
       c.inputs.k.strides = c.inputs.v.strides = {};
     },
     "k [2, 2, 1099511627776, 8] overflows: a head's keys in scratch exceed 64 bits"},
    {"ScratchOfWideValues", [](Call& c) { c.inputs.v.sizes[3] = std::int64_t{1} << 40, c.inputs.v.strides = {}; },
     "v [2, 2, 5, 1099511627776] overflows: a head's values in scratch exceed 64 bits"},
    {"BesideASizeOfZero",
     [](Call& c) {
       for (TensorView* t : {&c.inputs.q, &c.inputs.k, &c.inputs.v}) t->sizes = {0, huge / 8, huge / 8, 1};
     },
     "q [0, 576460752303423488, 576460752303423488, 1] overflows: B * Hq * Nq * D components of 8 bytes exceed 64 "
     "bits"},
};
INSTANTIATE_TEST_SUITE_P(Overflows, InputsRefused, ::testing::ValuesIn(overflows),
                         name_of_wrong<::testing::TestParamInfo<Wrong>>);

TEST(Problem, F64TakesF32AndF64Beside) {
  std::vector<double> data(1000);
  const TensorView q(data.data(), DType::f64, {2, 2, 3, 4});
  Inputs inputs{q, q, q};
  std::vector<float> f32(100);
  for (const DType type : {DType::f32, DType::f64}) {
    const void* numbers = type == DType::f32 ? static_cast<const void*>(f32.data()) : data.data();
    inputs.bias = TensorView(numbers, type, {3, 3});
    inputs.sinks = inputs.alibi_slopes = TensorView(numbers, type, {2});
    EXPECT_EQ(sentence([&] { make_problem(inputs, {PerHead{*inputs.sinks}}); }), "");
  }
  inputs.sinks->dtype = DType::f16;
  EXPECT_EQ(sentence([&] { make_problem(inputs, {}); }), "sinks [2] is f16 but must be f32 or f64 beside f64 q");
}

TEST(Problem, BiasOfTheTypeOfHalfQ) {
  std::vector<bf16> data(1000);
  const TensorView q(data.data(), DType::bf16, {2, 2, 3, 4});
  Inputs inputs{q, q, q};
  inputs.bias = TensorView(data.data(), DType::bf16, {3, 3});
  EXPECT_EQ(sentence([&] { make_problem(inputs, {}); }), "");
  inputs.bias->dtype = DType::f16;
  EXPECT_EQ(sentence([&] { make_problem(inputs, {}); }), "bias [3, 3] is f16 but must be f32 or the type of q, bf16");
}

// Offsets beyond 2^31 stay exact: row 99866 of a fused QKV tensor, 3 * 56 * 128 elements a token (no memory behind it).
TEST(Cases, E2) {
  const std::int64_t token = 3 * 56 * 128, rows = 99867;
  const auto* address = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40);
  const auto part = [&](int index) {
    TensorView view(address + index * 56 * 128 * 2, DType::bf16, {1, 56, rows, 128});
    view.strides = {rows * token, 128, token, 1};
    return view;
  };
  const Problem p = make_problem({part(0), part(1), part(2)}, {});
  EXPECT_EQ(p.q.at(0, 0, 99866, 0), std::int64_t{2147518464});
  EXPECT_EQ(p.k.at(0, 55, 99866, 127), std::int64_t{2147518464} + 55 * 128 + 127);
}

// B * H * S * S beyond 2^31 and beyond 2^63 is no error: nothing of that size exists. Its rows are counted in 64 bits.
TEST(Cases, E3) {
  const auto* address = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40);
  const TensorView batches(address, DType::f32, {10000, 64, 4096, 64});
  const Problem p = make_problem({batches, batches, batches}, {});
  EXPECT_EQ(p.q.at(9999, 63, 4095, 63), std::int64_t{10000} * 64 * 4096 * 64 - 1);
  EXPECT_EQ(p.segments.size(), 10000U);
  const TensorView wide(address, DType::f32, {1, 1, std::int64_t{1} << 34, 1});
  EXPECT_EQ(sentence([&] { make_problem({wide, wide, wide}, {}); }), "");
}

}  // namespace
}  // namespace levelhead::test
