// The engine of bf16 products: pairs of neighbouring components (or keys) share a 32-bit word, as the processors'
// dot-product instructions want them. Weights are rounded to bf16; all sums are f32.
//
// Three functions know the instruction set: dot, exp and store_rounded. Where LEVELHEAD_AVX512_BF16 is 1 they are
// intrinsics; elsewhere they are their plain twin, slow, so that packing, edges and bits are tested on every machine.
#if defined(LEVELHEAD_ENGINES_BF16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_ENGINES_BF16_PAIRS_INL_H_
#undef LEVELHEAD_ENGINES_BF16_PAIRS_INL_H_
#else
#define LEVELHEAD_ENGINES_BF16_PAIRS_INL_H_
#endif

#include "kernels/driver/tasks.hpp"
#include "kernels/driver/tile-inl.h"
#include "kernels/driver/vector-inl.h"

#if LEVELHEAD_AVX512_BF16
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

using Words = hn::RebindToUnsigned<Floats>;
using Pairs = hn::Vec<Words>;  // two bf16 in each 32-bit lane, the first in the low half

#if LEVELHEAD_AVX512_BF16

/// acc + a.low * b.low + a.high * b.high, lane by lane. The instruction flushes subnormals to 0, on both sides.
HWY_INLINE Vec dot(Vec acc, Pairs a, Pairs b) {
  return Vec{_mm512_dpbf16_ps(acc.raw, reinterpret_cast<__m512bh>(a.raw), reinterpret_cast<__m512bh>(b.raw))};
}

/// 2^z, exactly 1 at 0, NaN for NaN: 2^x on [0, 1) by a polynomial that is off by 2.9e-6 at most, a thousandth of what
/// rounding a weight to bf16 loses, and little enough for statistics in Precision::exact.
HWY_INLINE Vec exp2_of_pairs(Vec z) {
  const __m512 x = _mm512_reduce_ps(z.raw, 1);  // z less floor(z); 0 for an infinity
  __m512 p = _mm512_fmadd_ps(x, _mm512_set1_ps(0.0134267012f), _mm512_set1_ps(0.052242447f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0.241280217f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0.693044843f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(1.0f));
  return Vec{_mm512_scalef_ps(p, z.raw)};  // takes floor(z)
}

/// to [2 * lanes]: low and high, rounded to nearest even.
HWY_INLINE void store_rounded(Vec low, Vec high, std::uint16_t* to) {
  const __m512bh both = _mm512_cvtne2ps_pbh(high.raw, low.raw);
  __builtin_memcpy(to, &both, sizeof(both));
}

#else

HWY_INLINE Vec dot(Vec acc, Pairs a, Pairs b) {
  const auto low = [](Pairs x) HWY_ATTR { return hn::BitCast(Floats(), hn::ShiftLeft<16>(x)); };
  const auto high = [](Pairs x) HWY_ATTR { return hn::BitCast(Floats(), hn::And(x, hn::Set(Words(), 0xFFFF0000U))); };
  return hn::MulAdd(low(a), low(b), hn::MulAdd(high(a), high(b), acc));
}

HWY_INLINE Vec exp2_of_pairs(Vec z) { return exp2_accurate(z); }

HWY_INLINE void store_rounded(Vec low, Vec high, std::uint16_t* to) {
  float both[2 * lanes];
  store(low, both);
  store(high, both + lanes);
  for (int x = 0; x < 2 * lanes; ++x) to[x] = round_to_bf16(both[x]);
}

#endif

struct Bf16Pairs : RegisterTiles {
  using Query = std::uint16_t;   // [D, rounded up to even]
  using Key = std::uint16_t;     // [D / 2, rounded up][block_keys][2]
  using Value = std::uint16_t;   // [block_keys / 2][width][2]: width is Dv rounded up to whole vectors
  using Weight = std::uint16_t;  // [block_keys]

  static constexpr int tile_rows = 4, tile_vectors = 4, tile_keys = tile_vectors * lanes;
  static constexpr int least_vectors = 2;  // store_rounded takes two
  static_assert(block_keys % tile_keys == 0);

  static HWY_INLINE Vec exp2(Vec z) { return exp2_of_pairs(z); }

  static constexpr std::int64_t query_elements(std::int64_t D) { return D + D % 2; }
  static constexpr std::int64_t key_elements(std::int64_t D) { return query_elements(D) * block_keys; }
  static constexpr std::int64_t value_elements(std::int64_t Dv) {
    return (Dv + lanes - 1) / lanes * lanes * block_keys;
  }

  static void pack_query(const void* q, DType, std::int64_t stride, std::int64_t D, Query* to) {
    copy_row(static_cast<const std::uint16_t*>(q), stride, D, query_elements(D), to);
  }
  static void clear_query(std::int64_t D, Query* to) { clear(to, query_elements(D)); }

  /// k: n <= block_keys rows of D. Missing keys up to a multiple of kUnit and an odd D's last half become zeros.
  /// temporary: [block_keys][row], if the rows can't be read as they lie.
  template <int kUnit = tile_keys>
  static void pack_keys(const void* k, DType, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                        std::int64_t D, float* temporary, Key* to) {
    const auto* from = static_cast<const std::uint16_t*>(k);
    const std::int64_t padded = (n + kUnit - 1) / kUnit * kUnit;
    if (stride != 1 || n < padded || D % unit != 0) {
      const std::int64_t row = (D + unit - 1) / unit * unit;
      auto* const copy = reinterpret_cast<std::uint16_t*>(temporary);
      for (std::int64_t j = 0; j < n; ++j) copy_row(from + j * row_stride, stride, D, row, copy + j * row);
      clear(copy + n * row, (padded - n) * row);
      from = copy;
      row_stride = row;
    }
    transpose(reinterpret_cast<const std::byte*>(from), row_stride * static_cast<std::int64_t>(sizeof(Key)), padded,
              query_elements(D) / 2, reinterpret_cast<float*>(to), block_keys);
  }

  /// v: n <= block_keys rows of Dv. Missing columns and the missing half of a pair of rows
  /// become zeros; rows beyond are never multiplied. Returns whether every value is finite.
  template <int kUnit = lanes>
  static bool pack_values(const void* v, DType, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                          std::int64_t Dv, Value* to) {
    const auto* from = static_cast<const std::uint16_t*>(v);
    const std::int64_t width = (Dv + kUnit - 1) / kUnit * kUnit;
    bool finite = true;
    for (std::int64_t j = 0; j < n; j += 2) {
      const std::uint16_t* const first = from + j * row_stride;
      const int rows = j + 1 < n ? 2 : 1;
      finite = interleave(first, row_stride, stride, rows, Dv, width, to + j * width) && finite;
    }
    return finite;
  }

  /// Calls stage(0, offset, s), s [R][C] in registers: s[r] = <q[r], keys offset .. offset + C x lanes>.
  template <int R, int C, class Stage>
  static HWY_INLINE void product_tile(const Query* q, const Key* k, int offset, std::int64_t D, const Stage& stage) {
    Vec s[R][C];
    clear_tile(s);
    accumulate(q, query_elements(D), k + 2 * offset, block_keys, query_elements(D) / 2, s);
    pin_tile(s);
    stage(0, offset, s);
  }

  template <int C>
  static HWY_INLINE void store_weights(const Vec (&p)[C], Weight* to) {
    repeat<C / 2>(LEVELHEAD_EACH(v) { store_rounded(p[2 * v], p[2 * v + 1], to + 2 * v * lanes); });
  }
  template <int C>
  static HWY_INLINE void clear_weights(Weight* to) {
    clear(to, C * lanes);
  }
  static void rescale_weights(Weight* weights, int n, float factor) {
    for (int j = 0; j < n; ++j) weights[j] = round_to_bf16(to_f32(bf16{weights[j]}) * factor);
  }

  /// s[r][x] += weights[r] x values of the vectors of columns from c on, over keys from .. to in order.
  /// weights [R][block_keys], v [block_keys / 2][width][2]. from is even; a key `to` weighs 0.
  template <int R, int C>
  static HWY_INLINE void accumulate_values(const Weight* weights, int from, int to, const Value* v, std::int64_t c,
                                           std::int64_t width, Vec (&s)[R][C]) {
    accumulate(weights + from, block_keys, v + from * width + 2 * c, width, (to + 1 - from) / 2, s);
  }

  /// o += weights x values of one row, zeros in place of the keys it does not see: for values that are not finite.
  static void weights_times_visible_values(const Weight* weights, const KeyBits& word, const Value* v,
                                           std::int64_t width, float* o) {
    if (word.none()) return;
    for (std::int64_t c = 0; c < width; c += lanes) {
      Vec sum = zero();
      for (int j = 0; j < block_keys; j += 2) {
        const std::uint64_t seen = word.part(j, 2);
        if (seen == 0) continue;
        const std::uint32_t shown = (seen & 1 ? 0x0000FFFFU : 0U) | (seen & 2 ? 0xFFFF0000U : 0U);
        const Pairs values = hn::And(pairs_at(v + j * width + 2 * c), hn::Set(Words(), shown));
        sum = dot(sum, pair_of(weights + j), values);
      }
      store(hn::Add(load(o + c), sum), o + c);
    }
  }

 protected:
  static constexpr std::int64_t unit = 8;  // elements of a 128-bit read

  static HWY_INLINE Pairs pairs_at(const std::uint16_t* p) {
    return hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(p));
  }
  static HWY_INLINE Pairs pair_of(const std::uint16_t* p) {
    std::uint32_t both;
    __builtin_memcpy(&both, p, sizeof(both));
    return hn::Set(Words(), both);
  }

  static HWY_INLINE void clear(std::uint16_t* to, std::int64_t n) {
    __builtin_memset(to, 0, static_cast<std::size_t>(n) * sizeof(*to));
  }

  // to [padded]: n strided elements, then zeros.
  static void copy_row(const std::uint16_t* from, std::int64_t stride, std::int64_t n, std::int64_t padded,
                       std::uint16_t* to) {
    if (stride == 1 && n > 0) {  // of nothing, from may be null
      __builtin_memcpy(to, from, static_cast<std::size_t>(n) * sizeof(*to));
    } else {
      for (std::int64_t c = 0; c < n; ++c) to[c] = from[c * stride];
    }
    clear(to + n, padded - n);
  }

  static HWY_INLINE bool is_finite(std::uint16_t x) { return (x & 0x7F80U) != 0x7F80U; }

  // to [width][2]: column c of two rows side by side; rows that are not there are zeros. Returns whether all is finite.
  static bool interleave(const std::uint16_t* from, std::int64_t row_stride, std::int64_t stride, int rows,
                         std::int64_t Dv, std::int64_t width, std::uint16_t* to) {
    std::int64_t c = 0;
    bool finite = true;
    if (rows == 2 && stride == 1) {
      const hn::Rebind<std::uint16_t, Words> halves;
      const hn::Repartition<std::uint16_t, Words> both;
      const auto magnitude = hn::Set(both, std::uint16_t{0x7FFF});
      auto most = hn::Zero(both);
      for (; c + lanes <= Dv; c += lanes) {
        const Pairs low = hn::PromoteTo(Words(), hn::LoadU(halves, from + c));
        const Pairs high = hn::PromoteTo(Words(), hn::LoadU(halves, from + row_stride + c));
        const Pairs pair = hn::Or(low, hn::ShiftLeft<16>(high));
        hn::StoreU(pair, Words(), reinterpret_cast<std::uint32_t*>(to + 2 * c));
        most = hn::Max(most, hn::And(hn::BitCast(both, pair), magnitude));
      }
      finite = hn::AllTrue(both, hn::Lt(most, hn::Set(both, std::uint16_t{0x7F80})));
    }
    for (; c < Dv; ++c) {
      for (int x = 0; x < 2; ++x) {
        const std::uint16_t value = x < rows ? from[x * row_stride + c * stride] : std::uint16_t{0};
        to[2 * c + x] = value;
        finite = finite && is_finite(value);
      }
    }
    clear(to + 2 * Dv, 2 * (width - Dv));
    return finite;
  }

  // s[r][x] += <pair k of a[r], pair k of b[x]> over `count` pairs. a [R][a_stride], b [count][b_words][2].
  template <int R, int C>
  static HWY_INLINE void accumulate(const std::uint16_t* a, std::int64_t a_stride, const std::uint16_t* b,
                                    std::int64_t b_words, std::int64_t count, Vec (&s)[R][C]) {
    for (std::int64_t k = 0; k < count; ++k, a += 2, b += 2 * b_words) {
      Pairs column[C];
      repeat<C>(LEVELHEAD_EACH(x) { column[x] = pairs_at(b + 2 * x * lanes); });
      repeat<R>(LEVELHEAD_EACH(r) {
        const Pairs row = pair_of(a + r * a_stride);
        repeat<C>(LEVELHEAD_EACH(x) { s[r][x] = dot(s[r][x], row, column[x]); });
      });
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
