// What engines share about tiles of sums in registers. Included once per target.
#if defined(LEVELHEAD_DRIVER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_TILE_INL_H_
#undef LEVELHEAD_DRIVER_TILE_INL_H_
#else
#define LEVELHEAD_DRIVER_TILE_INL_H_
#endif

#include <type_traits>

#include "kernels/driver/key_bits.hpp"
#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Sanitizers instrument each copy of the body: as a loop it compiles ten times faster, and there speed does not count.
template <int N, class F>
HWY_INLINE void repeat(const F& f) {
  for (int i = 0; i < N; ++i) f(i);
}
#define LEVELHEAD_INLINE
#else
/// f(0), f(1), ... f(N - 1), each index a constant type. Arrays of vectors must be indexed so: an index that is a
/// variable until late in the compiler puts the array into memory, and every step of the loop that makes it stores it.
template <int N, int kFirst = 0, class F>
HWY_INLINE void repeat(const F& f) {
  if constexpr (kFirst < N) {
    f(std::integral_constant<int, kFirst>());
    repeat<N, kFirst + 1>(f);
  }
}
#define LEVELHEAD_INLINE __attribute__((always_inline))
#endif
// NOLINTNEXTLINE(bugprone-macro-parentheses): the name of a parameter can't stand in them
#define LEVELHEAD_EACH(i) [&](auto i) HWY_ATTR LEVELHEAD_INLINE

template <int R, int C>
HWY_INLINE void clear_tile(Vec (&s)[R][C]) {
  repeat<R>(LEVELHEAD_EACH(r) { repeat<C>(LEVELHEAD_EACH(x) { s[r][x] = zero(); }); });
}

/// What passes through here is in a register, and what becomes of it is another story: a compiler short of registers
/// somewhere behind a loop would else keep sums in memory all through the loop that makes them.
HWY_INLINE void pin([[maybe_unused]] Vec& x) {
#if HWY_ARCH_X86
  asm("" : "+v"(x.raw));
#endif
}

template <int R, int C>
HWY_INLINE void pin_tile(Vec (&s)[R][C]) {
  repeat<R>(LEVELHEAD_EACH(r) { repeat<C>(LEVELHEAD_EACH(x) { pin(s[r][x]); }); });
}

/// o[r] += s[r], but rows without a bit keep their o. o [R][width].
template <int R, int C>
HWY_INLINE void add_tile(const Vec (&s)[R][C], const KeyBits* words, std::int64_t width, float* o) {
  repeat<R>(LEVELHEAD_EACH(r) {
    if (words[r].none()) return;
    repeat<C>(LEVELHEAD_EACH(x) {
      float* const to = o + r * width + x * lanes;
      store(hn::Add(load(to), s[r][x]), to);
    });
  });
}

/// C vectors of columns from c on: o[r] += weights[r] x values, summed from zero.
template <class Engine, int R, int C>
HWY_INLINE void add_columns(const typename Engine::Weight* weights, const KeyBits* words, int from, int to,
                            const typename Engine::Value* v, std::int64_t c, std::int64_t width, float* o) {
  Vec s[R][C];
  clear_tile(s);
  Engine::accumulate_values(weights, from, to, v, c, width, s);
  add_tile(s, words, width, o + c);
}

/// Vectors of columns that R rows sum at once.
template <class Engine, int R>
inline constexpr int wide_value_vectors = Engine::tile_vectors;

/// o[r] += weights[r] x values over keys from .. to, summed from zero; rows without a bit keep their o.
/// weights [R][block_keys], v as Engine::pack_values left it, o [R][width].
template <class Engine, int R>
void by_columns(const typename Engine::Weight* weights, const KeyBits* words, int from, int to,
                const typename Engine::Value* v, std::int64_t width, float* o) {
  constexpr int wide = wide_value_vectors<Engine, R>;
  std::int64_t c = 0;
  if constexpr (wide > Engine::tile_vectors) {
    for (; c + wide * lanes <= width; c += wide * lanes)
      add_columns<Engine, R, wide>(weights, words, from, to, v, c, width, o);
  }
  for (; c + Engine::tile_keys <= width; c += Engine::tile_keys)
    add_columns<Engine, R, Engine::tile_vectors>(weights, words, from, to, v, c, width, o);
  for (; c < width; c += lanes) add_columns<Engine, R, 1>(weights, words, from, to, v, c, width, o);
}

/// What engines have whose sums never leave the registers.
struct RegisterTiles {
  /// What a thread holds while it runs a task.
  struct Session {};

  static constexpr bool packs = true;        // keys and values, or it reads them where they lie and in order
  static constexpr int few_rows = 1;         // a group of no more is multiplied as one of so many
  static constexpr int column_unit = lanes;  // columns of values and o are padded to a multiple of it

  template <class Engine, int R>
  static HWY_INLINE void weights_times_values(const auto* weights, const KeyBits* words, int from, int to,
                                              const auto* v, std::int64_t width, float* o) {
    by_columns<Engine, R>(weights, words, from, to, v, width, o);
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
