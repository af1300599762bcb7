// Vector helpers of the driver. Included once per target, inside its namespace; no include guard of the usual kind.
#if defined(LEVELHEAD_DRIVER_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_VECTOR_INL_H_
#undef LEVELHEAD_DRIVER_VECTOR_INL_H_
#else
#define LEVELHEAD_DRIVER_VECTOR_INL_H_
#endif

#include <hwy/highway.h>

#include "core/problem.hpp"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
using Mask = hn::Mask<Floats>;
inline constexpr int lanes = static_cast<int>(hn::MaxLanes(Floats()));

HWY_INLINE Vec set(float x) { return hn::Set(Floats(), x); }
HWY_INLINE Vec zero() { return hn::Zero(Floats()); }
HWY_INLINE Vec load(const float* p) { return hn::LoadU(Floats(), p); }
HWY_INLINE void store(Vec x, float* p) { hn::StoreU(x, Floats(), p); }

/// Sum of the lanes in double, in lane order: the same bits whatever the compiler does.
HWY_INLINE double sum_lanes(const float* p) {
  double total = 0;
  for (int lane = 0; lane < lanes; ++lane) total += static_cast<double>(p[lane]);
  return total;
}

/// 2^z for z < 127: exactly 1 at 0, 0 below 2^-125, NaN for NaN, by a polynomial on [-1/2, 1/2] that is off by 2e-8 at
/// most.
HWY_INLINE Vec exp2_accurate(Vec z) {
  // The magic number's unit is 1, so adding it rounds to an integer; the 127 in it leaves a ready exponent in the low
  // bits. The power of two is multiplied, not added to the bits: an integer addition would turn some NaNs into numbers.
  const Vec magic = set(12582912.0f + 127.0f);
  const Vec rounded = hn::Add(z, magic);
  const Vec x = hn::Sub(z, hn::Sub(rounded, magic));
  Vec p = hn::MulAdd(x, set(0.00015353362f), set(0.00133988747f));
  p = hn::MulAdd(p, x, set(0.00961843736f));
  p = hn::MulAdd(p, x, set(0.0555033247f));
  p = hn::MulAdd(p, x, set(0.240226479f));
  p = hn::MulAdd(p, x, set(0.693147203f));
  p = hn::MulAdd(p, x, set(1.0f));
  const hn::RebindToSigned<Floats> integers;
  const Vec power = hn::BitCast(Floats(), hn::ShiftLeft<23>(hn::BitCast(integers, rounded)));
  return hn::IfThenZeroElse(hn::Lt(z, set(-125.0f)), hn::Mul(p, power));
}

/// tanh, near 1/2 ulp where it saturates and 1.5 ulp at worst: an odd polynomial up to 0.6 (off by 3e-9 at most),
/// 1 - 2e / (1 + e) with e = e^-2|y| beyond. A softcap multiplies each ulp into the logits; Highway's own has 4.
HWY_INLINE Vec tanh(Vec y) {
  const Vec magnitude = hn::Abs(y), square = hn::Mul(y, y);
  Vec p = hn::MulAdd(square, set(-0.00590581037f), set(0.0208053386f));
  p = hn::MulAdd(p, square, set(-0.0537866711f));
  p = hn::MulAdd(p, square, set(0.133319581f));
  p = hn::MulAdd(p, square, set(-0.333332993f));
  const Vec small = hn::MulAdd(hn::Mul(p, square), y, y);
  const Vec one = set(1.0f), e = exp2_accurate(hn::Mul(magnitude, set(-2.88539008f)));
  const Vec large = hn::CopySign(hn::Sub(one, hn::Div(hn::Add(e, e), hn::Add(one, e))), y);
  return hn::IfThenElse(hn::Lt(magnitude, set(0.6f)), small, large);
}

/// softcap * tanh(x / softcap)
HWY_INLINE Vec cap(Vec x, float softcap) { return hn::Mul(set(softcap), tanh(hn::Div(x, set(softcap)))); }

/// The lanes whose bits are set in the low bits of `word`.
HWY_INLINE Mask mask_of(std::uint64_t word) {
  std::uint8_t bytes[8];
  __builtin_memcpy(bytes, &word, sizeof(bytes));  // little-endian, as every target here is
  return hn::LoadMaskBits(Floats(), bytes);
}

// Rounding f32 to 16 bits, to nearest, ties to even, without the detour over double that the plain code takes.
HWY_INLINE std::uint16_t round_to_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

HWY_INLINE std::uint16_t round_to_f16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds beyond 65504
  if (magnitude < 0x38800000U) {  // subnormal: adding 1/2 leaves units of 2^-24 in the low bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

/// One element, widened exactly.
HWY_INLINE float widen_one(const void* data, DType type) {
  if (type == DType::f32) return *static_cast<const float*>(data);
  const std::uint16_t bits = *static_cast<const std::uint16_t*>(data);
  return type == DType::bf16 ? to_f32(bf16{bits}) : to_f32(f16{bits});
}

/// Neighbouring elements, widened exactly.
template <DType kType>
HWY_INLINE Vec widen_vector(const void* data) {
  if constexpr (kType == DType::f32) {
    return load(static_cast<const float*>(data));
  } else {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const hn::RebindToUnsigned<Floats> words;
    const auto bits = hn::LoadU(halves, static_cast<const std::uint16_t*>(data));
    if constexpr (kType == DType::bf16)
      return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
    else {
      const Vec widened = hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), bits));
      if constexpr (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) return widened;  // by an instruction
      // Targets without one take the largest exponent for a number: NaN and Inf get theirs back here.
      const auto infinity = hn::Set(words, 0x7F800000U), exponent = hn::Set(words, 0x7C00U);
      const auto special = hn::Eq(hn::And(hn::PromoteTo(words, bits), exponent), exponent);
      return hn::Or(widened, hn::BitCast(Floats(), hn::IfThenElseZero(special, infinity)));
    }
  }
}

template <DType kType>
HWY_INLINE void widen_dense(const std::byte* from, std::int64_t n, float* to) {
  constexpr auto size = static_cast<std::int64_t>(size_of(kType));
  const std::int64_t whole = n / lanes * lanes;
  for (std::int64_t c = 0; c < whole; c += lanes) store(widen_vector<kType>(from + c * size), to + c);
  from += whole * size, to += whole;
  for (std::int64_t rest = n - whole; rest > 0; --rest, from += size) *to++ = widen_one(from, kType);
}

/// to [n]: a row of n elements, widened exactly. data points at the first one; stride counts elements.
HWY_NOINLINE void widen(const void* data, DType type, std::int64_t stride, std::int64_t n, float* to) {
  const auto* from = static_cast<const std::byte*>(data);
  if (stride == 1) {
    if (type == DType::f32) return widen_dense<DType::f32>(from, n, to);
    if (type == DType::bf16) return widen_dense<DType::bf16>(from, n, to);
    return widen_dense<DType::f16>(from, n, to);
  }
  const auto size = static_cast<std::int64_t>(size_of(type));
  for (std::int64_t c = 0; c < n; ++c, from += stride * size) to[c] = widen_one(from, type);
}

/// The 128-bit blocks at from, from + step, ... side by side in one vector.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_blocks(Tag tag, const std::byte* from, std::int64_t step) {
  if constexpr (hn::MaxLanes(Tag()) * sizeof(float) <= 16) {
    return hn::LoadU(tag, reinterpret_cast<const float*>(from));
  } else {
    const hn::Half<Tag> half;
    constexpr auto blocks = static_cast<std::int64_t>(hn::MaxLanes(half) * sizeof(float) / 16);
    return hn::Combine(tag, load_blocks(half, from + blocks * step, step), load_blocks(half, from, step));
  }
}

/// `lanes` rows of four 32-bit words, row_bytes apart, transposed: to[c * to_stride + j] for the words c < n <= 4 of
/// row j. Words may be anything: no bit of them changes.
HWY_INLINE void transpose4(const std::byte* from, std::int64_t row_bytes, std::int64_t n, float* to,
                           std::int64_t to_stride) {
  const hn::RepartitionToWide<Floats> pairs;
  // Block x of `a` is row 4 x, of `b` row 4 x + 1, ...: interleaving inside the blocks leaves the rows in order.
  const auto row = [&](int j) HWY_ATTR { return load_blocks(Floats(), from + j * row_bytes, 4 * row_bytes); };
  const Vec a = row(0), b = row(1), c = row(2), d = row(3);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(Floats(), a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(Floats(), a, b));
  const auto cd_low = hn::BitCast(pairs, hn::InterleaveLower(Floats(), c, d));
  const auto cd_high = hn::BitCast(pairs, hn::InterleaveUpper(Floats(), c, d));
  store(hn::BitCast(Floats(), hn::InterleaveLower(pairs, ab_low, cd_low)), to);
  if (n > 1) store(hn::BitCast(Floats(), hn::InterleaveUpper(pairs, ab_low, cd_low)), to + to_stride);
  if (n > 2) store(hn::BitCast(Floats(), hn::InterleaveLower(pairs, ab_high, cd_high)), to + 2 * to_stride);
  if (n > 3) store(hn::BitCast(Floats(), hn::InterleaveUpper(pairs, ab_high, cd_high)), to + 3 * to_stride);
}

/// The same for all `words` words of a row: to[c * to_stride + j], rows a multiple of `lanes`.
HWY_NOINLINE void transpose(const std::byte* from, std::int64_t row_bytes, std::int64_t rows, std::int64_t words,
                            float* to, std::int64_t to_stride) {
  for (std::int64_t j = 0; j < rows; j += lanes) {
    std::int64_t c = 0;
    for (; c + 4 <= words; c += 4)
      transpose4(from + j * row_bytes + 4 * c, row_bytes, 4, to + c * to_stride + j, to_stride);
    if (c < words) transpose4(from + j * row_bytes + 4 * c, row_bytes, words - c, to + c * to_stride + j, to_stride);
  }
}

/// Neighbouring numbers rounded to bf16, the same bits as round_to_bf16.
HWY_INLINE void narrow_to_bf16(Vec x, std::uint16_t* to) {
  const hn::RebindToUnsigned<Floats> words;
  const hn::RebindToSigned<Floats> integers;
  const auto bits = hn::BitCast(words, x), high = hn::ShiftRight<16>(bits), one = hn::Set(words, 1U);
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::Set(words, 0x7FFFU), hn::And(high, one))));
  const auto quiet = hn::Or(high, hn::Set(words, 0x40U));
  const auto result = hn::IfThenElse(hn::RebindMask(words, hn::Ne(x, x)), quiet, rounded);
  const hn::Rebind<std::uint16_t, Floats> halves;
  hn::StoreU(hn::DemoteTo(halves, hn::BitCast(integers, result)), halves, to);
}

/// Writes n floats into a strided row of any 16- or 32-bit floating type, rounding once.
HWY_NOINLINE void narrow(const float* from, std::int64_t n, void* data, DType type, std::int64_t stride) {
  if (type == DType::f32) {
    auto* to = static_cast<float*>(data);
    if (stride == 1 && n > 0) {  // of nothing, to may be null
      __builtin_memcpy(to, from, static_cast<std::size_t>(n) * sizeof(*to));
    } else {
      for (std::int64_t c = 0; c < n; ++c, to += stride) *to = from[c];
    }
  } else {
    auto* to = static_cast<std::uint16_t*>(data);
    std::int64_t c = 0;
    if (stride == 1 && type == DType::bf16) {
      for (; c + lanes <= n; c += lanes) narrow_to_bf16(load(from + c), to + c);
      to += c;
    }
    for (; c < n; ++c, to += stride) *to = type == DType::bf16 ? round_to_bf16(from[c]) : round_to_f16(from[c]);
  }
}

template <class View>
HWY_INLINE auto* element(const View& t, std::int64_t index) {
  using Byte = std::conditional_t<std::is_same_v<View, Readable>, const std::byte, std::byte>;
  return static_cast<Byte*>(t.data) + index * static_cast<std::int64_t>(size_of(t.dtype));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
