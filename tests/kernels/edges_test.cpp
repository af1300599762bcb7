// Lines of docs/edges.md that no other test holds kernels to.
#include <cfenv>
#include <cmath>
#include <cstdint>

#include "kernels/cases.hpp"
#include "support/not_finite.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace levelhead::test {
namespace {

class Edges : public Cases {};

// One visible key of many: its value, its logit, no entropy, all the weight, and no saturation, with nothing to choose.
TEST_P(Edges, OneVisibleKey) {
  Case c = Case::logits(type(), {3, 0.5, -2});
  c.mask = Tensor(DType::boolean, {3}, {0, 1, 0});
  const Forward out = run(c);
  EXPECT_EQ(out.o.flat(0), 1);
  EXPECT_EQ(out.lse.flat(0), 0.5);
  const RowStatistics row = out.row(0, 0);
  EXPECT_EQ(row.count, 1);
  EXPECT_EQ(row.entropy, 0);
  EXPECT_EQ(row.top1, 1);
  EXPECT_FALSE(row.saturated);
}

// NaN in the bias is NaN in its row and in no other.
TEST_P(Edges, NanInTheBias) {
  const Case clean = Case::random(type(), {.Nq = 3, .Nk = 5, .D = 4, .Dv = 2}, 21);
  Case c = clean;
  c.bias = Tensor(side_type(type()), {3, 5});
  c.bias->set({1, 3}, nan);
  const Forward out = run(c), want = run(clean);
  for (std::int64_t d = 0; d < 2; ++d) {
    EXPECT_TRUE(std::isnan(out.o.get({0, 0, 1, d})));
    EXPECT_EQ(out.o.get({0, 0, 0, d}), want.o.get({0, 0, 0, d}));
    EXPECT_EQ(out.o.get({0, 0, 2, d}), want.o.get({0, 0, 2, d}));
  }
  EXPECT_TRUE(std::isnan(out.lse.flat(1)));
  EXPECT_TRUE(std::isnan(out.row(0, 1).entropy));
  EXPECT_EQ(out.row(0, 1).count, 5);
}

// The instructions of AVX512_BF16 and AMX take subnormal numbers for 0; every other kernel keeps them.
TEST_P(Edges, SubnormalValues) {
  const double tiny = type() == DType::f16 ? 0x1p-20 : 0x1p-130;
  Case c = Case::logits(type(), {0});
  c.v.set_flat(0, tiny);
  const bool bf16 = kernel().rfind("avx512bf16", 0) == 0 || kernel().rfind("amx", 0) == 0;
  const bool flushes = bf16 && kernel().find("twin") == std::string::npos;
  EXPECT_EQ(run(c).o.flat(0), flushes ? 0 : tiny);
}

// A key that no query sees: its gradients are exactly 0, whatever the others are.
TEST_P(Edges, KeysThatNoQuerySees) {
  Case c = Case::random(type(), {.Nq = 3, .Nk = 6, .D = 4, .Dv = 2}, 22);
  c.window = Window::causal(Align::top_left());
  const Backward back = backward(c, run(c), Upstream::random(c, 23), kernel());
  for (std::int64_t j = 0; j < 6; ++j) {
    for (const auto& [name, width] : {std::pair("dk", 4), std::pair("dv", 2)}) {
      bool zero = true;
      for (std::int64_t d = 0; d < width; ++d) zero = zero && back.at(name).get({0, 0, j, d}) == 0;
      EXPECT_EQ(zero, j > 2) << name << " of key " << j;
    }
  }
}

// Moments of logits that are numbers, but whose squares are none in f32, are inf and not NaN.
TEST_P(Edges, MomentsThatOverflow) {
  if (type() == DType::f64 || type() == DType::f16) return;  // no overflow in f64; f16 holds no such logits
  const Case c = Case::logits(type(), {1e30, -1e30, 0});
  const RowStatistics row = only_row(c);
  EXPECT_EQ(static_cast<float>(row.variance), inf);
  EXPECT_FALSE(std::isnan(row.mean));
}

// Weights that sum to a number times values near the largest: the reference gives the mean, the others that or inf.
TEST_P(Edges, ValuesNearTheLargest) {
  if (type() == DType::f64 || type() == DType::f16) return;
  Case c = Case::logits(type(), {1, 1, 1, 1});
  c.v.fill(3e38);
  const double value = c.v.flat(0), o = run(c).o.flat(0);
  EXPECT_TRUE(o == value || (kernel() != "reference" && o == inf)) << o;
}

// The processor's state is left as it was; denormal numbers come out the same when it flushes them to zero.
TEST_P(Edges, RoundingAndFlushToZeroStay) {
  const Case c = Case::random(type(), {.Nq = 9, .Nk = 33, .D = 7, .Dv = 5}, 24);
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
#if defined(__SSE2__)
  const unsigned before = _mm_getcsr() & ~0x3FU;  // but for the flags that arithmetic raises
#endif
  const Forward out = run(c);
  backward(c, out, Upstream::random(c, 25), kernel());
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
#if defined(__SSE2__)
  EXPECT_EQ(_mm_getcsr() & ~0x3FU, before);
  _mm_setcsr(before | 0x8040U);  // flush to zero, denormals are zero
  const Forward flushed = run(c);
  _mm_setcsr(before);
  EXPECT_TRUE(same_bits(flushed, out));
#endif
}

// Twice the queries and keys: memory beside the outputs at most doubles. With all pairs kept it would grow fourfold.
TEST_P(Edges, MemoryGrowsWithTheKeysNotWithThePairs) {
  const auto bytes = [&](std::int64_t tokens) {
    return run(Case::random(type(), {.Nq = tokens, .Nk = tokens, .D = 8, .Dv = 8}, 26)).info.workspace_bytes;
  };
  const std::size_t one = bytes(512), two = bytes(1024);
  EXPECT_GT(one, 0U);
  EXPECT_LE(two, 2 * one);
}

INSTANTIATE_TEST_SUITE_P(All, Edges, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

}  // namespace
}  // namespace levelhead::test
