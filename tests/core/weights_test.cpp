// What `weights` refuses. What it gives is among the cases of the kernels.
#include <gtest/gtest.h>

#include "core/call.hpp"

namespace levelhead::test {
namespace {

struct Asked {
  std::size_t states = 40, numbers = 10;
  std::vector<RowIndex> rows{{0, 0, 0}, {1, 3, 4}};
};

std::string sentence_of(const Asked& asked) {
  Call call;
  Context context(1);
  std::vector<double> out(asked.numbers);
  const Saved saved{std::span<const RowState>(call.state).first(asked.states)};
  return sentence([&] { weights(context, call.inputs, call.options, saved, asked.rows, out); });
}

TEST(WeightsErrors, NoneForAValidCall) { EXPECT_EQ(sentence_of({}), ""); }

TEST(WeightsErrors, StatesOfAnotherCall) {
  EXPECT_EQ(sentence_of({.states = 39}), "weights needs the saved state of 40 rows but got 39");
}

TEST(WeightsErrors, RoomForOtherRows) {
  EXPECT_EQ(sentence_of({.numbers = 11}), "weights of 2 rows over 5 keys need 10 numbers but out holds 11");
}

TEST(WeightsErrors, RowsThatAreNotThere) {
  for (const RowIndex& row : {RowIndex{-1, 0, 0}, {2, 0, 0}, {0, -1, 0}, {0, 4, 0}, {0, 0, -1}, {0, 0, 5}}) {
    const auto number = [](std::int64_t x) { return std::to_string(x); };
    EXPECT_EQ(sentence_of({.numbers = 5, .rows = {row}}),
              "row (b " + number(row.b) + ", h " + number(row.h) + ", i " + number(row.i) + ") is outside [2, 4, 5]");
  }
}

}  // namespace
}  // namespace levelhead::test
