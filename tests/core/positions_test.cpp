// Lengths, documents, windows and alignments: which rows and keys may meet.
#include <gtest/gtest.h>

#include <limits>

#include "core/call.hpp"
#include "core/scale.hpp"

namespace levelhead::test {
namespace {

constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// Nq queries and Nk keys in one batch item, D = 0: all that counts here is which keys a row sees.
Problem positions(std::int64_t Nq, std::int64_t Nk, const Window& window) {
  return make_problem({TensorView(nullptr, DType::f32, {1, 1, Nq, 0}), TensorView(nullptr, DType::f32, {1, 1, Nk, 0}),
                       TensorView(nullptr, DType::f32, {1, 1, Nk, 0})},
                      {.scale = {}, .window = window});
}

std::vector<std::int64_t> counts(const Problem& p) {
  std::vector<std::int64_t> result;
  for (const Segment& s : p.segments)
    for (std::int64_t i = s.q_begin; i < s.q_end; ++i) result.push_back(count_visible(p, s, 0, i));
  return result;
}

using Counts = std::vector<std::int64_t>;

// Two queries, five keys: the corners differ, so one must be named.
TEST(Cases, F2) {
  EXPECT_EQ(counts(positions(2, 5, Window::causal(Align::top_left()))), (Counts{1, 2}));
  EXPECT_EQ(counts(positions(2, 5, Window::causal(Align::bottom_right()))), (Counts{4, 5}));
  EXPECT_EQ(sentence([] { positions(2, 5, Window::causal()); }),
            "batch item 0 has 2 queries but 5 keys, and the window has a bound: name the alignment, top_left, "
            "bottom_right or an offset");
}

// The corner does not flip with the longer side.
TEST(Cases, F4) {
  EXPECT_EQ(counts(positions(5, 2, Window::causal(Align::top_left()))), (Counts{1, 2, 2, 2, 2}));
  EXPECT_EQ(counts(positions(5, 2, Window::causal(Align::bottom_right()))), (Counts{0, 0, 0, 1, 2}));
}

// left counts keys before the query, its own not among them.
TEST(Cases, G1) {
  EXPECT_EQ(counts(positions(6, 6, Window::sliding(3, 0))), (Counts{1, 2, 3, 4, 4, 4}));
  EXPECT_EQ(counts(positions(6, 6, Window::sliding(3, {}))), (Counts{6, 6, 6, 6, 5, 4}));
}

TEST(Alignment, NeedsNoNameWhereItDoesNotMatter) {
  EXPECT_EQ(sentence([] { positions(4, 4, Window::causal()); }), "");
  EXPECT_EQ(sentence([] { positions(2, 5, Window::all()); }), "");
}

TEST(Alignment, MattersToSlopesToo) {
  Call call;
  call.inputs.alibi_slopes = call.per_head.view();
  EXPECT_EQ(sentence([&] { call.problem(); }), "");
  Tensor<std::int32_t> lengths({2}, std::vector<std::int32_t>{5, 4});
  call.inputs.k_lengths = lengths.view();
  EXPECT_EQ(sentence([&] { call.problem(); }),
            "batch item 1 has 5 queries but 4 keys, and alibi_slopes are given: name the alignment, top_left, "
            "bottom_right or an offset");
  call.options.window = Window::all(Align::bottom_right());
  EXPECT_EQ(call.problem().segments[0].offset, 0);
  EXPECT_EQ(call.problem().segments[1].offset, -1);
}

TEST(Alignment, OffsetBeyondAllPositionsWithSlopes) {
  Call call;
  call.inputs.alibi_slopes = call.per_head.view();
  call.options.window = Window::all(Align::at(largest));
  EXPECT_EQ(sentence([&] { call.problem(); }),
            "the alignment's offset is 9223372036854775807 but beside alibi_slopes it must stay within "
            "-1152921504606846976 and 1152921504606846976");
}

__extension__ using Wide = __int128;

// The definition, in arithmetic that cannot overflow.
std::int64_t brute(std::int64_t i, std::int64_t Nk, const Window& window, Wide offset) {
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < Nk; ++j) {
    const Wide distance = j - (i + offset);
    count += (!window.left() || -static_cast<Wide>(*window.left()) <= distance) &&
             (!window.right() || distance <= static_cast<Wide>(*window.right()));
  }
  return count;
}

TEST(Window, EveryBoundAndOffsetByBruteForce) {
  const std::vector<Window::Bound> bounds{
      std::nullopt, 0, 1, 3, unbounded - 1, unbounded, unbounded + 1, largest / 2, largest - 3, largest - 1, largest};
  const std::vector<std::int64_t> offsets{0,
                                          1,
                                          -2,
                                          5,
                                          -9,
                                          unbounded,
                                          -unbounded,
                                          largest / 2,
                                          smallest / 2,
                                          largest - 2,
                                          largest,
                                          smallest,
                                          smallest + 2,
                                          unbounded / 2,
                                          -unbounded / 2 - 2};
  for (const auto& left : bounds)
    for (const auto& right : bounds)
      for (const std::int64_t offset : offsets) {
        const Window window = Window::sliding(left, right, Align::at(offset));
        const Problem p = positions(4, 7, window);
        for (std::int64_t i = 0; i < 4; ++i)
          ASSERT_EQ(count_visible(p, p.segments[0], 0, i), brute(i, 7, window, offset))
              << "left " << left.value_or(-1) << " right " << right.value_or(-1) << " offset " << offset << " i " << i;
      }
}

TEST(Window, HugeTokenCountsStayInRange) {
  const std::int64_t n = std::int64_t{1} << 34;
  const Problem p = positions(n, n, Window::sliding(largest, 0, Align::at(unbounded / 2)));
  EXPECT_EQ(count_visible(p, p.segments[0], 0, n - 1), n);
  const Problem q = positions(n, n, Window::causal());
  EXPECT_EQ(count_visible(q, q.segments[0], 0, n - 1), n);
}

TEST(Lengths, CutEachBatchItem) {
  Call call;
  Tensor<std::int64_t> q_lengths({2}, std::vector<std::int64_t>{3, 0});
  Tensor<std::int32_t> k_lengths({2}, std::vector<std::int32_t>{5, 2});
  call.inputs.q_lengths = q_lengths.view();
  call.inputs.k_lengths = k_lengths.view();
  call.options.window = Window::causal(Align::bottom_right());
  const Problem p = call.problem();
  ASSERT_EQ(p.segments.size(), 2U);
  EXPECT_EQ(p.segments[0].q_end, 3);
  EXPECT_EQ(p.segments[0].k_end, 5);
  EXPECT_EQ(p.segments[0].offset, 2);
  EXPECT_EQ(p.segments[1].q_end, 0);
  EXPECT_EQ(p.segments[1].k_end, 2);
  EXPECT_EQ(counts(p), (Counts{3, 4, 5}));
}

// Packed documents of 3 and 2 tokens: keys are counted inside their document.
TEST(Cases, B14) {
  std::vector<float> data(5 * 4);
  const TensorView q(data.data(), DType::f32, {1, 1, 5, 4});
  Tensor<std::int32_t> offsets({3}, std::vector<std::int32_t>{0, 3, 5});
  Inputs inputs{q, q, q};
  inputs.q_offsets = inputs.k_offsets = offsets.view();
  Options options{LogKeys{2}, Window::causal()};
  Problem p = make_problem(inputs, options);
  EXPECT_EQ(counts(p), (Counts{1, 2, 3, 1, 2}));
  fill_multipliers(p, inputs, options);
  const float plain = 0.5F;
  EXPECT_EQ(p.multiplier(0, 0, 0), 0.0);
  EXPECT_EQ(p.multiplier(0, 0, 1), plain);
  EXPECT_FLOAT_EQ(static_cast<float>(p.multiplier(0, 0, 2)), static_cast<float>(std::log2(3.0) / 2));
  EXPECT_EQ(p.multiplier(0, 0, 3), 0.0);
  EXPECT_EQ(p.multiplier(0, 0, 4), plain);
}

// One mask as bool and as 0 / -inf: the same keys. (As 0 / 1 floats it is an error, among the refused inputs.)
TEST(Cases, D12) {
  Call call;
  for (std::size_t at = 0; at < 25; ++at) {
    call.mask_bytes.values[at] = at % 3 != 0;
    call.bias.values[at] = at % 3 != 0 ? 0 : -std::numeric_limits<float>::infinity();
  }
  call.inputs.mask = call.mask();
  const Counts masked = counts(call.problem());
  call.inputs.mask.reset();
  call.inputs.bias = call.bias.view();
  EXPECT_EQ(counts(call.problem()), masked);
  EXPECT_EQ(masked, (Counts{3, 3, 4, 3, 3, 3, 3, 4, 3, 3}));
}

TEST(Documents, EmptyOnesAndUnequalOnes) {
  std::vector<float> data(1000);
  const TensorView q(data.data(), DType::f32, {1, 1, 4, 4}), k(data.data(), DType::f32, {1, 1, 6, 4});
  Tensor<std::int32_t> q_offsets({5}, std::vector<std::int32_t>{0, 0, 3, 3, 4});
  Tensor<std::int64_t> k_offsets({5}, std::vector<std::int64_t>{0, 1, 1, 4, 6});
  Inputs inputs{q, k, k};
  inputs.q_offsets = q_offsets.view();
  inputs.k_offsets = k_offsets.view();
  EXPECT_EQ(counts(make_problem(inputs, {})), (Counts{0, 0, 0, 2}));
  EXPECT_EQ(sentence([&] { make_problem(inputs, {.scale = {}, .window = Window::causal()}); }),
            "document 0 has 0 queries but 1 keys, and the window has a bound: name the alignment, top_left, "
            "bottom_right or an offset");
  EXPECT_EQ(counts(make_problem(inputs, {.scale = {}, .window = Window::causal(Align::top_left())})),
            (Counts{0, 0, 0, 1}));
}

TEST(Documents, NoneAtAll) {
  const TensorView empty(nullptr, DType::f32, {1, 1, 0, 4});
  Tensor<std::int32_t> offsets({1}, std::vector<std::int32_t>{0});
  Inputs inputs{empty, empty, empty};
  inputs.q_offsets = inputs.k_offsets = offsets.view();
  EXPECT_EQ(sentence([&] { make_problem(inputs, {}); }), "");
}

// Numbers that the wrong lengths and offsets below borrow.
struct Numbers {
  Tensor<std::int32_t> three{{3}, std::vector<std::int32_t>{0, 2, 5}};
  Tensor<std::int64_t> lengths{{2}, std::vector<std::int64_t>{5, 6}}, negative{{2}, std::vector<std::int64_t>{5, -1}};
  Tensor<std::int32_t> from_one{{3}, std::vector<std::int32_t>{1, 2, 5}},
      falling{{4}, std::vector<std::int32_t>{0, 3, 2, 5}}, short_of{{3}, std::vector<std::int32_t>{0, 2, 4}},
      two{{2}, std::vector<std::int32_t>{0, 5}}, none{{0}};
};
Numbers& numbers() {
  static Numbers all;
  return all;
}

// One batch item of the call, packed as two documents.
void pack(Call& c) {
  for (TensorView* t : {&c.inputs.q, &c.inputs.k, &c.inputs.v}) t->sizes[0] = 1;
  c.inputs.q_offsets = c.inputs.k_offsets = numbers().three.view();
}

class PositionsRefused : public ::testing::TestWithParam<Wrong> {};

TEST_P(PositionsRefused, SaysWhy) {
  Call call;
  GetParam().spoil(call);
  EXPECT_EQ(sentence([&] { call.problem(); }), GetParam().says);
}

const Wrong positions_refused[] = {
    {"Packed", [](Call& c) { pack(c); }, ""},
    {"LengthAboveN", [](Call& c) { c.inputs.k_lengths = numbers().lengths.view(); },
     "k_lengths [2] holds 6 at 1 but must stay within 0 and Nk = 5"},
    {"LengthNegative", [](Call& c) { c.inputs.q_lengths = numbers().negative.view(); },
     "q_lengths [2] holds -1 at 1 but must stay within 0 and Nq = 5"},
    {"LengthsShape", [](Call& c) { c.inputs.q_lengths = numbers().three.view(); }, "q_lengths [3] must be [B] = [2]"},
    {"LengthsType", [](Call& c) { c.inputs.q_lengths = TensorView(c.q.values.data(), DType::f32, {2}); },
     "q_lengths [2] is f32 but must be i64 or i32"},
    {"OffsetsWithoutTheOther", [](Call& c) { pack(c), c.inputs.k_offsets.reset(); },
     "q_offsets is given without k_offsets: packed documents need both"},
    {"OffsetsWithoutTheFirst", [](Call& c) { pack(c), c.inputs.q_offsets.reset(); },
     "k_offsets is given without q_offsets: packed documents need both"},
    {"OffsetsAndLengths",
     [](Call& c) { pack(c), c.inputs.k_lengths = TensorView(numbers().two.values.data() + 1, DType::i32, {1}); },
     "q_offsets [3] is given together with k_lengths: documents are packed or padded, not both"},
    {"OffsetsOfABatch", [](Call& c) { c.inputs.q_offsets = c.inputs.k_offsets = numbers().three.view(); },
     "q_offsets [3] packs documents into one batch item but q has B = 2"},
    {"OffsetsStart", [](Call& c) { pack(c), c.inputs.q_offsets = numbers().from_one.view(); },
     "q_offsets [3] starts with 1 but must start with 0"},
    {"OffsetsFall", [](Call& c) { pack(c), c.inputs.k_offsets = numbers().falling.view(); },
     "k_offsets [4] falls from 3 to 2 at 2 but may only rise"},
    {"OffsetsEnd", [](Call& c) { pack(c), c.inputs.k_offsets = numbers().short_of.view(); },
     "k_offsets [3] ends with 4 but must end with Nk = 5"},
    {"OffsetsCount", [](Call& c) { pack(c), c.inputs.k_offsets = numbers().two.view(); },
     "q_offsets [3] holds 2 documents but k_offsets [2] holds 1"},
    {"OffsetsEmpty", [](Call& c) { pack(c), c.inputs.k_offsets = numbers().none.view(); },
     "k_offsets [0] must be [documents + 1], with at least one number"},
    {"OffsetsRank",
     [](Call& c) {
       pack(c), c.inputs.k_offsets = TensorView(numbers().three.values.data(), DType::i32, {1, 3});
     },
     "k_offsets [1, 3] must be [documents + 1], with at least one number"},
    {"OffsetsType", [](Call& c) { pack(c), c.inputs.k_offsets->dtype = DType::u8; },
     "k_offsets [3] is u8 but must be i64 or i32"},
    {"LeftNegative", [](Call& c) { c.options.window = Window::sliding(-1, 2); },
     "the window's left bound is -1 but counts keys beside the query's own: it must be >= 0"},
    {"RightNegative", [](Call& c) { c.options.window = Window::sliding({}, -7); },
     "the window's right bound is -7 but counts keys beside the query's own: it must be >= 0"},
};
INSTANTIATE_TEST_SUITE_P(Positions, PositionsRefused, ::testing::ValuesIn(positions_refused),
                         name_of_wrong<::testing::TestParamInfo<Wrong>>);

// All rules of visibility at once, by their definition, on random problems.
TEST(CountVisible, AgreesWithTheDefinition) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const std::int64_t B = draw(1, 3), H = draw(1, 3), Nq = draw(1, 7), Nk = draw(0, 9);
    Tensor<float> q({B, H, Nq, 1}), k({B, H, Nk, 1});
    Inputs inputs{q.view(), k.view(), k.view()};
    Tensor<std::uint8_t> mask({draw(0, 1) ? B : 1, 1, draw(0, 1) ? Nq : 1, Nk});
    Tensor<float> bias({draw(0, 1) ? H : 1, Nq, Nk});
    for (auto& x : mask.values) x = static_cast<std::uint8_t>(draw(0, 3) > 0);
    for (auto& x : bias.values) x = draw(0, 3) > 0 ? -3.4e38F : -std::numeric_limits<float>::infinity();
    const bool masked = draw(0, 1), biased = draw(0, 1), cut = draw(0, 1);
    if (masked) inputs.mask = mask.view(), inputs.mask->dtype = DType::boolean;
    if (biased) inputs.bias = bias.view();
    Tensor<std::int64_t> q_lengths({B}), k_lengths({B});
    for (auto& x : q_lengths.values) x = cut ? draw(0, Nq) : Nq;
    for (auto& x : k_lengths.values) x = cut ? draw(0, Nk) : Nk;
    inputs.q_lengths = q_lengths.view(), inputs.k_lengths = k_lengths.view();
    const std::int64_t left = draw(0, 5), right = draw(0, 5), rule = draw(0, 2), at = draw(-4, 4);
    const Align align = rule == 0 ? Align::top_left() : rule == 1 ? Align::bottom_right() : Align::at(at);
    const Problem p = make_problem(inputs, {.scale = {}, .window = Window::sliding(left, right, align)});

    for (const Segment& s : p.segments)
      for (std::int64_t h = 0; h < H; ++h)
        for (std::int64_t i = 0; i < s.q_end; ++i) {
          const std::int64_t n_q = q_lengths.values[static_cast<std::size_t>(s.b)],
                             n_k = k_lengths.values[static_cast<std::size_t>(s.b)];
          const std::int64_t offset = rule == 0 ? 0 : rule == 1 ? n_k - n_q : at;
          std::int64_t expected = 0;
          for (std::int64_t j = 0; j < n_k; ++j) {
            const std::int64_t mb = mask.sizes[0] == 1 ? 0 : s.b, mi = mask.sizes[2] == 1 ? 0 : i,
                               bh = bias.sizes[0] == 1 ? 0 : h;
            const bool open = !masked || mask.values[static_cast<std::size_t>((mb * mask.sizes[2] + mi) * Nk + j)] != 0;
            const bool finite = !biased || std::isfinite(bias.values[static_cast<std::size_t>((bh * Nq + i) * Nk + j)]);
            const std::int64_t distance = j - i - offset;
            expected += open && finite && -left <= distance && distance <= right;
          }
          ASSERT_EQ(count_visible(p, s, h, i), expected) << "seed " << seed << " b " << s.b << " h " << h << " i " << i;
        }
  }
}

// What lies behind a length is never read: here it is no memory at all.
TEST(CountVisible, ReadsNothingBehindALength) {
  Tensor<float> q({1, 1, 4, 1}), k({1, 1, 6, 1});
  std::vector<std::uint8_t> mask(2 * 6, 1);  // rows 0 and 1 of 4, in a block that ends after key 3 of row 1
  mask.resize(6 + 3);
  mask.shrink_to_fit();
  Tensor<std::int32_t> q_length({1}, std::vector<std::int32_t>{2}), k_length({1}, std::vector<std::int32_t>{3});
  Inputs inputs{q.view(), k.view(), k.view()};
  inputs.mask = TensorView(mask.data(), DType::boolean, {4, 6});
  inputs.q_lengths = q_length.view(), inputs.k_lengths = k_length.view();
  const Options options{LogKeys{2}};
  Problem p = make_problem(inputs, options);
  fill_multipliers(p, inputs, options);
  EXPECT_EQ(counts(p), (Counts{3, 3}));
  EXPECT_EQ(p.multiplier(0, 0, 3), 0.0);
}

}  // namespace
}  // namespace levelhead::test
