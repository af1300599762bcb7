// The cache and a step of decoding: what joins, what is refused, and that a refusal changes nothing.
#include "levelhead/decode.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "core/call.hpp"
#include "core/decode_example.hpp"

namespace levelhead::test {
namespace {

using ::testing::ElementsAre;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// A conversation of B = 2 batch items: all tokens that will ever come, and the step that appends some of them.
struct Talk {
  static constexpr std::int64_t B = 2, Hq = 4, Hk = 2, N = 40, D = 8, Dv = 6;
  Tensor<float> q = normals<float>({B, Hq, N, D}, 1), k = normals<float>({B, Hk, N, D}, 2),
                v = normals<float>({B, Hk, N, Dv}, 3);
  Context context{2};

  static TensorView tokens(TensorView whole, std::int64_t from, std::int64_t n) {
    whole.data = static_cast<const float*>(whole.data) + from * whole.strides[2];
    whole.sizes[2] = n;
    return whole;
  }
  TensorView some_q(std::int64_t from, std::int64_t n) { return tokens(q.view(), from, n); }
  TensorView some_k(std::int64_t from, std::int64_t n) { return tokens(k.view(), from, n); }
  TensorView some_v(std::int64_t from, std::int64_t n) { return tokens(v.view(), from, n); }
  DecodeInputs step(std::int64_t from, std::int64_t n) { return {some_q(from, n), some_k(from, n), some_v(from, n)}; }

  /// o of forward over all tokens, causal.
  Tensor<float> whole(Options options = {}) {
    Tensor<float> o({B, Hq, N, Dv});
    if (!options.window.right()) options.window = Window::sliding(options.window.left(), 0);
    forward(context, {q.view(), k.view(), v.view()}, options, {o.view(), {}, {}});
    return o;
  }
  static CacheShape shape(CacheLayout layout = CacheLayout::row_major) { return {B, Hk, N, D, Dv, DType::f32, layout}; }
};

void expect_rows(const Tensor<float>& got, std::int64_t n, const Tensor<float>& want, std::int64_t from,
                 std::int64_t b_end = Talk::B) {
  for (std::int64_t head = 0; head < b_end * Talk::Hq; ++head) {
    for (std::int64_t x = 0; x < n * Talk::Dv; ++x) {
      ASSERT_NEAR(got.values[static_cast<std::size_t>(head * n * Talk::Dv + x)],
                  want.values[static_cast<std::size_t>((head * Talk::N + from) * Talk::Dv + x)], 4e-6)
          << "head " << head << ", element " << x;
    }
  }
}

TEST(Decode, TheExampleOfItsPage) { EXPECT_EQ(three_steps(), 103); }

TEST(Decode, StepsGiveTheRowsOfThePrefill) {
  for (const CacheLayout layout : {CacheLayout::row_major, CacheLayout::token_major}) {
    Talk talk;
    const Tensor<float> want = talk.whole();
    KvCache cache(Talk::shape(layout));
    std::int64_t from = 0;
    for (const std::int64_t n : {1, 3, 16, 1, 7, 12}) {
      Tensor<float> o({Talk::B, Talk::Hq, n, Talk::Dv}, nan);
      const RunInfo info = decode(talk.context, cache, talk.step(from, n), {}, {o.view(), {}, {}});
      EXPECT_THAT(info.kernel, ::testing::AnyOf("portable-decode", "portable-split", "reference"));
      expect_rows(o, n, want, from);
      from += n;
      EXPECT_THAT(cache.lengths(), ElementsAre(from, from));
    }
  }
}

TEST(Decode, OneLayoutHasTheBitsOfTheOther) {
  Talk talk;
  Tensor<float> first({Talk::B, Talk::Hq, 2, Talk::Dv}), second = first;
  for (const auto& [layout, o] : {std::pair{CacheLayout::row_major, &first}, {CacheLayout::token_major, &second}}) {
    KvCache cache(Talk::shape(layout));
    cache.append(talk.some_k(0, 30), talk.some_v(0, 30));
    decode(talk.context, cache, talk.step(30, 2), {}, {o->view(), {}, {}});
    EXPECT_EQ(cache.k().strides[2], layout == CacheLayout::row_major ? Talk::D : Talk::Hk * Talk::D);
  }
  EXPECT_EQ(first.values, second.values);
}

TEST(Decode, WindowsAndSlopesCountFromTheStartOfTheCache) {
  Talk talk;
  Tensor<float> slopes({Talk::Hq}, 0.25F);
  Options options;
  options.window = Window::sliding(5, {});
  Tensor<float> want({Talk::B, Talk::Hq, Talk::N, Talk::Dv});
  Inputs all{talk.q.view(), talk.k.view(), talk.v.view()};
  all.alibi_slopes = slopes.view();
  Options causal;
  causal.window = Window::sliding(5, 0);
  forward(talk.context, all, causal, {want.view(), {}, {}});

  KvCache cache(Talk::shape());
  cache.append(talk.some_k(0, 33), talk.some_v(0, 33));
  Tensor<float> o({Talk::B, Talk::Hq, 4, Talk::Dv});
  std::vector<RowState> state(static_cast<std::size_t>(Talk::B * Talk::Hq * 4));
  DecodeInputs step = talk.step(33, 4);
  step.alibi_slopes = slopes.view();
  decode(talk.context, cache, step, options, {o.view(), {}, state});
  expect_rows(o, 4, want, 33);
  for (const RowState& row : state) EXPECT_EQ(row.count, 6);
}

TEST(Decode, ARightBoundLetsNewTokensSeeEachOther) {
  Talk talk;
  KvCache cache(Talk::shape());
  cache.append(talk.some_k(0, 10), talk.some_v(0, 10));
  std::vector<RowState> state(static_cast<std::size_t>(Talk::B * Talk::Hq * 3));
  Options options;
  options.window = Window::sliding({}, 15, Align::bottom_right());
  decode(talk.context, cache, talk.step(10, 3), options, {{}, {}, state});
  for (const RowState& row : state) EXPECT_EQ(row.count, 13);
}

TEST(Decode, BatchItemsOfDifferentLengths) {
  Talk talk;
  const Tensor<float> want = talk.whole();
  KvCache cache(Talk::shape());
  Tensor<std::int64_t> first({2}, std::vector<std::int64_t>{20, 5}), then({2}, std::vector<std::int64_t>{2, 0});
  cache.append(talk.some_k(0, 20), talk.some_v(0, 20), first.view());
  EXPECT_THAT(cache.lengths(), ElementsAre(20, 5));
  DecodeInputs step = talk.step(20, 2);
  step.counts = then.view();
  Tensor<float> o({Talk::B, Talk::Hq, 2, Talk::Dv}, nan);
  std::vector<RowState> state(static_cast<std::size_t>(Talk::B * Talk::Hq * 2));
  decode(talk.context, cache, step, {}, {o.view(), {}, state});
  EXPECT_THAT(cache.lengths(), ElementsAre(22, 5));
  expect_rows(o, 2, want, 20, 1);
  for (std::size_t row = 0; row < state.size(); ++row) {
    const bool real = row < state.size() / 2;
    EXPECT_EQ(state[row].count, real ? 21 + static_cast<std::int64_t>(row % 2) : 0);
    EXPECT_EQ(o.values[row * Talk::Dv] == 0, !real) << "a row behind its count is empty";
  }
}

TEST(Decode, AMaskReachesToTheLongestItem) {
  Talk talk;
  KvCache cache(Talk::shape());
  cache.append(talk.some_k(0, 9), talk.some_v(0, 9));
  Tensor<std::uint8_t> mask({1, 1, 1, 10}, 1);
  mask.values[4] = 0;
  DecodeInputs step = talk.step(9, 1);
  step.mask = mask.view();
  step.mask->dtype = DType::boolean;
  std::vector<RowState> state(static_cast<std::size_t>(Talk::B * Talk::Hq));
  decode(talk.context, cache, step, {}, {{}, {}, state});
  for (const RowState& row : state) EXPECT_EQ(row.count, 9);
}

// Memory of the caller, NaN wherever no token is: with strides of its own, and lengths that it had before.
TEST(Decode, OverMemoryOfTheCaller) {
  Talk talk;
  const Tensor<float> want = talk.whole();
  constexpr std::int64_t gap = 3, row = Talk::D + gap;
  std::vector<float> k(static_cast<std::size_t>(Talk::B * Talk::Hk * Talk::N * row), nan), v = k;
  const auto over = [&](std::vector<float>& memory, std::int64_t width) {
    return view(memory.data(), {Talk::B, Talk::Hk, Talk::N, width}, {Talk::Hk * Talk::N * row, Talk::N * row, row, 1});
  };
  {
    KvCache filled(over(k, Talk::D), over(v, Talk::Dv));
    filled.append(talk.some_k(0, 25), talk.some_v(0, 25));
  }
  const std::vector<std::int64_t> lengths{25, 25};
  KvCache cache(over(k, Talk::D), over(v, Talk::Dv), lengths);
  EXPECT_EQ(cache.capacity(), Talk::N);
  Tensor<float> o({Talk::B, Talk::Hq, 5, Talk::Dv}, nan);
  decode(talk.context, cache, talk.step(25, 5), {}, {o.view(), {}, {}});
  expect_rows(o, 5, want, 25);
}

TEST(Decode, TruncateAndClearForget) {
  Talk talk;
  const Tensor<float> want = talk.whole();
  KvCache cache(Talk::shape());
  cache.append(talk.some_k(0, 12), talk.some_v(0, 12));
  cache.append(talk.some_k(30, 6), talk.some_v(30, 6));  // a draft that is thrown away
  cache.truncate(0, 12);
  cache.truncate(1, 12);
  EXPECT_EQ(cache.length(1), 12);
  Tensor<float> o({Talk::B, Talk::Hq, 1, Talk::Dv});
  decode(talk.context, cache, talk.step(12, 1), {}, {o.view(), {}, {}});
  expect_rows(o, 1, want, 12);
  cache.clear();
  EXPECT_THAT(cache.lengths(), ElementsAre(0, 0));
  decode(talk.context, cache, talk.step(0, 1), {}, {o.view(), {}, {}});
  expect_rows(o, 1, want, 0);
}

TEST(Decode, ACacheCanStandInInputs) {
  Talk talk;
  KvCache cache(Talk::shape(CacheLayout::token_major));
  cache.append(talk.some_k(0, 21), talk.some_v(0, 21));
  Inputs in{talk.some_q(0, 2), cache.k(), cache.v()};
  in.k_lengths = cache.lengths_view();
  std::vector<RowState> state(static_cast<std::size_t>(Talk::B * Talk::Hq * 2));
  forward(talk.context, in, {}, {{}, {}, state});
  for (const RowState& row : state) EXPECT_EQ(row.count, 21);
}

TEST(Decode, SizesOfZeroAreLegal) {
  Context context(1);
  KvCache none({.B = 0, .Hk = 2, .capacity = 4, .D = 3, .Dv = 3});
  Tensor<float> q({0, 2, 1, 3});
  decode(context, none, {q.view(), q.view(), q.view()}, {}, {});
  KvCache flat({.B = 1, .Hk = 1, .capacity = 2, .D = 0, .Dv = 2});
  Tensor<float> empty({1, 1, 2, 0}), v({1, 1, 2, 2}, std::vector<float>{1, 2, 3, 4}), o({1, 1, 2, 2});
  decode(context, flat, {empty.view(), empty.view(), v.view()}, {}, {o.view(), {}, {}});
  EXPECT_THAT(o.values, ElementsAre(1, 2, 2, 3));  // without components all logits are 0
}

// Refusals: each names its numbers, and leaves cache and outputs as they were.
struct Refused {
  std::string name;
  std::function<void(Talk&, KvCache&, DecodeInputs&, Options&, Outputs&)> spoil;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Refused& refused) { return out << refused.name; }

class DecodeRefused : public ::testing::TestWithParam<Refused> {};

TEST_P(DecodeRefused, SaysWhyAndChangesNothing) {
  Talk talk;
  std::vector<float> memory(static_cast<std::size_t>(Talk::B * Talk::Hk * Talk::N * (Talk::D + Talk::Dv)), 7.0F);
  KvCache cache(view(memory.data(), {Talk::B, Talk::Hk, Talk::N, Talk::D}),
                view(memory.data() + Talk::B * Talk::Hk * Talk::N * Talk::D, {Talk::B, Talk::Hk, Talk::N, Talk::Dv}));
  const std::vector<std::int64_t> ten{10, 38};
  Tensor<std::int64_t> counts({2}, ten);
  cache.append(talk.some_k(0, 38), talk.some_v(0, 38), counts.view());
  const std::vector<float> before = memory;
  Tensor<float> o({Talk::B, Talk::Hq, 2, Talk::Dv}, 5.0F);
  DecodeInputs step = talk.step(0, 2);
  Options options;
  Outputs outputs{o.view(), {}, {}};
  GetParam().spoil(talk, cache, step, options, outputs);
  EXPECT_EQ(sentence([&] { decode(talk.context, cache, step, options, outputs); }), GetParam().says);
  EXPECT_THAT(cache.lengths(), ElementsAre(10, 38));
  EXPECT_EQ(memory, before);
  EXPECT_EQ(o.values, std::vector<float>(o.values.size(), 5.0F));
}

const std::vector<Refused> refused{
    {"Full", [](Talk& t, KvCache&, DecodeInputs& in, Options&, Outputs&) { in = t.step(0, 3); },
     "the cache of batch item 1 holds 38 of 40 tokens; 3 more don't fit"},
    {"TooMany", [](Talk& t, KvCache&, DecodeInputs& in, Options&, Outputs&) { in = t.step(0, 17); },
     "q [2, 4, 17, 8] has 17 new tokens but decode takes 1 to 16: append longer runs and call forward"},
    {"None", [](Talk& t, KvCache&, DecodeInputs& in, Options&, Outputs&) { in = t.step(0, 0); },
     "q [2, 4, 0, 8] has 0 new tokens but decode takes 1 to 16: append longer runs and call forward"},
    {"QueriesOfRank3", [](Talk&, KvCache&, DecodeInputs& in, Options&, Outputs&) { in.q.rank = 3; },
     "q [2, 4, 2] has rank 3 but must have 4: [B, Hq, new tokens, D]"},
    {"KeysOfRank3", [](Talk&, KvCache&, DecodeInputs& in, Options&, Outputs&) { in.k.rank = 3; },
     "k [2, 2, 2] has rank 3 but must have 4: [B, Hk, new tokens, D]"},
    {"OtherTokens", [](Talk& t, KvCache&, DecodeInputs& in, Options&, Outputs&) { in.k = t.some_k(0, 1); },
     "q has 2 new tokens but k has 1: q [2, 4, 2, 8] and k [2, 2, 1, 8] must agree on axis 2"},
    {"OtherWidth", [](Talk& t, KvCache&, DecodeInputs& in, Options&, Outputs&) { in.k = t.some_v(0, 2); },
     "k [2, 2, 2, 6] must be [B, Hk, new tokens, D] = [2, 2, 2, 8]"},
    {"ValuesOfOtherTokens", [](Talk& t, KvCache&, DecodeInputs& in, Options&, Outputs&) { in.v = t.some_v(0, 1); },
     "v [2, 2, 1, 6] must be [B, Hk, new tokens, Dv] = [2, 2, 2, 6]"},
    {"OtherType", [](Talk&, KvCache&, DecodeInputs& in, Options&, Outputs&) { in.v.dtype = DType::bf16; },
     "v [2, 2, 2, 6] is bf16 but must be f32, the type of the cache"},
    {"QueryOfOtherType", [](Talk&, KvCache&, DecodeInputs& in, Options&, Outputs&) { in.q.dtype = DType::bf16; },
     "q is bf16 but k is f32: q, k and v must have one type"},
    {"Alignment",
     [](Talk&, KvCache&, DecodeInputs&, Options& options, Outputs&) {
       options.window = Window::causal(Align::top_left());
     },
     "decode places the new tokens at the end of the cache: the alignment must be bottom_right or unnamed"},
    {"KernelOfAnotherType",
     [](Talk&, KvCache&, DecodeInputs&, Options& options, Outputs&) { options.kernel = "avx512bf16-twin-decode"; },
     "kernel 'avx512bf16-twin-decode' does not take f32 inputs; the reference takes every type"},
    {"OutputInTheCache",
     [](Talk&, KvCache& cache, DecodeInputs&, Options&, Outputs& out) {
       out.o->data = const_cast<void*>(cache.v().data);
     },
     "o [2, 4, 2, 6] overlaps the input v of the cache [2, 2, 40, 6]: what is written must share no memory with it"},
    {"TokensInTheCache",
     [](Talk&, KvCache& cache, DecodeInputs& in, Options&, Outputs&) { in.k.data = cache.k().data; },
     "k of the cache [2, 2, 40, 8] overlaps the input k [2, 2, 2, 8]: what is written must share no memory with it"},
};

INSTANTIATE_TEST_SUITE_P(All, DecodeRefused, ::testing::ValuesIn(refused),
                         [](const auto& test) { return test.param.name; });

TEST(Decode, CountsAreRefused) {
  Talk talk;
  KvCache cache(Talk::shape());
  const auto append = [&](const TensorView& counts) {
    return sentence([&] { cache.append(talk.some_k(0, 3), talk.some_v(0, 3), counts); });
  };
  Tensor<std::int32_t> high({2}, std::vector<std::int32_t>{1, 4}), negative({2}, std::vector<std::int32_t>{-1, 0}),
      three({3}, 1);
  Tensor<float> real({2}, 1.0F);
  EXPECT_EQ(append(high.view()), "counts [2] holds 4 at 1 but must stay within 0 and the 3 new tokens");
  EXPECT_EQ(append(negative.view()), "counts [2] holds -1 at 0 but must stay within 0 and the 3 new tokens");
  EXPECT_EQ(append(three.view()), "counts [3] must be [B] = [2]");
  EXPECT_EQ(append(real.view()), "counts [2] is f32 but must be i64 or i32");
  EXPECT_THAT(cache.lengths(), ElementsAre(0, 0));
}

TEST(Decode, OneTokenTooManyIsSingular) {
  Talk talk;
  KvCache cache(Talk::shape());
  cache.append(talk.some_k(0, Talk::N), talk.some_v(0, Talk::N));
  EXPECT_EQ(sentence([&] { cache.append(talk.some_k(0, 1), talk.some_v(0, 1)); }),
            "the cache of batch item 0 holds 40 of 40 tokens; 1 more doesn't fit");
}

TEST(CacheRefused, Shapes) {
  const auto make = [](const CacheShape& shape) { return sentence([&] { KvCache cache(shape); }); };
  EXPECT_EQ(make({.capacity = -1}), "a cache can't have capacity = -1: no size is negative");
  EXPECT_EQ(make({.dtype = DType::i32}), "a cache can't hold i32: it must be f64, f32, bf16 or f16");
  EXPECT_EQ(make({.B = 1 << 20, .Hk = 1 << 20, .capacity = 1 << 20, .D = 64, .Dv = 64}),
            "a cache of B * Hk * capacity * (D + Dv) = 1048576 * 1048576 * 1048576 * (64 + 64) overflows: its bytes "
            "exceed 64 bits");
}

TEST(CacheRefused, MemoryOfTheCaller) {
  Tensor<float> k({2, 2, 5, 8}), v({2, 2, 5, 6}), short_v({2, 2, 4, 6}), flat({2, 5, 8});
  const auto make = [](const MutableTensorView& a, const MutableTensorView& b,
                       const std::vector<std::int64_t>& lengths = {}) {
    return sentence([&] { KvCache cache(a, b, lengths); });
  };
  EXPECT_EQ(make(k.view(), v.view(), {0, 5}), "");
  EXPECT_EQ(make(flat.view(), v.view()), "k of the cache [2, 5, 8] has rank 3 but must have 4: [B, Hk, capacity, D]");
  EXPECT_EQ(make(k.view(), short_v.view()), "v of the cache [2, 2, 4, 6] must be [B, Hk, capacity, Dv] = [2, 2, 5, 6]");
  MutableTensorView other = v.view();
  other.dtype = DType::bf16;
  EXPECT_EQ(make(k.view(), other), "v of the cache [2, 2, 5, 6] is bf16 but must be f32, the type of k");
  EXPECT_EQ(make(k.view(), v.view(), {1}), "the lengths of a cache hold 1 numbers but it has B = 2");
  EXPECT_EQ(make(k.view(), v.view(), {1, 6}), "batch item 1 of the cache has length 6 but room for 5 tokens");
  EXPECT_EQ(make(k.view(), k.view()),
            "v of the cache [2, 2, 5, 8] overlaps k of the cache [2, 2, 5, 8]: outputs must "
            "share no memory");
}

TEST(CacheRefused, Cuts) {
  Talk talk;
  KvCache cache(Talk::shape());
  cache.append(talk.some_k(0, 3), talk.some_v(0, 3));
  EXPECT_EQ(sentence([&] { cache.truncate(0, 4); }), "batch item 0 of the cache can't be cut to 4 tokens: it holds 3");
  EXPECT_EQ(sentence([&] { cache.truncate(2, 0); }), "the cache has no batch item 2: B = 2");
  EXPECT_EQ(cache.length(0), 3);
}

}  // namespace
}  // namespace levelhead::test
