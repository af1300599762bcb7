// Few rows over many keys: what a kernel does when it cuts the keys of a row into ranges and merges them. Every kernel
// runs these; the ones named -decode or -split have several ranges here.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "support/not_finite.hpp"
#include "support/oracle.hpp"
#include "support/random_case.hpp"

namespace levelhead::test {
namespace {

class FewRows : public KernelTest {
 protected:
  bool splits() const {
    return kernel().find("-decode") != std::string::npos || kernel().find("-split") != std::string::npos;
  }
};

// Three queries of four heads a group over keys of four ranges, with everything a problem can have.
Case rich(DType type) {
  Case c = Case::random(type, {2, 8, 2, 3, 1700, 19, 21}, 31);
  Random random(32);
  c.window = Window::sliding(1290, 1, Align::bottom_right());
  c.softcap = 8;
  c.bias = Tensor(side_type(type), {8, 1, 1700}).fill_normal(random);
  c.slopes = c.side({8}, {0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002});
  c.sinks = c.side({8}, {0, 1, -1, 2, -2, 0.5, 3, -3});
  Tensor mask(DType::boolean, {2, 1, 3, 1700});
  for (std::int64_t x = 0; x < mask.elements(); ++x) mask.set_flat(x, random.chance(0.8) ? 1 : 0);
  c.mask = mask;
  c.q_lengths = Tensor(DType::i64, {2}, {3, 2});
  c.k_lengths = Tensor(DType::i64, {2}, {1700, 1141});
  return c;
}

TEST_P(FewRows, WithEveryOption) {
  const Case c = rich(type());
  const Forward got = run(c, 2);
  const Oracle oracle = materialise(c);
  EXPECT_TRUE(near_o_by_arithmetic(got, oracle, c));
  EXPECT_TRUE(near_statistics(got, oracle, c));
}

TEST_P(FewRows, RandomProblemsOverSeveralRanges) {
  for (int seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    Random random(static_cast<std::uint64_t>(100 + seed));
    Limits limits;
    limits.queries = 5, limits.keys = 2100, limits.dim = 40;
    const Parameters parameters = random_parameters(random, limits);
    std::ostringstream description;
    description << parameters;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + description.str());
    Case c = make_case(type(), parameters);
    if (seed % 3 == 1) c.k = c.k.relaid({0, 2, 1, 3}), c.v = c.v.relaid({0, 2, 1, 3});  // token-major
    if (seed % 3 == 2) c.v = c.v.relaid({0, 1, 3, 2});
    const Forward got = run(c, seed % 3 + 1);
    const Oracle oracle = materialise(c);
    EXPECT_TRUE(near_o_by_arithmetic(got, oracle, c));
    EXPECT_TRUE(near_statistics(got, oracle, c));
  }
}

// Head groups of 1 to 9 rows, and sizes at the edges of blocks, ranges and vectors.
TEST_P(FewRows, GroupsAndEdges) {
  for (const std::int64_t group : {1, 2, 3, 4, 5, 8, 9}) {
    for (const std::int64_t keys : {63, 64, 65, 511, 512, 513, 1025}) {
      const std::int64_t D = keys % 2 == 0 ? 64 : 40;
      const Case c =
          Case::random(type(), {1, group, 1, 1, keys, D, D + group - 1}, 40 + static_cast<std::uint64_t>(keys));
      SCOPED_TRACE(std::to_string(group) + " rows, " + std::to_string(keys) + " keys");
      ASSERT_TRUE(near_o_by_arithmetic(run(c), materialise(c), c));
    }
  }
}

TEST_P(FewRows, ThreadsAndRepeatsChangeNoBit) {
  const Case c = rich(type()), plain = Case::random(type(), {1, 4, 1, 1, 3000, 32, 32}, 33);
  for (const Case& x : {c, plain}) {
    const Forward one = run(x, 1);
    for (const int threads : {2, 3, 7}) EXPECT_TRUE(same_bits(run(x, threads), one)) << threads << " threads";
  }
  if (!splits()) return;
  const Forward first = run(plain, 2);
  for (int repeat = 0; repeat < (sanitized ? 32 : 250); ++repeat)
    ASSERT_TRUE(same_bits(run(plain, 3), first)) << "repeat " << repeat;
}

TEST_P(FewRows, StatisticsChangeNoBitOfOutput) {
  Case c = rich(type());
  const Forward all = run(c);
  for (const StatisticsLevel level : {StatisticsLevel::lse_max, StatisticsLevel::entropy}) {
    c.statistics.level = level;
    EXPECT_TRUE(same_bits(run(c).o, all.o));
  }
}

// A row's ranges are its own: beside fifteen other queries it has the bits that it has alone.
TEST_P(FewRows, ARowAloneHasTheBitsItHasBesideOthers) {
  const Shape many{1, 4, 2, 16, 1500, 24, 24};
  Case c = Case::random(type(), many, 34);
  c.window = Window::sliding(700, 0, Align::at(1484));
  const Forward all = run(c);
  for (const std::int64_t i : {0, 7, 15}) {
    Case one = c;
    one.shape.Nq = 1;
    one.q = Tensor(type(), {1, 4, 1, 24});
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t x = 0; x < 24; ++x) one.q.set({0, h, 0, x}, c.q.get({0, h, i, x}));
    one.window = Window::sliding(700, 0, Align::at(1484 + i));
    const Forward alone = run(one);
    for (std::int64_t h = 0; h < 4; ++h) {
      EXPECT_TRUE(same_bits(alone.row_state(h, 0), all.row_state(h, i))) << "row " << i;
      for (std::int64_t x = 0; x < 24; ++x) ASSERT_EQ(alone.o.get({0, h, 0, x}), all.o.get({0, h, i, x}));
    }
  }
}

// Ranges outside the window are as if they were not there, NaN or not; and a sink joins once, not once a range.
TEST_P(FewRows, OldKeysAndSinks) {
  Case c = Case::random(type(), {1, 2, 1, 1, 2000, 16, 16}, 35);
  c.window = Window::sliding(99, 0, Align::bottom_right());
  c.sinks = c.side({2}, {1, 4});
  for (std::int64_t j = 0; j < 1900; ++j) {
    for (std::int64_t x = 0; x < 16; ++x) c.k.set({0, 0, j, x}, nan), c.v.set({0, 0, j, x}, nan);
  }
  Case last = c;
  last.shape.Nk = 100;
  last.k = c.k.slice(2, 1900, 2000), last.v = c.v.slice(2, 1900, 2000);
  const Forward got = run(c, 2), want = run(last);
  for (std::int64_t h = 0; h < 2; ++h) {
    EXPECT_EQ(got.row_state(h, 0).count, 100);
    EXPECT_TRUE(near(got.row(h, 0).sink_mass, want.row(h, 0).sink_mass, 1e-5));
    for (std::int64_t x = 0; x < 16; ++x)
      EXPECT_TRUE(near(got.o.get({0, h, 0, x}), want.o.get({0, h, 0, x}), o_tolerance(2)));
  }
}

// NaN and infinities of a range go through the merge as through one pass.
TEST_P(FewRows, NotFiniteNumbersInOneRange) {
  Case c = Case::random(type(), {1, 1, 1, 1, 1600, 8, 8}, 36);
  c.v.set({0, 0, 700, 3}, nan);
  const Forward value = run(c, 2);
  for (std::int64_t x = 0; x < 8; ++x) EXPECT_EQ(std::isnan(value.o.get({0, 0, 0, x})), x == 3);
  EXPECT_TRUE(std::isfinite(value.lse.flat(0)));
  c.k.set({0, 0, 1400, 0}, nan);
  const Forward key = run(c, 2);
  for (std::int64_t x = 0; x < 8; ++x) EXPECT_TRUE(std::isnan(key.o.get({0, 0, 0, x})));
  EXPECT_TRUE(std::isnan(key.row_state(0, 0).max));

  Case low = Case::random(type(), {1, 1, 1, 1, 1600, 1, 2}, 37);
  low.scale = Constant{1};
  low.q.set_flat(0, 1);
  for (std::int64_t j = 0; j < 512; ++j) low.k.set_flat(j, -inf);  // a whole range without weight
  const Forward out = run(low, 2);
  EXPECT_EQ(out.row_state(0, 0).count, 1600);
  EXPECT_TRUE(near_o_by_arithmetic(out, materialise(low), low));
  for (std::int64_t j = 512; j < 1600; ++j) low.k.set_flat(j, -inf);
  EXPECT_TRUE(std::isnan(run(low, 2).o.flat(0)));
}

// The page behind the last key of a length can't be read: touching it ends the test.
TEST_P(FewRows, NothingBehindALengthIsRead) {
  const std::int64_t keys = 577, capacity = 4096, D = 20;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t width = size_of(type()), bytes = static_cast<std::size_t>(keys * D) * width;
  const std::size_t room = (bytes + page - 1) / page * page;
  Case c = Case::random(type(), {1, 3, 1, 2, keys, D, D}, 38);
  const Forward want = run(c);
  std::vector<TensorView> views;
  std::vector<void*> maps;
  for (const Tensor* tensor : {&c.k, &c.v}) {
    void* const map = mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(map, MAP_FAILED);
    maps.push_back(map);
    ASSERT_EQ(mprotect(static_cast<std::byte*>(map) + room, page, PROT_NONE), 0);
    std::byte* const data = static_cast<std::byte*>(map) + room - bytes;
    std::memcpy(data, tensor->view().data, bytes);
    views.push_back(TensorView(data, type(), {1, 1, capacity, D}));
  }
  Inputs inputs = c.inputs();
  inputs.k = views[0], inputs.v = views[1];
  const std::int64_t length = keys;
  inputs.k_lengths = view(&length, {1});
  Context context(2);
  Tensor o(type(), {1, 3, 2, D});
  Outputs outputs;
  outputs.o = o.mutable_view();
  forward(context, inputs, c.options(kernel()), outputs);
  EXPECT_TRUE(same_bits(o, want.o));
  for (void* const map : maps) munmap(map, room + page);
}

// Any number of ranges gives the whole within the stated error; a kernel that has none says so.
TEST_P(FewRows, Splits) {
  Case c = rich(type());
  c.splits = 1;
  if (!splits()) {
    EXPECT_THROW(run(c), Error);
    return;
  }
  const Oracle oracle = materialise(c);
  const Forward one = run(c);
  bool differs = false;
  for (const std::int64_t n : {1, 2, 3, 7, 26, 27, 1000000}) {
    c.splits = n;
    const Forward got = run(c, 2);
    EXPECT_TRUE(near_o_by_arithmetic(got, oracle, c)) << n;
    EXPECT_TRUE(near_statistics(got, oracle, c)) << n;
    differs = differs || !same_bits(got, one);
  }
  EXPECT_TRUE(differs) << "no number of ranges changed a bit: were there any?";
}

INSTANTIATE_TEST_SUITE_P(All, FewRows, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

}  // namespace
}  // namespace levelhead::test
