#include "levelhead/tensor.hpp"

#include <algorithm>
#include <cmath>

namespace levelhead {
namespace {

// Rounds a finite double to `digits` significand bits (subnormals of the small format fewer), to nearest, ties to
// even. Exact in double: adding and subtracting a power of two whose unit in the last place is the wanted one.
double round_to(double x, int digits, int min_exponent) {
  const int exponent = std::max(std::ilogb(x), min_exponent);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  return std::nearbyint(x / unit) * unit;
}

}  // namespace

float to_f32(f16 x) noexcept {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 31U;
  const std::uint32_t fraction = x.bits & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

bf16 to_bf16(double x) noexcept {
  if (std::isfinite(x) && x != 0) x = round_to(x, 8, -126);
  const float f = static_cast<float>(x);  // exact, or beyond f32's range and so infinite
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  return {static_cast<std::uint16_t>(std::isnan(f) ? (bits >> 16) | 0x40U : bits >> 16)};
}

f16 to_f16(double x) noexcept {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return {static_cast<std::uint16_t>(sign | 0x7E00U)};
  const double magnitude = std::isfinite(x) && x != 0 ? round_to(std::abs(x), 11, -14) : std::abs(x);
  if (magnitude > 65504) return {static_cast<std::uint16_t>(sign | 0x7C00U)};
  if (magnitude < 0x1p-14) return {static_cast<std::uint16_t>(sign | static_cast<unsigned>(magnitude * 0x1p24))};
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<unsigned>(std::ldexp(magnitude, 10 - exponent)) & 1023U;
  return {static_cast<std::uint16_t>(sign | static_cast<unsigned>(exponent + 15) << 10 | fraction)};
}

}  // namespace levelhead
