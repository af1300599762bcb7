// Random numbers that are the same on every machine: no call to libm, whose last bits differ.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace levelhead::lab {

/// One step of SplitMix64 (Steele, Lea, Flood 2014): turns counters and names of streams into seeds.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// ln x, x > 0 and not subnormal, to a few ulp, from + - * / alone.
inline double natural_log(double x) noexcept {
  // x = m 2^e with sqrt(1/2) <= m < sqrt(2); ln m = 2 artanh(t), and t^2 <= 0.0295 lets 12 terms do.
  constexpr std::uint64_t sqrt_half = 0x3fe6a09e667f3bcdU;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::int64_t e = static_cast<std::int64_t>(bits - sqrt_half) >> 52;
  const auto m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(e) << 52));
  const double t = (m - 1) / (m + 1), u = t * t;
  double series = 1.0 / 23;
  for (int odd = 21; odd >= 1; odd -= 2) series = series * u + 1.0 / odd;
  return static_cast<double>(e) * 0.693147180559945309417 + 2 * t * series;
}

/// A stream of xoshiro256** (Blackman, Vigna 2018). Streams of other seeds or paths are independent of it, so that
/// every task of an experiment draws the same numbers whichever thread runs it.
class Random {
 public:
  /// Not all zero.
  explicit Random(const std::array<std::uint64_t, 4>& state) noexcept : state_(state) {}
  Random(std::uint64_t seed, std::initializer_list<std::uint64_t> path) noexcept {
    std::uint64_t key = mixed(seed);
    for (const std::uint64_t step : path) key = mixed(key ^ step);
    for (std::uint64_t& word : state_) word = key = mixed(key);
  }

  std::uint64_t bits() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9, shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// In [0, 1), a multiple of 2^-53.
  double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// Of mean 0 and variance 1, by Marsaglia's polar method.
  double normal() noexcept {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double stretch = std::sqrt(-2 * natural_log(square) / square);  // sqrt is exact by IEEE 754
    spare_ = y * stretch;
    has_spare_ = true;
    return x * stretch;
  }

 private:
  std::array<std::uint64_t, 4> state_{};
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace levelhead::lab
