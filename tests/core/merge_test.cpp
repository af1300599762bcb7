// merge of key shards: every rule provoked. What it computes is tested in tests/kernels/ (shards, properties).
#include <gmock/gmock.h>

#include "core/call.hpp"

namespace levelhead::test {
namespace {

// Two parts of o [2, 3, 4, 5] with their states.
struct Shards {
  Tensor<float> a{{2, 3, 4, 5}}, b{{2, 3, 4, 5}}, o{{2, 3, 4, 5}}, lse{{2, 3, 4}};
  std::vector<RowState> state{24}, merged{24};
  Tensor<float> sinks{{3}};

  std::vector<Part> parts{{a.view(), state}, {b.view(), state}};
  Outputs outputs{.o = o.view(), .lse = lse.view(), .state = merged};

  std::string error() {
    return sentence([&] { merge(parts, sinks.view(), outputs); });
  }
};

TEST(MergeErrors, NoneForAValidCall) { EXPECT_EQ(Shards().error(), ""); }

TEST(MergeErrors, NoParts) {
  Shards s;
  s.parts.clear();
  EXPECT_EQ(s.error(), "merge needs at least one part");
}

TEST(MergeErrors, RankOfAPart) {
  Shards s;
  Tensor<float> flat({24, 5});
  s.parts[0].o = flat.view();
  EXPECT_EQ(s.error(), "o of part 0 has rank 2 but needs [B, Hq, Nq, Dv]");
}

TEST(MergeErrors, ShapesOfPartsDiffer) {
  Shards s;
  Tensor<float> other({2, 3, 4, 6});
  s.parts[1].o = other.view();
  EXPECT_THAT(s.error(), ::testing::AllOf(::testing::HasSubstr("o of part 1"), ::testing::HasSubstr("Dv"),
                                          ::testing::HasSubstr("6"), ::testing::HasSubstr("5")));
}

TEST(MergeErrors, APartOf16Bits) {
  Shards s;
  Tensor<bf16> rounded({2, 3, 4, 5});
  s.parts[1].o = rounded.view();
  EXPECT_EQ(s.error(), "o of part 1 [2, 3, 4, 5] is bf16 but parts to be merged must be f32 or f64");
}

TEST(MergeErrors, StatesOfAPart) {
  Shards s;
  s.parts[1].state = std::span(s.state).first(23);
  EXPECT_EQ(s.error(), "the state beside o of part 1 [2, 3, 4, 5] holds 23 rows but B * Hq * Nq = 24");
}

TEST(MergeErrors, Sinks) {
  Shards s;
  s.sinks = Tensor<float>({4});
  EXPECT_THAT(s.error(), ::testing::AllOf(::testing::HasSubstr("sinks [4]"), ::testing::HasSubstr("3")));
}

TEST(MergeErrors, TypeOfO) {
  Shards s;
  Tensor<std::int32_t> whole({2, 3, 4, 5});
  s.outputs.o = whole.view();
  EXPECT_EQ(s.error(), "o [2, 3, 4, 5] is i32 but must be a floating type");
}

TEST(MergeErrors, MergedStates) {
  Shards s;
  s.outputs.state = std::span(s.merged).first(7);
  EXPECT_EQ(s.error(), "state holds 7 rows but B * Hq * Nq = 24");
}

TEST(MergeErrors, OutputOverAPart) {
  Shards s;
  s.outputs.o = s.a.view();
  EXPECT_THAT(s.error(), ::testing::HasSubstr("overlaps the input o of a part"));
}

}  // namespace
}  // namespace levelhead::test
