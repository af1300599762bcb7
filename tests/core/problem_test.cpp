// make_problem: what it accepts and how it resolves it, and a sentence for each thing it refuses.
#include "core/problem.hpp"

#include <gmock/gmock.h>

#include "core/call.hpp"

namespace levelhead::testing {
namespace {

TEST(Problem, ResolvesSizesAndViews) {
  const Call call;
  const Problem p = call.problem();
  EXPECT_EQ(p.B, 2);
  EXPECT_EQ(p.group(), 2);
  EXPECT_EQ(p.segments.size(), 2U);
  EXPECT_EQ(sentence([&] { call.resolved(); }), "");
}

}  // namespace
}  // namespace levelhead::testing
