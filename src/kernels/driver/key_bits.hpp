// Which keys of a block a row sees, one bit each. Plain code, no vectors.
#pragma once

#include <bit>
#include <cstdint>

namespace levelhead {
namespace {

/// Keys of one block; the grid starts at each segment's first key, so a row's blocks never depend on other rows.
/// 128 of them share one visit of o, which halves its loads and stores against 64.
inline constexpr std::int64_t block_keys = 128;

/// Bit j stands for the block's key j.
struct KeyBits {
  static constexpr int halves = 2, half_bits = 64;
  static_assert(halves * half_bits == block_keys);

  std::uint64_t half[halves] = {};

  static constexpr KeyBits every() { return {{~std::uint64_t{0}, ~std::uint64_t{0}}}; }

  /// Keys [begin, end) relative to the block's first key, clipped to the block.
  static constexpr KeyBits range(std::int64_t begin, std::int64_t end) {
    return {{range_of_half(begin, end), range_of_half(begin - half_bits, end - half_bits)}};
  }

  constexpr bool none() const { return (half[0] | half[1]) == 0; }
  constexpr bool all() const { return (half[0] & half[1]) == ~std::uint64_t{0}; }
  constexpr int count() const { return std::popcount(half[0]) + std::popcount(half[1]); }

  /// Of bits that are not none: the first one set, and one behind the last.
  constexpr int first() const {
    return half[0] != 0 ? std::countr_zero(half[0]) : half_bits + std::countr_zero(half[1]);
  }
  constexpr int end() const {
    return half[1] != 0 ? 2 * half_bits - std::countl_zero(half[1]) : half_bits - std::countl_zero(half[0]);
  }

  /// The `count` <= 64 bits from `offset` on, in the low bits. They lie in one half.
  constexpr std::uint64_t part(int offset, int count) const {
    return half[offset / half_bits] >> (offset % half_bits) & (~std::uint64_t{0} >> (half_bits - count));
  }

  /// Whether all of [begin, end) are set.
  constexpr bool covers(int begin, int end) const {
    const KeyBits those = range(begin, end);
    return (those.half[0] & ~half[0]) == 0 && (those.half[1] & ~half[1]) == 0;
  }

  /// How many are set among the first `offset`.
  constexpr int count_before(int offset) const {
    const KeyBits before = range(0, offset);
    return std::popcount(half[0] & before.half[0]) + std::popcount(half[1] & before.half[1]);
  }

  constexpr void add(const KeyBits& more) { half[0] |= more.half[0], half[1] |= more.half[1]; }
  constexpr void keep(const KeyBits& those) { half[0] &= those.half[0], half[1] &= those.half[1]; }

 private:
  static constexpr std::uint64_t range_of_half(std::int64_t begin, std::int64_t end) {
    if (begin < 0) begin = 0;
    if (end > half_bits) end = half_bits;
    if (end <= begin) return 0;
    return (~std::uint64_t{0} >> (half_bits - (end - begin))) << begin;
  }
};

}  // namespace
}  // namespace levelhead
