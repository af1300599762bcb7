// Group A: statistics and log-sum-exp.
#include <cmath>
#include <numbers>

#include "kernels/cases.hpp"

namespace levelhead::test {
namespace {

// The maximum is per head and per row, over visible entries only.
TEST_P(Cases, A1) {
  Case c(type(), {.Hq = 2, .Hk = 2, .Nq = 4, .Nk = 4});
  c.scale = Constant{1};
  c.window = Window::causal();
  c.q.set({0, 1, 0, 0}, 1);
  c.k.set({0, 1, 3, 0}, 1000);  // q0 k3, hidden
  c.q.set({0, 1, 3, 1}, 1);
  c.k.set({0, 1, 1, 1}, 7);  // q3 k1
  const Forward out = run(c);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(out.row(0, i).max, 0);
    EXPECT_EQ(out.row(1, i).max, i == 3 ? 7 : 0);
  }
}

// The maximum is that of the scaled logits.
TEST_P(Cases, A2) {
  Case c = Case::logits(type(), {1, -2});
  c.scale = Constant{-1};
  EXPECT_EQ(only_row(c).max, 2);
  EXPECT_EQ(only_row(c).absmax_uncapped, 2);
}

// Entropy of equal logits is ln n, and that of one larger logit its closed form.
TEST_P(Cases, A3) {
  const RowStatistics equal = only_row(Case::logits(type(), std::vector<double>(7, 1e4)));
  EXPECT_TRUE(near(equal.entropy, std::log(7), std::min(1e-6, statistic_bound(0))));
  EXPECT_TRUE(near(equal.variance, 0, 0));
  for (const double large : {0.0, 1.0, 20.0, 200.0}) {
    std::vector<double> logits(8, 0.0);
    logits[0] = large;
    const double rest = 7 * std::exp(-large);
    const double entropy = std::log1p(rest) + large * rest / (1 + rest);
    EXPECT_TRUE(near(only_row(Case::logits(type(), logits)).entropy, entropy, statistic_bound(entropy))) << large;
  }
}

// The smallest logit stands beside the largest.
TEST_P(Cases, A4) {
  const RowStatistics row = only_row(Case::logits(type(), {3, -5, 3}));
  EXPECT_EQ(row.max, 3);
  EXPECT_EQ(row.min, -5);
}

// Statistics change no bit of the outputs, and not the kernel.
TEST_P(Cases, A5) {
  Case c = Case::random(type(), {.B = 2, .Hq = 4, .Hk = 2, .Nq = 37, .Nk = 85, .D = 33, .Dv = 19}, 5);
  c.window = Window::causal(Align::bottom_right());
  c.softcap = 3;
  c.statistics.level = StatisticsLevel::lse_max;
  const Forward without = run(c);
  for (const auto level : {StatisticsLevel::entropy, StatisticsLevel::all}) {
    c.statistics = {level, Precision::fast};
    const Forward with = run(c);
    EXPECT_TRUE(same_bits(with.o, without.o));
    EXPECT_TRUE(same_bits(with.lse, without.lse));
    c.statistics.precision = Precision::exact;
    EXPECT_TRUE(same_bits(run(c).o, without.o));
  }
}

// Rows of the weights are rebuilt from m and l.
TEST_P(Cases, A6) {
  Case c = Case::random(type(), {.Hq = 2, .Hk = 1, .Nq = 8, .Nk = 8, .D = 16, .Dv = 4}, 6);
  c.window = Window::causal();
  const Forward out = run(c);
  const std::vector<RowIndex> rows{{0, 0, 0}, {0, 1, 3}, {0, 1, 7}};
  std::vector<double> p(rows.size() * 8, -1);
  Context context(1);
  Saved saved;
  saved.state = out.state;
  weights(context, c.inputs(), c.options(), saved, rows, p);
  const Oracle oracle = materialise(c);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double sum = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      sum += p[r * 8 + j];
      const std::size_t pair = oracle.row_index(0, rows[r].h, rows[r].i) * 8 + j;
      EXPECT_TRUE(near(p[r * 8 + j], oracle.p[pair], statistic_bound(1)));
      EXPECT_TRUE(oracle.visible[pair] || p[r * 8 + j] == 0);
    }
    EXPECT_TRUE(near(sum, 1, statistic_bound(1)));
  }
}

// A state merges across shards.
TEST_P(Cases, A7) {
  const std::vector<double> logits{0.5, -1, 2, 0.25, -3};
  const auto state = [&](std::size_t begin, std::size_t end) {
    return run(Case::logits(type(), {logits.begin() + begin, logits.begin() + end})).state[0];
  };
  RowState tail = state(2, 5);
  tail.first_key += 2;
  const RowStatistics merged = row_statistics(merge(state(0, 2), tail), {});
  const RowStatistics whole = row_statistics(state(0, 5), {});
  EXPECT_EQ(merged.max, whole.max);
  EXPECT_EQ(merged.min, whole.min);
  EXPECT_EQ(merged.count, 5);
  const double bound = std::min(1e-6, statistic_bound(0));
  EXPECT_TRUE(near(merged.variance, whole.variance, 4 * bound));  // logits of size 2, squared
  if (type() != DType::f64 && type() != DType::f32) return;       // 16 bits: each shard rounds its own weights
  EXPECT_TRUE(near(merged.entropy, whole.entropy, bound));
  EXPECT_TRUE(near(merged.first_key_mass, whole.first_key_mass, bound));
}

// The maximum before and after the cap.
TEST_P(Cases, A10) {
  Case c = Case::logits(type(), {200});
  c.softcap = 50;
  EXPECT_EQ(only_row(c).absmax_uncapped, 200);
  EXPECT_TRUE(near(only_row(c).max, 50 * std::tanh(4.0), 50 * std::min(1e-5, statistic_bound(1))));
}

double pooled_deviation(const Forward& run) {
  double pairs = 0, sum = 0, squares = 0;
  for (const RowState& s : run.state) {
    const double n = static_cast<double>(s.count);
    pairs += n;
    sum += n * s.mean;
    squares += s.m2 + n * s.mean * s.mean;
  }
  return std::sqrt(squares / pairs - sum * sum / pairs / pairs);
}

// No statistic assumes 1/sqrt(D).
TEST_P(Cases, A12) {
  Case c = Case::random(type(), {.Nq = 128, .Nk = 256, .D = 64, .Dv = 1}, 12);
  c.scale = Constant{1};
  EXPECT_NEAR(pooled_deviation(run(c)), 8, 0.4);
}

// Signed and absolute maximum.
TEST_P(Cases, A14) {
  const RowStatistics row = only_row(Case::logits(type(), {-9, 4}));
  EXPECT_EQ(row.max, 4);
  EXPECT_EQ(row.absmax, 9);
}

// lse is the natural logarithm, and says where the sink is.
TEST_P(Cases, A16) {
  Case c = Case::logits(type(), {0, 0});
  EXPECT_TRUE(near(run(c).lse.flat(0), std::numbers::ln2, statistic_bound(std::numbers::ln2)));
  c.sinks = c.side({1}, {0});
  const Forward with_sink = run(c);
  EXPECT_TRUE(near(with_sink.lse.flat(0), std::log(3), statistic_bound(std::log(3))));
  EXPECT_TRUE(near(with_sink.row(0, 0).sink_mass, 1.0 / 3, statistic_bound(1.0 / 3)));
  EXPECT_TRUE(near(with_sink.row(0, 0).entropy, std::numbers::ln2, statistic_bound(std::numbers::ln2)));
  EXPECT_TRUE(near(with_sink.row(0, 0).entropy_sink, std::log(3), statistic_bound(std::log(3))));
}

// Group B1: unit normals at the default scale have logits of unit spread.
TEST_P(Cases, B1) {
  const Case c = Case::random(type(), {.Nq = 128, .Nk = 256, .D = 64, .Dv = 1}, 21);
  EXPECT_NEAR(pooled_deviation(run(c)), 1, 0.05);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(, Cases, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

}  // namespace levelhead::test
