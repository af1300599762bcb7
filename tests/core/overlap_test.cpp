// Sound on random views (never "disjoint" where bytes are shared), and complete on the layouts people use.
#include "core/overlap.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace levelhead::test {
namespace {

alignas(8) std::byte buffer[1 << 16];

TensorView f32(std::int64_t first, std::initializer_list<std::int64_t> sizes,
               std::initializer_list<std::int64_t> strides) {
  return {buffer + 4 * first, DType::f32, sizes, strides};
}

// Every element's first byte, by walking all indices.
std::vector<std::int64_t> elements(const TensorView& view) {
  std::vector<std::int64_t> result{static_cast<const std::byte*>(view.data) - buffer};
  for (int axis = 0; axis < view.rank; ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t at : result)
      for (std::int64_t i = 0; i < view.sizes[axis]; ++i)
        next.push_back(at + i * view.strides[axis] * static_cast<std::int64_t>(size_of(view.dtype)));
    result = next;
  }
  return result;
}

std::set<std::int64_t> bytes(const TensorView& view) {
  std::set<std::int64_t> result;
  for (const std::int64_t at : elements(view))
    for (std::size_t byte = 0; byte < size_of(view.dtype); ++byte) result.insert(at + static_cast<std::int64_t>(byte));
  return result;
}

TEST(Disjoint, ByExtent) {
  EXPECT_TRUE(disjoint(f32(0, {4}, {1}), f32(4, {4}, {1})));
  EXPECT_FALSE(disjoint(f32(0, {5}, {1}), f32(4, {4}, {1})));
  EXPECT_TRUE(disjoint(f32(0, {0, 7}, {1, 1}), f32(0, {4}, {1})));  // nothing in it
  EXPECT_FALSE(disjoint(f32(7, {4}, {-1}), f32(4, {1}, {1})));
  EXPECT_TRUE(disjoint(f32(7, {3}, {-1}), f32(4, {1}, {1})));
  EXPECT_FALSE(disjoint(f32(3, {4, 4}, {0, 0}), f32(0, {4}, {1})));
}

TEST(Disjoint, Interleaved) {
  EXPECT_TRUE(disjoint(f32(0, {8}, {2}), f32(1, {8}, {2})));  // even and odd elements
  EXPECT_FALSE(disjoint(f32(0, {8}, {2}), f32(6, {8}, {2})));
  EXPECT_TRUE(disjoint(f32(0, {8}, {2}), f32(101, {8}, {-2})));
  EXPECT_TRUE(disjoint(f32(0, {3, 4}, {10, 1}), f32(4, {3, 6}, {10, 1})));
  EXPECT_FALSE(disjoint(f32(0, {3, 4}, {10, 1}), f32(4, {3, 7}, {10, 1})));
  // Two bf16 halves of one float column: other types, same stride in bytes.
  const TensorView low(buffer, DType::bf16, {8}, {2}), high(buffer + 2, DType::bf16, {8}, {2});
  EXPECT_TRUE(disjoint(low, high));
  EXPECT_FALSE(disjoint(low, f32(0, {8}, {1})));
}

// [B, N, 3, H, D], [B, N, H, 3, D], [B, 3, H, N, D], [3, B, H, N, D] and grouped heads, each seen as [B, H, N, D].
TEST(Disjoint, FusedLayouts) {
  const std::int64_t B = 2, N = 5, H = 3, D = 4;
  const auto expect_apart = [](std::int64_t step, std::initializer_list<std::int64_t> sizes,
                               std::initializer_list<std::int64_t> strides) {
    const TensorView q = f32(0, sizes, strides), k = f32(step, sizes, strides), v = f32(2 * step, sizes, strides);
    EXPECT_TRUE(disjoint(q, k) && disjoint(k, v) && disjoint(q, v) && disjoint(v, q)) << step;
    EXPECT_FALSE(disjoint(q, q));
    EXPECT_FALSE(disjoint(q, f32(step - 1, sizes, strides))) << step;
  };
  expect_apart(H * D, {B, H, N, D}, {N * 3 * H * D, D, 3 * H * D, 1});
  expect_apart(D, {B, H, N, D}, {N * 3 * H * D, 3 * D, 3 * H * D, 1});
  expect_apart(H * N * D, {B, H, N, D}, {3 * H * N * D, N * D, D, 1});
  expect_apart(B * H * N * D, {B, H, N, D}, {H * N * D, N * D, D, 1});
  expect_apart(D, {B, H, N, D}, {H * N * 3 * D, N * 3 * D, 3 * D, 1});  // [B, H, N, 3, D]
  const std::int64_t width = (6 + 2 * 2) * D;
  EXPECT_TRUE(
      disjoint(f32(0, {B, 6, N, D}, {N * width, D, width, 1}), f32(6 * D, {B, 2, N, D}, {N * width, D, width, 1})));
  EXPECT_TRUE(disjoint(f32(0, {1, 6, N, D}, {1, D, width, 1}), f32(6 * D, {B, 2, N, D}, {N * width, D, width, 1})));
}

// Caches: a batch with room for more tokens than are used, written beside what is read.
TEST(Disjoint, PartsOfACache) {
  const std::int64_t B = 300, room = 16, D = 4;
  const TensorView old_tokens = f32(0, {B, 9, D}, {room * D / 4, D / 4, 1}), whole = f32(0, {B * room}, {1});
  EXPECT_FALSE(disjoint(old_tokens, whole));
  EXPECT_TRUE(disjoint(f32(0, {B, 9}, {room, 1}), f32(9, {B, 7}, {room, 1})));
  EXPECT_FALSE(disjoint(f32(0, {B, 9}, {room, 1}), f32(9, {B, 8}, {room, 1})));
}

TEST(Disjoint, NeverWhereBytesAreShared) {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const DType types[] = {DType::f64, DType::f32, DType::bf16, DType::u8};
  const auto any_view = [&] {
    const DType type = types[draw(0, 3)];
    TensorView view;
    view.data = buffer + 4096 + draw(0, 40) * 8;
    view.dtype = type;
    view.rank = static_cast<int>(draw(0, 4));
    for (int axis = 0; axis < view.rank; ++axis) {
      view.sizes[axis] = draw(0, 9) == 0 ? draw(0, 1) : draw(2, 4);
      view.strides[axis] = draw(0, 3) == 0 ? draw(-20, 20) : std::int64_t{1} << draw(0, 5);
    }
    return view;
  };
  int apart = 0, proven = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const TensorView a = any_view(), b = any_view();
    const std::set<std::int64_t> x = bytes(a), y = bytes(b);
    bool shared = false;
    for (const std::int64_t byte : x) shared = shared || y.count(byte) > 0;
    if (shared) {
      ASSERT_FALSE(disjoint(a, b)) << "trial " << trial;
    }
    apart += !shared, proven += disjoint(a, b);
    ASSERT_EQ(disjoint(a, b), disjoint(b, a)) << "trial " << trial;
  }
  EXPECT_EQ(proven, apart);  // nothing so small exhausts the walk
}

TEST(SelfDisjoint, NeverWhereAnElementRepeats) {
  std::mt19937 random(8);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int proven = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    TensorView view;
    view.data = buffer;
    view.rank = static_cast<int>(draw(0, 4));
    for (int axis = 0; axis < view.rank; ++axis) {
      view.sizes[axis] = draw(0, 4);
      view.strides[axis] = draw(0, 30);
    }
    const std::vector<std::int64_t> all = elements(view);
    const bool repeats = std::set<std::int64_t>(all.begin(), all.end()).size() != all.size();
    if (!all.empty() && repeats) {
      ASSERT_FALSE(self_disjoint(view)) << "trial " << trial;
    }
    proven += self_disjoint(view);
  }
  EXPECT_GT(proven, 1000);
}

TEST(SelfDisjoint, OrdinaryViews) {
  EXPECT_TRUE(self_disjoint(f32(0, {2, 3, 4, 5}, {60, 20, 5, 1})));
  EXPECT_TRUE(self_disjoint(f32(0, {2, 3, 4, 5}, {60, 5, 15, 1})));  // [B, N, H, D] seen as [B, H, N, D]
  EXPECT_TRUE(self_disjoint(f32(0, {1, 3}, {0, 1})));                // an axis of one element needs no stride
  EXPECT_TRUE(self_disjoint(f32(0, {}, {})));
  EXPECT_FALSE(self_disjoint(f32(0, {2, 3}, {2, 1})));
  EXPECT_FALSE(self_disjoint(f32(0, {2, 3}, {0, 1})));
}

}  // namespace
}  // namespace levelhead::test
