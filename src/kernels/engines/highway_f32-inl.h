// The portable engine: f32 multiply-adds on Highway vectors; 16-bit inputs are widened while packing, so its weights
// and sums are f32 whatever comes in. This list, with that of RegisterTiles, is the whole engine contract.
#if defined(LEVELHEAD_ENGINES_HIGHWAY_F32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_ENGINES_HIGHWAY_F32_INL_H_
#undef LEVELHEAD_ENGINES_HIGHWAY_F32_INL_H_
#else
#define LEVELHEAD_ENGINES_HIGHWAY_F32_INL_H_
#endif

#include "kernels/driver/tasks.hpp"
#include "kernels/driver/tile-inl.h"
#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
/// 2^z for z < 128, exactly 1 at 0, NaN for NaN: 2^x on [0, 1) by a polynomial that is off by 8.3e-8 at most.
HWY_INLINE Vec exp2_of_weights(Vec z) {
  const __m512 x = _mm512_reduce_ps(z.raw, 1);  // z less floor(z); 0 for an infinity
  __m512 p = _mm512_fmadd_ps(x, _mm512_set1_ps(0.00186713169f), _mm512_set1_ps(0.0090170269f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0.0557999155f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0.240164449f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0.693151312f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(1.0f));
  return Vec{_mm512_scalef_ps(p, z.raw)};  // takes floor(z)
}
#else
HWY_INLINE Vec exp2_of_weights(Vec z) { return exp2_accurate(z); }
#endif

struct HighwayF32 : RegisterTiles {
  using Query = float;   // [D]
  using Key = float;     // [D][block_keys]: a vector holds one component of neighbouring keys
  using Value = float;   // [block_keys][o_stride]: o_stride is Dv rounded up to whole vectors
  using Weight = float;  // [block_keys]

  // 4 x 4 accumulators leave half of 32 registers for the softmax stage; 6 x 2 fit 16 registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
  static constexpr int tile_rows = 4, tile_vectors = 4;
  static constexpr bool many_registers = true;
#else
  static constexpr int tile_rows = 6, tile_vectors = 2;
  static constexpr bool many_registers = false;
#endif
  static constexpr int tile_keys = tile_vectors * lanes, least_vectors = 1;
  static_assert(block_keys % tile_keys == 0);

  /// 2^z for z < 127, good to the precision of Weight; exactly 1 at 0, NaN for NaN.
  static HWY_INLINE Vec exp2(Vec z) { return exp2_of_weights(z); }

  static constexpr std::int64_t query_elements(std::int64_t D) { return D; }
  static constexpr std::int64_t key_elements(std::int64_t D) { return D * block_keys; }
  static constexpr std::int64_t value_elements(std::int64_t Dv) {
    return (Dv + lanes - 1) / lanes * lanes * block_keys;
  }

  static void pack_query(const void* q, DType type, std::int64_t stride, std::int64_t D, Query* to) {
    widen(q, type, stride, D, to);
  }
  static void clear_query(std::int64_t D, Query* to) {
    for (std::int64_t c = 0; c < D; ++c) to[c] = 0;
  }

  /// k: n <= block_keys rows of D. Missing keys of the last tile become zeros. temporary: [block_keys][D].
  static void pack_keys(const void* k, DType type, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                        std::int64_t D, float* temporary, Key* to) {
    const auto* bytes = static_cast<const std::byte*>(k);
    const auto size = static_cast<std::int64_t>(size_of(type));
    const std::int64_t padded = (n + tile_keys - 1) / tile_keys * tile_keys;
    if (type == DType::f32 && stride == 1 && n == padded && D % 4 == 0)
      return transpose(bytes, row_stride * size, n, D, to, block_keys);
    const std::int64_t row = D + (4 - D % 4) % 4;  // the transpose reads whole quadruples
    for (std::int64_t j = 0; j < n; ++j) widen(bytes + j * row_stride * size, type, stride, D, temporary + j * row);
    for (std::int64_t x = n * row; x < padded * row; ++x) temporary[x] = 0;
    transpose(reinterpret_cast<const std::byte*>(temporary), row * 4, padded, D, to, block_keys);
  }

  /// v: n <= block_keys rows of Dv. Missing columns become zeros, missing rows are never multiplied. Returns whether
  /// every value is finite.
  static bool pack_values(const void* v, DType type, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                          std::int64_t Dv, Value* to) {
    const auto* bytes = static_cast<const std::byte*>(v);
    const auto size = static_cast<std::int64_t>(size_of(type));
    const std::int64_t width = (Dv + lanes - 1) / lanes * lanes;
    for (std::int64_t j = 0; j < n; ++j) {
      widen(bytes + j * row_stride * size, type, stride, Dv, to + j * width);
      for (std::int64_t c = Dv; c < width; ++c) to[j * width + c] = 0;
    }
    return are_finite(to, n * width);
  }

  /// v itself if it lies as pack_values would leave it, else null.
  static const Value* values_in_place(const void* v, DType type, std::int64_t row_stride, std::int64_t stride,
                                      std::int64_t Dv) {
    const bool packed = type == DType::f32 && stride == 1 && row_stride == Dv && Dv % lanes == 0;
    return packed ? static_cast<const Value*>(v) : nullptr;
  }

  /// n: a multiple of lanes.
  static bool are_finite(const Value* v, std::int64_t n) {
    const hn::RebindToSigned<Floats> bits;
    const auto magnitude = hn::Set(bits, 0x7FFFFFFF);
    auto most = hn::Zero(bits);
    for (std::int64_t x = 0; x < n; x += lanes)
      most = hn::Max(most, hn::And(hn::BitCast(bits, load(v + x)), magnitude));
    return hn::AllTrue(bits, hn::Lt(most, hn::Set(bits, 0x7F800000)));
  }

  /// Calls stage(0, offset, s), s [R][C] in registers: s[r] = <q[r], keys offset .. offset + C x lanes>; C is
  /// tile_vectors or a smaller power of two, at least least_vectors. An engine may do so piece by piece instead, naming
  /// each one's first row and key; rows must not be cut differently for different C.
  template <int R, int C, class Stage>
  static HWY_INLINE void product_tile(const Query* q, const Key* k, int offset, std::int64_t D, const Stage& stage) {
    Vec s[R][C];
    if constexpr (many_registers) {
      multiply(q, k + offset, D, s);
    } else {
      // The constants of the softmax stage would push sums out of the registers of the loop. Storing and loading the
      // tile once costs less than a single sum in memory.
      alignas(64) float sums[R * C * lanes];
      store_products<R, C>(q, k + offset, D, sums);
      repeat<R>(LEVELHEAD_EACH(r) { repeat<C>(LEVELHEAD_EACH(x) { s[r][x] = load(sums + (r * C + x) * lanes); }); });
    }
    stage(0, offset, s);
  }

  template <int C>
  static HWY_INLINE void store_weights(const Vec (&p)[C], Weight* to) {
    repeat<C>(LEVELHEAD_EACH(v) { store(p[v], to + v * lanes); });
  }
  template <int C>
  static HWY_INLINE void clear_weights(Weight* to) {
    for (int v = 0; v < C; ++v) store(zero(), to + v * lanes);
  }
  static void rescale_weights(Weight* weights, int n, float factor) {
    for (int j = 0; j < n; ++j) weights[j] *= factor;
  }

  /// s[r][x] += weights[r] x values of the vectors of columns from c on, over keys from .. to in order.
  /// weights [R][block_keys], v [block_keys][width].
  template <int R, int C>
  static HWY_INLINE void accumulate_values(const Weight* weights, int from, int to, const Value* v, std::int64_t c,
                                           std::int64_t width, Vec (&s)[R][C]) {
    for (int j = from; j < to; ++j) multiply_add(weights + j, block_keys, v + j * width + c, s);
  }

  /// o += weights x values of one row over the keys of word alone, in the same order: for values that are not finite.
  static void weights_times_visible_values(const Weight* weights, const KeyBits& word, const Value* v,
                                           std::int64_t width, float* o) {
    if (word.none()) return;
    for (std::int64_t c = 0; c < width; c += lanes) {
      Vec sum = zero();
      for (int j = word.first(); j < word.end(); ++j) {
        if (word.part(j, 1) == 0) continue;
        sum = hn::MulAdd(set(weights[j]), load(v + j * width + c), sum);
      }
      store(hn::Add(load(o + c), sum), o + c);
    }
  }

 private:
  template <int R, int C>
  static HWY_INLINE void multiply(const Query* q, const Key* k, std::int64_t D, Vec (&s)[R][C]) {
    clear_tile(s);
    for (std::int64_t c = 0; c < D; ++c, k += block_keys) multiply_add(q + c, D, k, s);
    pin_tile(s);
  }

  template <int R, int C>
  static HWY_NOINLINE void store_products(const Query* q, const Key* k, std::int64_t D, float* sums) {
    Vec s[R][C];
    multiply(q, k, D, s);
    repeat<R>(LEVELHEAD_EACH(r) { repeat<C>(LEVELHEAD_EACH(x) { store(s[r][x], sums + (r * C + x) * lanes); }); });
  }

  // s[r][x] += a[r * stride] * b[x]
  template <int R, int C>
  static HWY_INLINE void multiply_add(const float* a, std::int64_t stride, const float* b, Vec (&s)[R][C]) {
    Vec column[C];
    repeat<C>(LEVELHEAD_EACH(x) {
      column[x] = load(b + x * lanes);
      pin(column[x]);
    });
    repeat<R>(LEVELHEAD_EACH(r) {
      const Vec row = set(a[r * stride]);
      repeat<C>(LEVELHEAD_EACH(x) { s[r][x] = hn::MulAdd(row, column[x], s[r][x]); });
    });
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
