// I5: keys cut into shards through the public calls.
#include <cmath>

#include "kernels/cases.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

// Frobenius norm of o - truth over that of truth.
// A shard of the keys as its own call. o in f32 beside 16-bit inputs keeps the digits that merging needs.
struct Shard {
  Forward run;
  Part part() const {
    Part part;
    part.o = run.o.view();
    part.state = run.state;
    return part;
  }
};

// o of one row of logits and values, each shard its own call.
double merged_o(DType type, const std::string& kernel, const std::vector<std::vector<double>>& logits,
                const std::vector<std::vector<double>>& values) {
  std::vector<Shard> shards;
  for (std::size_t n = 0; n < logits.size(); ++n) {
    Case c = Case::logits(type, logits[n]);
    c.v = Tensor(type, c.v.sizes(), values[n]);
    shards.push_back({forward(c, kernel, 1, side_type(type))});
  }
  std::vector<Part> parts;
  for (const Shard& shard : shards) parts.push_back(shard.part());
  Tensor o = Tensor(DType::f64, {1, 1, 1, 1}).fill_garbage();
  Outputs outputs;
  outputs.o = o.mutable_view();
  merge(parts, {}, outputs);
  return o.flat(0);
}

// A shard of nothing but -inf has no say, though its own o is NaN; a NaN among the values stays NaN even where its
// weight underflows.
TEST_P(Cases, I4Shards) {
  const auto o = [&](const std::vector<std::vector<double>>& logits, const std::vector<std::vector<double>>& values) {
    return merged_o(type(), kernel(), logits, values);
  };
  EXPECT_EQ(o({{-inf, -inf}, {3}}, {{1, 2}, {7}}), 7);
  EXPECT_EQ(o({{3}, {-inf}}, {{7}, {5}}), 7);
  EXPECT_EQ(o({{200}, {-200}}, {{1}, {2}}), 1);
  EXPECT_EQ(o({{-200}, {200}}, {{1}, {2}}), 2);
  EXPECT_TRUE(std::isnan(o({{-inf}, {-inf, -inf}}, {{1}, {2, 3}})));
  EXPECT_TRUE(std::isnan(o({{0}, {1000}}, {{nan}, {1}})));
  EXPECT_TRUE(std::isnan(o({{nan}, {1000}}, {{1}, {1}})));
}

// Keys cut into 2, 4, 8, 16 through the public calls: the error stays where it was.
TEST_P(Cases, I5) {
  const Case whole = Case::random(type(), {.Hq = 2, .Nq = 8, .Nk = 256, .D = 32, .Dv = 16}, 3);
  const Oracle oracle = materialise(whole);
  const DType wide = side_type(type());
  const double unsplit = relative_error(forward(whole, kernel(), 1, wide).o, oracle.o);
  for (const std::int64_t shards : {2, 4, 8, 16}) {
    std::vector<Shard> pieces;
    for (std::int64_t n = 0; n < shards; ++n) {
      const std::int64_t begin = n * 256 / shards, end = (n + 1) * 256 / shards;
      Case c = whole;
      c.shape.Nk = end - begin;
      c.k = whole.k.slice(2, begin, end);
      c.v = whole.v.slice(2, begin, end);
      pieces.push_back({forward(c, kernel(), 1, wide)});
      for (RowState& s : pieces.back().run.state) s.first_key += begin;
    }
    std::vector<Part> parts;
    for (const Shard& piece : pieces) parts.push_back(piece.part());
    Forward merged = forward(whole, kernel(), 1, wide);
    merged.o.fill_garbage();
    merged.lse.fill_garbage();
    Outputs outputs;
    outputs.o = merged.o.mutable_view();
    outputs.lse = merged.lse.mutable_view();
    outputs.state = merged.state;
    merge(parts, {}, outputs);
    EXPECT_TRUE(near_statistics(merged, oracle, whole)) << shards;
    // each merge is one rescaling: a few roundings of f32 (f64) on top, whatever the number of shards
    EXPECT_LE(relative_error(merged.o, oracle.o), unsplit + 4 * unit_roundoff(wide)) << shards;
  }
}

}  // namespace
}  // namespace levelhead::test
