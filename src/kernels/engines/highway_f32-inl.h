// The portable engine: f32 multiply-adds on Highway vectors; 16-bit inputs are widened while packing, so its weights
// and sums are f32 whatever comes in. This list is the whole engine contract.
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

struct HighwayF32 {
  using Query = float;   // [D]
  using Key = float;     // [D][block_keys]: a vector holds one component of neighbouring keys
  using Value = float;   // [block_keys][o_stride]: o_stride is Dv rounded up to whole vectors
  using Weight = float;  // [block_keys]

  // 4 x 4 accumulators leave half of 32 registers for the softmax stage; 6 x 2 fit 16 registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
  static constexpr int tile_rows = 4, tile_vectors = 4;
#else
  static constexpr int tile_rows = 6, tile_vectors = 2;
#endif
  static constexpr int tile_keys = tile_vectors * lanes;
  static_assert(block_keys % tile_keys == 0);

  /// e^t for t <= 0, good to the precision of Weight; NaN for NaN.
  static HWY_INLINE Vec exp(Vec t) { return exp_nonpositive(t); }

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

  /// k: n <= block_keys rows of D. Missing keys become zeros. temporary: [block_keys][D].
  static void pack_keys(const void* k, DType type, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                        std::int64_t D, float* temporary, Key* to) {
    const auto* bytes = static_cast<const std::byte*>(k);
    const auto size = static_cast<std::int64_t>(size_of(type));
    const std::int64_t row = D + (4 - D % 4) % 4;  // the transpose reads whole quadruples
    for (std::int64_t j = 0; j < n; ++j) widen(bytes + j * row_stride * size, type, stride, D, temporary + j * row);
    for (std::int64_t x = n * row; x < block_keys * row; ++x) temporary[x] = 0;
    for (std::int64_t c = 0; c < D; c += 4) {
      for (std::int64_t j = 0; j < block_keys; j += 4)
        transpose4(reinterpret_cast<const std::byte*>(temporary + j * row + c), row * 4, D - c, to + c * block_keys + j,
                   block_keys);
    }
  }

  /// v: n <= block_keys rows of Dv. Missing rows and columns become zeros. Returns whether every value is finite.
  static bool pack_values(const void* v, DType type, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                          std::int64_t Dv, Value* to) {
    const auto* bytes = static_cast<const std::byte*>(v);
    const auto size = static_cast<std::int64_t>(size_of(type));
    const std::int64_t width = (Dv + lanes - 1) / lanes * lanes;
    Vec zeros = zero();  // x * 0 is NaN unless x is finite
    for (std::int64_t j = 0; j < n; ++j) {
      float* const row = to + j * width;
      widen(bytes + j * row_stride * size, type, stride, Dv, row);
      for (std::int64_t c = Dv; c < width; ++c) row[c] = 0;
      for (std::int64_t c = 0; c < width; c += lanes) zeros = hn::MulAdd(load(row + c), zero(), zeros);
    }
    for (std::int64_t x = n * width; x < block_keys * width; ++x) to[x] = 0;
    return hn::AllTrue(Floats(), hn::Eq(zeros, zero()));
  }

  /// Calls stage(s), s [R][tile_vectors] in registers: s[r] = <q[r], keys offset .. offset + tile_keys>.
  template <int R, class Stage>
  static HWY_INLINE void product_tile(const Query* q, const Key* k, int offset, std::int64_t D, const Stage& stage) {
    Vec s[R][tile_vectors];
    clear_tile(s);
    const float* key = k + offset;
    for (std::int64_t c = 0; c < D; ++c, key += block_keys) multiply_add(q + c, D, key, s);
    stage(s);
  }

  static HWY_INLINE void store_weights(const Vec (&p)[tile_vectors], Weight* to) {
#pragma GCC unroll 8
    for (int v = 0; v < tile_vectors; ++v) store(p[v], to + v * lanes);
  }
  static HWY_INLINE void clear_weights(Weight* to) {
    for (int v = 0; v < tile_vectors; ++v) store(zero(), to + v * lanes);
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
  static void weights_times_visible_values(const Weight* weights, std::uint64_t word, const Value* v,
                                           std::int64_t width, float* o) {
    if (word == 0) return;
    for (std::int64_t c = 0; c < width; c += lanes) {
      Vec sum = zero();
      for (std::uint64_t rest = word; rest != 0; rest &= rest - 1) {
        const int j = std::countr_zero(rest);
        sum = hn::MulAdd(set(weights[j]), load(v + j * width + c), sum);
      }
      store(hn::Add(load(o + c), sum), o + c);
    }
  }

 private:
  // s[r][x] += a[r * stride] * b[x]
  template <int R, int C>
  static HWY_INLINE void multiply_add(const float* a, std::int64_t stride, const float* b, Vec (&s)[R][C]) {
    Vec column[C];
#pragma GCC unroll 8
    for (int x = 0; x < C; ++x) column[x] = load(b + x * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec row = set(a[r * stride]);
#pragma GCC unroll 8
      for (int x = 0; x < C; ++x) s[r][x] = hn::MulAdd(row, column[x], s[r][x]);
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
