// Which keys of a block a row sees, one bit each, and what is added to its logits there. Everything that hides
// (lengths, documents, windows, mask, bias of -inf) ends in those bits, so the softmax stage knows nothing else.
#if defined(LEVELHEAD_DRIVER_VISIBLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_VISIBLE_INL_H_
#undef LEVELHEAD_DRIVER_VISIBLE_INL_H_
#else
#define LEVELHEAD_DRIVER_VISIBLE_INL_H_
#endif

#include "kernels/driver/key_bits.hpp"
#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

/// Bit j: whether bytes[j] is not 0, for 64 of them.
inline std::uint64_t nonzero_bytes(const std::uint8_t* bytes) {
  const hn::ScalableTag<std::uint8_t> tag;
  constexpr int step = static_cast<int>(hn::MaxLanes(hn::ScalableTag<std::uint8_t>()));
  std::uint64_t seen = 0;
  for (int j = 0; j < KeyBits::half_bits; j += step) {
    std::uint64_t bits = 0;
    std::uint8_t packed[8] = {};
    hn::StoreMaskBits(tag, hn::Ne(hn::LoadU(tag, bytes + j), hn::Zero(tag)), packed);
    __builtin_memcpy(&bits, packed, sizeof(bits));
    seen |= bits << j;
  }
  return seen;
}

/// The same at the bits of `among` alone; no other byte is read.
inline std::uint64_t nonzero(const std::uint8_t* bytes, std::int64_t stride, std::uint64_t among) {
  std::uint64_t seen = 0;
  for (std::uint64_t rest = among; rest != 0; rest &= rest - 1) {
    const int j = std::countr_zero(rest);
    seen |= static_cast<std::uint64_t>(bytes[j * stride] != 0) << j;
  }
  return seen;
}

/// Bit j: whether x[j] is y, for 64 of them.
inline std::uint64_t equal_bits(const float* x, float y) {
  std::uint64_t equal = 0;
  for (int j = 0; j < KeyBits::half_bits; j += lanes) {
    std::uint64_t bits = 0;
    std::uint8_t packed[8] = {};
    hn::StoreMaskBits(Floats(), hn::Eq(load(x + j), set(y)), packed);
    __builtin_memcpy(&bits, packed, sizeof(bits));
    equal |= bits << j;
  }
  return equal;
}

/// Hides what the mask hides. at: element index of the row's entry for the block's first key.
/// Reads only entries of bits that are set, so nothing behind a length or outside a window is touched.
inline void apply_mask(const Readable& mask, std::int64_t at, KeyBits& word) {
  const auto* bytes = static_cast<const std::uint8_t*>(mask.data);
  const std::int64_t stride = mask.strides[3];
  if (stride == 0) {
    if (bytes[at] == 0) word = {};
    return;
  }
  for (std::uint64_t& half : word.half) {
    half =
        stride == 1 && half == ~std::uint64_t{0} ? nonzero_bytes(bytes + at) : half & nonzero(bytes + at, stride, half);
    at += KeyBits::half_bits * stride;
  }
}

/// Adds the row's bias to extra [block_keys] at the bits of word, and hides the keys whose bias is -inf.
inline void apply_bias(const Readable& bias, std::int64_t at, KeyBits& word, float* extra) {
  const std::int64_t stride = bias.strides[3];
  for (std::uint64_t& half : word.half) {
    if (half == ~std::uint64_t{0} && stride == 1) {
      widen(element(bias, at), bias.dtype, 1, KeyBits::half_bits, extra);
    } else {
      for (std::uint64_t rest = half; rest != 0; rest &= rest - 1) {
        const int j = std::countr_zero(rest);
        extra[j] = widen_one(element(bias, at + j * stride), bias.dtype);
      }
    }
    half &= ~equal_bits(extra, -std::numeric_limits<float>::infinity());
    at += KeyBits::half_bits * stride;
    extra += KeyBits::half_bits;
  }
}

/// extra [block_keys] += slope * (distance + j): distance is that of the block's first key.
inline void apply_slope(double slope, std::int64_t distance, float* extra) {
  constexpr std::int64_t exact = std::int64_t{1} << 24;
  if (static_cast<double>(static_cast<float>(slope)) == slope && distance > -exact && distance < exact - block_keys) {
    // Both factors are floats, so one rounding of the product in f32 is the rounding of the exact product.
    const Vec by = set(static_cast<float>(slope));
    Vec at = hn::Iota(Floats(), static_cast<float>(distance));
    for (int j = 0; j < block_keys; j += lanes, at = hn::Add(at, set(static_cast<float>(lanes))))
      store(hn::Add(load(extra + j), hn::Mul(by, at)), extra + j);
  } else {
    for (int j = 0; j < block_keys; ++j) extra[j] += static_cast<float>(slope * static_cast<double>(distance + j));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
