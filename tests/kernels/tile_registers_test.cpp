// The plain twin of AMX's tile registers against plain loops: what the engine is tested with elsewhere must itself be
// right. Small whole numbers, so that every order of summing gives the same.
#define LEVELHEAD_AMX 0
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "kernels/engines/tile_registers-inl.h"
#include "levelhead/tensor.hpp"

namespace levelhead::HWY_NAMESPACE {
namespace {

constexpr std::size_t rows = register_rows, columns = register_words, depth = 2 * register_words;

// Row by row with a gap between rows, as tiles lie in larger matrices.
struct Numbers {
  std::size_t stride;
  std::vector<std::uint16_t> bits;

  Numbers(std::size_t gap, int seed) : stride(depth + gap), bits(rows * stride, to_bf16(99.0).bits) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < depth; ++c)
        bits[r * stride + c] = to_bf16(static_cast<double>((seed + 7 * static_cast<int>(r * c + c)) % 11 - 5)).bits;
    }
  }
  float at(std::size_t r, std::size_t c) const { return to_f32(bf16{bits[r * stride + c]}); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(2 * stride); }
};

// Pairs of B stand below each other: row k holds components 2 k and 2 k + 1 of every column.
float product(const Numbers& a, const Numbers& b, std::size_t r, std::size_t c) {
  float sum = 0;
  for (std::size_t k = 0; k < depth; ++k) sum += a.at(r, k) * b.at(k / 2, 2 * c + k % 2);
  return sum;
}

TEST(TileRegisters, AProductIsAddedToWhatIsThere) {
  const TileSession session;
  const Numbers a(5, 3), b(0, 4);
  constexpr std::size_t stride = 20;
  std::array<float, rows * stride> sums;
  sums.fill(-1);
  Tile<2>::clear();
  Tile<5>::load(a.bits.data(), a.bytes());
  Tile<7>::stream(b.bits.data(), b.bytes());
  for (int times = 1; times <= 2; ++times) {
    Tile<2>::add_product<5, 7>();
    Tile<2>::store(sums.data(), 4 * stride);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < stride; ++c) {
        const float want = c < columns ? static_cast<float>(times) * product(a, b, r, c) : -1;
        ASSERT_EQ(sums[r * stride + c], want) << "row " << r << ", column " << c << ", " << times << " times";
      }
    }
  }
}

TEST(TileRegisters, AStrideOfZeroRepeatsARow) {
  const TileSession session;
  const Numbers a(0, 1), b(3, 2);
  std::array<float, rows * columns> sums;
  Tile<0>::clear();
  Tile<4>::load(a.bits.data() + 3 * a.stride, 0);
  Tile<6>::load(b.bits.data(), b.bytes());
  Tile<0>::add_product<4, 6>();
  Tile<0>::store(sums.data(), 4 * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) ASSERT_EQ(sums[r * columns + c], product(a, b, 3, c));
  }
}

// First halves in one chain, second halves in another: the order decides what is lost of 1 beside 2^24.
TEST(TileRegisters, TheOrderOfSumming) {
  const TileSession session;
  std::array<std::uint16_t, rows * depth> a{}, b{};
  const auto bits = [](double x) { return to_bf16(x).bits; };
  const std::array<double, 4> row{0x1p24, 1, -0x1p24, 1};  // pairs (2^24, 1), (-2^24, 1)
  for (std::size_t k = 0; k < row.size(); ++k) {
    a[k] = bits(row[k]);
    b[k / 2 * depth + k % 2] = bits(1);
  }
  std::array<float, rows * columns> sums;
  Tile<1>::clear();
  Tile<4>::load(a.data(), 2 * depth);
  Tile<6>::load(b.data(), 2 * depth);
  Tile<1>::add_product<4, 6>();
  Tile<1>::store(sums.data(), 4 * columns);
  EXPECT_EQ(sums[0], 2);
}

TEST(TileRegisters, EveryThreadHasItsOwn) {
  const TileSession session;
  const Numbers mine(0, 5), theirs(0, 6);
  std::array<float, rows * columns> back;
  Tile<3>::load(mine.bits.data(), mine.bytes());
  std::thread([&] {
    const TileSession other;
    Tile<3>::load(theirs.bits.data(), theirs.bytes());
  }).join();
  Tile<3>::store(back.data(), 4 * columns);
  EXPECT_EQ(__builtin_memcmp(back.data(), mine.bits.data(), sizeof(back)), 0);
}

}  // namespace
}  // namespace levelhead::HWY_NAMESPACE
