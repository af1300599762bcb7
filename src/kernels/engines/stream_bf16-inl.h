// The engine of bf16 products for few rows: keys and values read where they lie. The contract is that of
// highway_f32-inl.h; the instructions, or their twin, are those of bf16_pairs-inl.h.
#if defined(LEVELHEAD_ENGINES_STREAM_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_ENGINES_STREAM_BF16_INL_H_
#undef LEVELHEAD_ENGINES_STREAM_BF16_INL_H_
#else
#define LEVELHEAD_ENGINES_STREAM_BF16_INL_H_
#endif

#include "kernels/driver/stream-inl.h"
#include "kernels/engines/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

struct StreamBf16 : Bf16Pairs {
  using Key = std::byte;
  using Value = std::byte;

  static constexpr bool packs = false;
  static constexpr std::int64_t element_bytes = 2, step = 2 * lanes;

  static constexpr std::int64_t query_elements(std::int64_t D) { return (D + step - 1) / step * step; }
  static constexpr std::int64_t key_elements(std::int64_t) {
    return streamed_rows_bytes + static_cast<std::int64_t>(sizeof(float)) * tile_rows * tile_keys;
  }
  static constexpr std::int64_t value_elements(std::int64_t Dv) {
    return streamed_rows_bytes + block_keys * query_elements(Dv) * element_bytes;
  }

  static void pack_query(const void* q, DType, std::int64_t stride, std::int64_t D, Query* to) {
    copy_row(static_cast<const std::uint16_t*>(q), stride, D, query_elements(D), to);
  }
  static void clear_query(std::int64_t D, Query* to) { clear(to, query_elements(D)); }

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

  static HWY_INLINE Pairs load_query(const Query* q) { return pairs_at(q); }
  static HWY_INLINE Pairs load_key(const std::byte* k) {
    return hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(k));
  }
  static HWY_INLINE Vec multiply_add(Vec sum, Pairs q, Pairs k) { return dot(sum, q, k); }

  template <int R, int C, class Stage>
  static HWY_INLINE void product_tile(const Query* q, const Key* k, int offset, std::int64_t D, const Stage& stage) {
    const StreamedRows& keys = rows_in(k);
    auto* const sums = const_cast<float*>(reinterpret_cast<const float*>(k + streamed_rows_bytes));
    const std::int64_t stride = query_elements(D);
    if (R == 1 && D == 4 * step) {  // the usual sizes with the query in registers
      stream_sums<StreamBf16, R, 4>(q, stride, keys, offset, C * lanes, sums);
    } else if (R == 1 && D == 2 * step) {
      stream_sums<StreamBf16, R, 2>(q, stride, keys, offset, C * lanes, sums);
    } else {
      stream_sums<StreamBf16, R, 0>(q, stride, keys, offset, C * lanes, sums);
    }
    stage_sums<R, C>(sums, offset, stage);
  }

  template <int R, int C>
  static HWY_INLINE void accumulate_values(const Weight* weights, int from, int to, const Value* v, std::int64_t c,
                                           std::int64_t, Vec (&s)[R][C]) {
    const StreamedRows& values = rows_in(v);
    const std::byte* row = values.data + from * values.row_bytes + c * element_bytes;
    const std::int64_t next = values.row_bytes;
    const Pairs shown = hn::Set(Words(), 0xFFFFFFFFU);
    for (int j = from; j < to; j += 2, row += 2 * next) {
      values.fetch_ahead(row, C * lanes * element_bytes);
      values.fetch_ahead(row + next, C * lanes * element_bytes);
      add_products<false>(weights + j, row, row + next, shown, s);
    }
    pin_tile(s);
  }

  /// o += weights x values of one row, nothing in place of the keys it does not see.
  static void weights_times_visible_values(const Weight* weights, const KeyBits& word, const Value* v,
                                           std::int64_t width, float* o) {
    if (word.none()) return;
    std::int64_t c = 0;
    for (; c + 4 * lanes <= width; c += 4 * lanes) add_visible<4>(weights, word, rows_in(v), c, o + c);
    for (; c < width; c += lanes) add_visible<1>(weights, word, rows_in(v), c, o + c);
  }

 private:
  // s[r][x] += a pair of weights [r * block_keys] times the columns of two rows side by side, the first in the low
  // halves. kMasked: bits of `shown` alone.
  template <bool kMasked, int R, int C>
  static HWY_INLINE void add_products(const Weight* weights, const std::byte* a, const std::byte* b, Pairs shown,
                                      Vec (&s)[R][C]) {
    Pairs column[C];
#if LEVELHEAD_AVX512_BF16
    if constexpr (C % 2 == 0) {
      const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                           37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
      const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
      repeat<C / 2>(LEVELHEAD_EACH(x) {
        const __m512i first = _mm512_loadu_si512(a + 2 * x * lanes * element_bytes);
        const __m512i second = _mm512_loadu_si512(b + 2 * x * lanes * element_bytes);
        column[2 * x] = Pairs{_mm512_permutex2var_epi16(first, low, second)};
        column[2 * x + 1] = Pairs{_mm512_permutex2var_epi16(first, high, second)};
      });
    } else
#endif
    {
      repeat<C>(LEVELHEAD_EACH(x) { column[x] = join(a + x * lanes * element_bytes, b + x * lanes * element_bytes); });
    }
    if constexpr (kMasked) repeat<C>(LEVELHEAD_EACH(x) { column[x] = hn::And(column[x], shown); });
    repeat<R>(LEVELHEAD_EACH(r) {
      const Pairs weight = pair_of(weights + r * block_keys);
      repeat<C>(LEVELHEAD_EACH(x) { s[r][x] = dot(s[r][x], weight, column[x]); });
    });
  }

  // A vector of elements of each row, side by side.
  static HWY_INLINE Pairs join(const std::byte* a, const std::byte* b) {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const auto at = [&](const std::byte* p)
                        HWY_ATTR { return hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(p)); };
    return hn::Or(hn::PromoteTo(Words(), at(a)), hn::ShiftLeft<16>(hn::PromoteTo(Words(), at(b))));
  }

  template <int C>
  static HWY_INLINE void add_visible(const Weight* weights, const KeyBits& word, const StreamedRows& values,
                                     std::int64_t c, float* o) {
    Vec s[1][C];
    clear_tile(s);
    const std::byte* const first = values.data + c * element_bytes;
    for (int j = word.first() / 2 * 2; j < word.end(); j += 2) {
      const std::uint64_t seen = word.part(j, 2);
      if (seen == 0) continue;
      const std::uint32_t shown = ((seen & 1) != 0 ? 0x0000FFFFU : 0U) | ((seen & 2) != 0 ? 0xFFFF0000U : 0U);
      // A row that is not seen may not be there.
      const std::byte* const row = first + j * values.row_bytes;
      const std::byte* const a = (seen & 1) != 0 ? row : row + values.row_bytes;
      const std::byte* const b = (seen & 2) != 0 ? row + values.row_bytes : row;
      add_products<true>(weights + j, a, b, hn::Set(Words(), shown), s);
    }
    pin_tile(s);
    const KeyBits one[1] = {KeyBits::every()};
    add_tile(s, one, 0, o);
  }
};

/// A row alone has registers for more columns, and needs their independent sums.
template <>
inline constexpr int wide_value_vectors<StreamBf16, 1> = 2 * Bf16Pairs::tile_vectors;

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
