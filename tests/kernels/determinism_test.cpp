// The bits that docs/edges.md promises: any number of threads, any place in a batch, padding or not, statistics or
// not, whatever other rows hold, however often.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "core/parallel.hpp"
#include "support/kit.hpp"

namespace levelhead::test {
namespace {

TEST(Pool, HandsOutEveryTaskOnceToSeveralThreads) {
  for (const int threads : {1, 2, 3, 7, 16}) {
    Pool pool(threads);
    std::mutex mutex;
    std::set<std::thread::id> ids;
    std::set<int> numbers;
    std::vector<int> runs(64, 0);
    // Each of the first tasks waits for the others to have begun, so N distinct threads must really be there.
    std::atomic<int> begun{0};
    pool.run(64, [&](std::int64_t task, int thread) {
      begun.fetch_add(1);
      while (begun.load() < threads) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      ++runs[static_cast<std::size_t>(task)];
      ids.insert(std::this_thread::get_id());
      numbers.insert(thread);
    });
    EXPECT_EQ(runs, std::vector<int>(64, 1));
    EXPECT_EQ(static_cast<int>(ids.size()), threads);
    EXPECT_EQ(static_cast<int>(numbers.size()), threads);
    EXPECT_LT(*numbers.rbegin(), threads);
  }
}

TEST(Pool, ManyShortRunsInARow) {
  Pool pool(4);
  std::int64_t total = 0;
  for (int run = 0; run < 3000; ++run) {
    std::atomic<std::int64_t> sum{0};
    pool.run(run % 9, [&](std::int64_t task, int) { sum += task + 1; });
    total += sum;
  }
  std::int64_t want = 0;
  for (int run = 0; run < 3000; ++run) want += (run % 9) * (run % 9 + 1) / 2;
  EXPECT_EQ(total, want);
}

// As many options as one problem can have; enough tasks that every thread gets some.
Case rich(DType type) {
  Case c = Case::random(type, {2, 6, 2, 150, 170, 19, 21}, 7);
  Random random(8);
  c.window = Window::sliding(60, 9, Align::bottom_right());
  c.softcap = 5;
  c.bias = Tensor(side_type(type), {6, 1, 170}).fill_normal(random);
  c.slopes = c.side({6}, {0.5, 0.25, 0.125, 0.0625, 0.03, 0.01});
  c.sinks = c.side({6}, {0, 1, -1, 2, -2, 0.5});
  Tensor mask(DType::boolean, {2, 1, 150, 170});
  for (std::int64_t x = 0; x < mask.elements(); ++x) mask.set_flat(x, random.chance(0.8) ? 1 : 0);
  c.mask = mask;
  c.q_lengths = Tensor(DType::i64, {2}, {150, 131});
  c.k_lengths = Tensor(DType::i64, {2}, {170, 149});
  return c;
}

class Determinism : public KernelTest {};

TEST_P(Determinism, ThreadsChangeNoBit) {
  for (Case c : {Case::random(type(), {3, 4, 2, 140, 140, 16, 24}, 1), rich(type())}) {
    const Forward one = run(c, 1);
    for (const int threads : {2, 3, 7, 16}) {
      const Forward many = run(c, threads);
      EXPECT_EQ(many.info.threads, threads);
      EXPECT_TRUE(same_bits(many, one)) << threads << " threads";
    }
  }
}

constexpr int repeats = sanitized ? 32 : 250;

// Smaller than rich, so that so many repeats are quick, but still of several tasks.
Case small(DType type) {
  Case c = Case::random(type, {2, 4, 2, 70, 90, 9, 10}, 17);
  Random random(18);
  c.window = Window::causal(Align::bottom_right());
  c.bias = Tensor(side_type(type), {70, 90}).fill_normal(random);
  c.sinks = c.side({4}, {0, 1, -1, 2});
  return c;
}

TEST_P(Determinism, RepeatsChangeNoBit) {
  const Case c = small(type());
  const Forward first = run(c, 2);
  for (int repeat = 0; repeat < repeats; ++repeat) ASSERT_TRUE(same_bits(run(c, 2), first)) << "repeat " << repeat;
}

TEST_P(Determinism, BackwardRepeatsAndThreadsChangeNoBit) {
  const Case c = small(type());
  const Forward saved = run(c);
  const Upstream upstream = Upstream::random(c, 19);
  const Backward first = backward(c, saved, upstream, kernel(), 1);
  for (int repeat = 0; repeat < (kernel() == "reference" ? repeats : 5); ++repeat) {
    const int threads = repeat % 16 + 1;
    const Backward again = backward(c, saved, upstream, kernel(), threads);
    for (const auto& [name, gradient] : first.gradients) {
      ASSERT_TRUE(same_bits(again.at(name), gradient))
          << name << ", repeat " << repeat << ", " << threads << " threads";
    }
  }
}

TEST_P(Determinism, StatisticsChangeNoBitOfOutputAndSum) {
  Case c = rich(type());
  const Forward all = run(c);
  for (const StatisticsLevel level : {StatisticsLevel::lse_max, StatisticsLevel::entropy}) {
    c.statistics.level = level;
    const Forward less = run(c);
    EXPECT_TRUE(same_bits(less.o, all.o));
    EXPECT_TRUE(same_bits(less.lse, all.lse));
    EXPECT_EQ(less.info.kernel, all.info.kernel);
  }
}

// Few threads get tasks of more rows: 4160 rows are cut one way for one thread, another for two.
TEST_P(Determinism, TheSizeOfATaskChangesNoBit) {
  const Case c = Case::random(type(), {1, 8, 2, 520, 130, 8, 8}, 6);
  EXPECT_TRUE(same_bits(run(c, 1), run(c, 2)));
}

TEST_P(Determinism, PlaceInTheBatchChangesNoBit) {
  const Shape one{1, 2, 1, 70, 130, 12, 9};
  Shape three = one;
  three.B = 3;
  const Case whole = Case::random(type(), three, 5);
  const Forward all = run(whole);
  for (std::int64_t b = 0; b < 3; ++b) {
    Case item(type(), one);
    const auto copy = [&](const Tensor& from, Tensor& to) {
      for (std::int64_t x = 0; x < to.elements(); ++x) to.set_flat(x, from.flat(b * to.elements() + x));
    };
    copy(whole.q, item.q), copy(whole.k, item.k), copy(whole.v, item.v);
    const Forward alone = run(item);
    for (std::int64_t h = 0; h < one.Hq; ++h) {
      for (std::int64_t i = 0; i < one.Nq; ++i) {
        ASSERT_TRUE(same_bits(alone.row_state(h, i), all.row_state(h, i, b)));
        for (std::int64_t c = 0; c < one.Dv; ++c) ASSERT_EQ(alone.o.get({0, h, i, c}), all.o.get({b, h, i, c}));
      }
    }
  }
}

// Other rows become huge, NaN or infinite: a row that is left alone keeps its bits.
TEST_P(Determinism, OtherRowsChangeNoBit) {
  const Case c = rich(type());
  const Forward want = run(c);
  for (const double poison : {1e4, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Case spoiled = c;
    for (std::int64_t i = 0; i < 150; i += 1 + i % 3) {
      for (std::int64_t x = 0; x < c.shape.D; ++x) spoiled.q.set({0, 1, i, x}, poison);
    }
    const Forward got = run(spoiled);
    for (std::int64_t i = 0; i < 150; ++i) {
      if (spoiled.q.get({0, 1, i, 0}) != c.q.get({0, 1, i, 0})) continue;
      ASSERT_TRUE(same_bits(got.row_state(1, i), want.row_state(1, i))) << "row " << i << ", poison " << poison;
      for (std::int64_t x = 0; x < c.shape.Dv; ++x) ASSERT_EQ(got.o.get({0, 1, i, x}), want.o.get({0, 1, i, x}));
    }
  }
}

// Beside an infinite value, a block is multiplied in another way once some row does not see all of it. The numbers are
// such that another order of summing them would show.
TEST_P(Determinism, AKeyHiddenFromAnotherRowChangesNoBit) {
  const double large = type() == DType::f16 ? 0x1p15 : 0x1p24;
  Case c = Case::random(type(), {.Nq = 5, .Nk = 128, .D = 4, .Dv = 3}, 29);
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t x = 0; x < 4; ++x) c.q.set({0, 0, i, x}, 0);
  }
  for (std::int64_t j = 0; j < 128; ++j) c.v.set({0, 0, j, 0}, j % 2 != 0 ? 1 : j % 4 == 0 ? large : -large);
  c.v.set({0, 0, 77, 2}, std::numeric_limits<double>::infinity());
  const Forward want = run(c);
  Case hidden = c;
  hidden.mask = Tensor(DType::boolean, {5, 128});
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 128; ++j) hidden.mask->set({i, j}, i == 0 && j == 3 ? 0 : 1);
  }
  const Forward got = run(hidden);
  for (std::int64_t i = 1; i < 5; ++i) {
    for (std::int64_t x = 0; x < 3; ++x) EXPECT_EQ(got.o.get({0, 0, i, x}), want.o.get({0, 0, i, x})) << "row " << i;
  }
}

// The queries from `first` on alone, each at its own position: other rows decide neither the block grid nor the tiles.
TEST_P(Determinism, ASliceOfTheQueriesKeepsItsBits) {
  const Shape whole{1, 4, 2, 130, 200, 11, 13};
  Case c = Case::random(type(), whole, 23);
  c.window = Window::sliding(70, 5, Align::at(60));
  const Forward all = run(c);
  for (const std::int64_t first : {1, 50, 97, 127, 129}) {
    Shape rest = whole;
    rest.Nq -= first;
    Case slice = c;
    slice.shape = rest;
    slice.q = Tensor(type(), {1, rest.Hq, rest.Nq, rest.D});
    slice.window = Window::sliding(70, 5, Align::at(60 + first));
    for (std::int64_t h = 0; h < rest.Hq; ++h) {
      for (std::int64_t i = 0; i < rest.Nq; ++i) {
        for (std::int64_t x = 0; x < rest.D; ++x) slice.q.set({0, h, i, x}, c.q.get({0, h, first + i, x}));
      }
    }
    const Forward got = run(slice);
    for (std::int64_t h = 0; h < rest.Hq; ++h) {
      for (std::int64_t i = 0; i < rest.Nq; ++i) {
        ASSERT_TRUE(same_bits(got.row_state(h, i), all.row_state(h, first + i))) << "from " << first << ", row " << i;
        for (std::int64_t x = 0; x < rest.Dv; ++x) {
          ASSERT_EQ(got.o.get({0, h, i, x}), all.o.get({0, h, first + i, x})) << "from " << first << ", row " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Determinism, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

TEST(Fork, AChildCanRunAContextOfItsParent) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "this sanitizer forbids threads in the child of a process that has threads";
#endif
  const Case c = Case::random(DType::f32, {1, 4, 4, 200, 200, 8, 8}, 3);
  Context context(3);
  Tensor o(DType::f32, {1, 4, 200, 8}), again = o;
  Outputs out;
  out.o = o.mutable_view();
  forward(context, c.inputs(), c.options(), out);  // the threads are running now
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    out.o = again.mutable_view();
    forward(context, c.inputs(), c.options(), out);
    _exit(same_bits(again, o) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace levelhead::test
