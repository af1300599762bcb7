// Which keys of a block a row sees, as one 64-bit word, and what is added to its logits there. Everything that hides
// (lengths, documents, windows, mask, bias of -inf) ends in that word, so the softmax stage knows only bits.
#if defined(LEVELHEAD_DRIVER_VISIBLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_VISIBLE_INL_H_
#undef LEVELHEAD_DRIVER_VISIBLE_INL_H_
#else
#define LEVELHEAD_DRIVER_VISIBLE_INL_H_
#endif

#include "kernels/driver/tasks.hpp"
#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

static_assert(block_keys == 64, "a block's visible keys are the bits of one word");

/// Bits [begin, end) relative to the block's first key, clipped to the block.
inline std::uint64_t word_of_range(std::int64_t begin, std::int64_t end) {
  if (begin < 0) begin = 0;
  if (end > block_keys) end = block_keys;
  if (end <= begin) return 0;
  return (~std::uint64_t{0} >> (64 - (end - begin))) << begin;
}

/// word without the keys that the mask hides. at: element index of the row's entry for the block's first key.
/// Reads only entries of set bits' span, so nothing behind a length or outside a window is touched.
inline std::uint64_t apply_mask(const Readable& mask, std::int64_t at, std::uint64_t word) {
  const auto* bytes = static_cast<const std::uint8_t*>(mask.data);
  const std::int64_t stride = mask.strides[3];
  if (stride == 0) return bytes[at] != 0 ? word : 0;
  std::uint64_t seen = 0;
  if (word == ~std::uint64_t{0} && stride == 1) {
    const hn::ScalableTag<std::uint8_t> tag;
    constexpr int step = static_cast<int>(hn::MaxLanes(hn::ScalableTag<std::uint8_t>()));
    for (int j = 0; j < block_keys; j += step) {
      std::uint64_t bits = 0;
      std::uint8_t packed[8] = {};
      hn::StoreMaskBits(tag, hn::Ne(hn::LoadU(tag, bytes + at + j), hn::Zero(tag)), packed);
      __builtin_memcpy(&bits, packed, sizeof(bits));
      seen |= bits << j;
    }
    return seen;
  }
  for (std::uint64_t rest = word; rest != 0; rest &= rest - 1) {
    const int j = std::countr_zero(rest);
    seen |= static_cast<std::uint64_t>(bytes[at + j * stride] != 0) << j;
  }
  return seen;
}

/// Adds the row's bias to extra [block_keys] at the bits of word; returns word without the keys that -inf hides.
inline std::uint64_t apply_bias(const Readable& bias, std::int64_t at, std::uint64_t word, float* extra) {
  const std::int64_t stride = bias.strides[3];
  if (word == ~std::uint64_t{0} && stride == 1) {
    widen(element(bias, at), bias.dtype, 1, block_keys, extra);
  } else {
    for (std::uint64_t rest = word; rest != 0; rest &= rest - 1) {
      const int j = std::countr_zero(rest);
      extra[j] = widen_one(element(bias, at + j * stride), bias.dtype);
    }
  }
  std::uint64_t hidden = 0;
  for (int j = 0; j < block_keys; ++j) {
    hidden |= static_cast<std::uint64_t>(extra[j] == -std::numeric_limits<float>::infinity()) << j;
  }
  return word & ~hidden;
}

/// extra [block_keys] += slope * (distance + j): distance is that of the block's first key.
inline void apply_slope(double slope, std::int64_t distance, float* extra) {
  for (int j = 0; j < block_keys; ++j) extra[j] += static_cast<float>(slope * static_cast<double>(distance + j));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
