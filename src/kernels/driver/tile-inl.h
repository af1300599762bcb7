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

/// C vectors of columns from c on: o[r] += weights[r] x values, summed from zero.
template <class Engine, int R, int C>
HWY_INLINE void add_columns(const typename Engine::Weight* weights, const std::uint64_t* words, int from, int to,
                            const typename Engine::Value* v, std::int64_t c, std::int64_t width, float* o) {
  Vec s[R][C];
  clear_tile(s);
  Engine::accumulate_values(weights, from, to, v, c, width, s);
  add_tile(s, words, width, o + c);
}

/// o[r] += weights[r] x values over keys from .. to, summed from zero; rows whose word is 0 keep their o.
/// weights [R][block_keys], v as Engine::pack_values left it, o [R][width].
template <class Engine, int R>
void weights_times_values(const typename Engine::Weight* weights, const std::uint64_t* words, int from, int to,
                          const typename Engine::Value* v, std::int64_t width, float* o) {
  std::int64_t c = 0;
  for (; c + Engine::tile_keys <= width; c += Engine::tile_keys)
    add_columns<Engine, R, Engine::tile_vectors>(weights, words, from, to, v, c, width, o);
  for (; c < width; c += lanes) add_columns<Engine, R, 1>(weights, words, from, to, v, c, width, o);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
