// What engines share about tiles of sums in registers. Included once per target.
#if defined(LEVELHEAD_DRIVER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_TILE_INL_H_
#undef LEVELHEAD_DRIVER_TILE_INL_H_
#else
#define LEVELHEAD_DRIVER_TILE_INL_H_
#endif

#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

template <int R, int C>
HWY_INLINE void clear_tile(Vec (&s)[R][C]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int x = 0; x < C; ++x) s[r][x] = zero();
  }
}

/// o[r] += s[r], but rows whose word is 0 keep their o. o [R][width].
template <int R, int C>
HWY_INLINE void add_tile(const Vec (&s)[R][C], const std::uint64_t* words, std::int64_t width, float* o) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (words[r] == 0) continue;
#pragma GCC unroll 8
    for (int x = 0; x < C; ++x) {
      float* const to = o + r * width + x * lanes;
      store(hn::Add(load(to), s[r][x]), to);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
