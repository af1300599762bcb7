// The portable engine for few rows: keys and values of one 16- or 32-bit type, read where they lie and widened in
// registers. The contract is that of highway_f32-inl.h.
#if defined(LEVELHEAD_ENGINES_STREAM_F32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_ENGINES_STREAM_F32_INL_H_
#undef LEVELHEAD_ENGINES_STREAM_F32_INL_H_
#else
#define LEVELHEAD_ENGINES_STREAM_F32_INL_H_
#endif

#include "kernels/driver/stream-inl.h"
#include "kernels/engines/highway_f32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

template <DType kType>
struct StreamF32 : HighwayF32 {
  using Key = std::byte;
  using Value = std::byte;

  static constexpr bool packs = false;
  static constexpr int tile_rows = 4;
  static constexpr std::int64_t element_bytes = static_cast<std::int64_t>(size_of(kType)), step = lanes;

  static constexpr std::int64_t query_elements(std::int64_t D) { return (D + lanes - 1) / lanes * lanes; }
  static constexpr std::int64_t key_elements(std::int64_t) {
    return streamed_rows_bytes + static_cast<std::int64_t>(sizeof(float)) * tile_rows * tile_keys;
  }
  static constexpr std::int64_t value_elements(std::int64_t Dv) {
    return streamed_rows_bytes + block_keys * query_elements(Dv) * element_bytes;
  }

  static void pack_query(const void* q, DType type, std::int64_t stride, std::int64_t D, Query* to) {
    widen(q, type, stride, D, to);
    for (std::int64_t c = D; c < query_elements(D); ++c) to[c] = 0;
  }
  static void clear_query(std::int64_t D, Query* to) {
    for (std::int64_t c = 0; c < query_elements(D); ++c) to[c] = 0;
  }

  static void pack_keys(const void* k, DType, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                        std::int64_t D, float* temporary, Key* to) {
    stream_rows(k, element_bytes, row_stride, stride, n, D, step, reinterpret_cast<std::byte*>(temporary), rows_in(to));
  }
  /// Nobody looks at the values before they are used: partial blocks are multiplied over visible keys alone.
  static bool pack_values(const void* v, DType, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                          std::int64_t Dv, Value* to) {
    stream_rows(v, element_bytes, row_stride, stride, n, Dv, lanes, to + streamed_rows_bytes, rows_in(to));
    return false;
  }

  static HWY_INLINE Vec load_query(const Query* q) { return load(q); }
  static HWY_INLINE Vec load_key(const std::byte* k) { return widen_vector<kType>(k); }
  static HWY_INLINE Vec multiply_add(Vec sum, Vec q, Vec k) { return hn::MulAdd(q, k, sum); }

  template <int R, int C, class Stage>
  static HWY_INLINE void product_tile(const Query* q, const Key* k, int offset, std::int64_t D, const Stage& stage) {
    auto* const sums = const_cast<float*>(reinterpret_cast<const float*>(k + streamed_rows_bytes));
    stream_sums<StreamF32, R, 0>(q, query_elements(D), rows_in(k), offset, C * lanes, sums);
    stage_sums<R, C>(sums, offset, stage);
  }

  template <int R, int C>
  static HWY_INLINE void accumulate_values(const Weight* weights, int from, int to, const Value* v, std::int64_t c,
                                           std::int64_t, Vec (&s)[R][C]) {
    const StreamedRows& values = rows_in(v);
    const std::byte* row = values.data + from * values.row_bytes + c * element_bytes;
    for (int j = from; j < to; ++j, row += values.row_bytes) {
      values.fetch_ahead(row, C * lanes * element_bytes);
      add_products(weights + j, row, s);
    }
    pin_tile(s);
  }

  /// o += weights x values of one row over the keys of word alone, in the order of the keys.
  static void weights_times_visible_values(const Weight* weights, const KeyBits& word, const Value* v,
                                           std::int64_t width, float* o) {
    if (word.none()) return;
    std::int64_t c = 0;
    for (; c + 4 * lanes <= width; c += 4 * lanes) add_visible<4>(weights, word, rows_in(v), c, o + c);
    for (; c < width; c += lanes) add_visible<1>(weights, word, rows_in(v), c, o + c);
  }

 private:
  // s[r][x] += weights[r * block_keys] * the row's column x
  template <int R, int C>
  static HWY_INLINE void add_products(const Weight* weights, const std::byte* row, Vec (&s)[R][C]) {
    Vec column[C];
    repeat<C>(LEVELHEAD_EACH(x) { column[x] = load_key(row + x * lanes * element_bytes); });
    repeat<R>(LEVELHEAD_EACH(r) {
      const Vec weight = set(weights[r * block_keys]);
      repeat<C>(LEVELHEAD_EACH(x) { s[r][x] = hn::MulAdd(weight, column[x], s[r][x]); });
    });
  }

  template <int C>
  static HWY_INLINE void add_visible(const Weight* weights, const KeyBits& word, const StreamedRows& values,
                                     std::int64_t c, float* o) {
    Vec s[1][C];
    clear_tile(s);
    const std::byte* const first = values.data + c * element_bytes;
    for (int j = word.first(); j < word.end(); ++j) {
      if (word.part(j, 1) == 0) continue;
      const std::byte* const row = first + j * values.row_bytes;
      values.fetch_ahead(row, C * lanes * element_bytes);
      add_products(weights + j, row, s);
    }
    pin_tile(s);
    const KeyBits one[1] = {KeyBits::every()};
    add_tile(s, one, 0, o);
  }
};

/// A row alone has registers for more columns, and needs their independent sums.
template <DType kType>
inline constexpr int wide_value_vectors<StreamF32<kType>, 1> = 2 * HighwayF32::tile_vectors;

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
