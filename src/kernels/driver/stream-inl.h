// What engines share that read keys and values as they lie in memory, without packing: for a few rows a key is used
// too seldom for a packed copy of it to pay. A row of a key is contiguous; its product with a query is summed lane by
// lane, and a tree of shuffles turns as many such vectors as a vector has lanes into one vector of sums.
//
// A processor fetches well only what it sees coming: each line is asked for about 16 KB before it is read, spread
// evenly over the arithmetic, and never beyond the range.
#if defined(LEVELHEAD_DRIVER_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_STREAM_INL_H_
#undef LEVELHEAD_DRIVER_STREAM_INL_H_
#else
#define LEVELHEAD_DRIVER_STREAM_INL_H_
#endif

#include "kernels/driver/tasks.hpp"
#include "kernels/driver/tile-inl.h"
#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

inline constexpr std::int64_t bytes_ahead = std::int64_t{16} << 10, line_bytes = 64;

/// Rows of one block where they lie. It stands at the start of an engine's Key or Value array.
struct StreamedRows {
  const std::byte* data = nullptr;
  const std::byte* last = nullptr;  // the segment's last row: nothing behind it is asked for
  std::int64_t row_bytes = 0;
  std::int64_t ahead = 0;  // bytes from a row to the one to ask for beside it; 0 near the end
  std::int64_t count = 0;  // rows that are there
  std::int64_t width = 0;  // elements of a row

  HWY_INLINE void fetch_ahead(const std::byte* from, std::int64_t bytes) const {
    for (std::int64_t x = 0; x < bytes; x += line_bytes) __builtin_prefetch(from + ahead + x, 0, 2);
  }
};
inline constexpr std::int64_t streamed_rows_bytes = 64;
static_assert(sizeof(StreamedRows) <= streamed_rows_bytes);

HWY_INLINE StreamedRows& rows_in(std::byte* array) { return *reinterpret_cast<StreamedRows*>(array); }
HWY_INLINE const StreamedRows& rows_in(const std::byte* array) { return *reinterpret_cast<const StreamedRows*>(array); }

/// Points at n rows of `width` elements, or, where those do not lie side by side or are no multiple of `unit`, at a
/// copy [block_keys][width, rounded up] that zeros fill.
inline void stream_rows(const void* data, std::int64_t element_bytes, std::int64_t row_stride, std::int64_t stride,
                        std::int64_t n, std::int64_t width, std::int64_t unit, std::byte* copy, StreamedRows& rows) {
  const std::int64_t whole = (width + unit - 1) / unit * unit, row = whole * element_bytes;
  rows.data = static_cast<const std::byte*>(data);
  rows.count = n;
  rows.width = whole;
  rows.row_bytes = row_stride * element_bytes;
  const std::int64_t ahead = (row > 0 && row < bytes_ahead ? bytes_ahead / row : 1) * rows.row_bytes;
  // Written so that no pointer leaves the tensor.
  const bool inside = rows.row_bytes > 0 && rows.last - rows.data >= ahead + (block_keys - 1) * rows.row_bytes;
  rows.ahead = inside ? ahead : 0;
  if (stride == 1 && width == whole) return;
  __builtin_memset(copy, 0, static_cast<std::size_t>(n * row));
  for (std::int64_t j = 0; j < n; ++j) {
    const std::byte* const from = rows.data + j * rows.row_bytes;
    for (std::int64_t c = 0; c < width; ++c) {
      __builtin_memcpy(copy + j * row + c * element_bytes, from + c * stride * element_bytes,
                       static_cast<std::size_t>(element_bytes));
    }
  }
  rows.data = copy;
  rows.row_bytes = row;
  rows.ahead = 0;
}

template <class V>
HWY_INLINE V add_pairs(V a, V b) {
  const Floats f;
  return hn::Add(hn::InterleaveLower(f, a, b), hn::InterleaveUpper(f, a, b));
}
HWY_INLINE Vec add_quads(Vec a, Vec b) {
  const hn::Repartition<double, Floats> d;
  const auto x = hn::BitCast(d, a), y = hn::BitCast(d, b);
  return hn::Add(hn::BitCast(Floats(), hn::InterleaveLower(d, x, y)),
                 hn::BitCast(Floats(), hn::InterleaveUpper(d, x, y)));
}
#if HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_NEON
HWY_INLINE Vec add_halves(Vec a, Vec b) {
  const Floats f;
  return hn::Add(hn::ConcatLowerLower(f, b, a), hn::ConcatUpperUpper(f, b, a));
}
#endif

/// Lane x of the result is the sum over v[x], by the same additions for every x.
HWY_INLINE Vec sums_of(const Vec (&v)[lanes]) {
  Vec quads[lanes / 4];  // four sums, in parts, in each 128-bit block
  repeat<lanes / 4>(LEVELHEAD_EACH(x) {
    quads[x] = add_quads(add_pairs(v[4 * x], v[4 * x + 1]), add_pairs(v[4 * x + 2], v[4 * x + 3]));
  });
#if HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_NEON
  if constexpr (lanes == 8) return add_halves(quads[0], quads[1]);
  if constexpr (lanes == 16) {
    const Vec even = add_halves(quads[0], quads[2]), odd = add_halves(quads[1], quads[3]);
    return hn::OddEvenBlocks(hn::Add(odd, hn::SwapAdjacentBlocks(odd)), hn::Add(even, hn::SwapAdjacentBlocks(even)));
  }
#endif
  return quads[0];
}

/// What one call of stream_products multiplies: R queries and lanes / R keys from `first` on.
template <class Engine, int R>
struct StreamedTile {
  static constexpr int count = lanes / R;
  static constexpr std::int64_t step = Engine::step, step_bytes = step * Engine::element_bytes;

  const typename Engine::Query* q;
  std::int64_t q_stride;
  const std::byte* key[count];
  std::int64_t chunks;  // vectors of a row

  /// A key that is not there is read as the last one, and no one sees it.
  HWY_INLINE StreamedTile(const typename Engine::Query* queries, std::int64_t stride, const StreamedRows& keys,
                          std::int64_t first)
      : q(queries), q_stride(stride), chunks(keys.width / step) {
    repeat<count>(LEVELHEAD_EACH(x) {
      const std::int64_t j = first + x < keys.count ? first + x : keys.count - 1;
      key[x] = keys.data + j * keys.row_bytes;
    });
  }
};

/// a[x] = lane by lane <q, key x>, one row of queries: a key after the other.
template <class Engine, int kChunks>
HWY_INLINE void stream_row_products(const StreamedTile<Engine, 1>& t, Vec (&a)[lanes]) {
  repeat<lanes>(LEVELHEAD_EACH(x) {
    const std::byte* key = t.key[x];
    Vec sum = zero();
    if constexpr (kChunks > 0) {
      repeat<kChunks>(LEVELHEAD_EACH(c) {
        sum = Engine::multiply_add(sum, Engine::load_query(t.q + c * t.step), Engine::load_key(key + c * t.step_bytes));
      });
    } else {
      const typename Engine::Query* q = t.q;
      for (std::int64_t c = 0; c < t.chunks; ++c, q += t.step, key += t.step_bytes)
        sum = Engine::multiply_add(sum, Engine::load_query(q), Engine::load_key(key));
    }
    a[x] = sum;
  });
}

/// a[r * keys + x] = lane by lane <q[r], key x>: a vector of a key is loaded once for all rows.
template <class Engine, int R>
HWY_INLINE void stream_products(const StreamedTile<Engine, R>& t, Vec (&a)[lanes]) {
  constexpr int count = StreamedTile<Engine, R>::count;
  repeat<lanes>(LEVELHEAD_EACH(x) { a[x] = zero(); });
  for (std::int64_t c = 0; c < t.chunks; ++c) {
    decltype(Engine::load_query(t.q)) query[R];
    repeat<R>(LEVELHEAD_EACH(r) { query[r] = Engine::load_query(t.q + r * t.q_stride + c * t.step); });
    repeat<count>(LEVELHEAD_EACH(x) {
      const auto key = Engine::load_key(t.key[x] + c * t.step_bytes);
      repeat<R>(LEVELHEAD_EACH(r) { a[r * count + x] = Engine::multiply_add(a[r * count + x], query[r], key); });
    });
  }
  repeat<lanes>(LEVELHEAD_EACH(x) { pin(a[x]); });
}

/// sums [R][width]: the products of R queries with the keys offset .. offset + width; kChunks: vectors of a row, if
/// their number is known. Not inlined: what follows would take its registers.
template <class Engine, int R, int kChunks>
HWY_NOINLINE void stream_sums(const typename Engine::Query* q, std::int64_t q_stride, const StreamedRows& keys,
                              std::int64_t offset, int width, float* sums) {
  constexpr int count = lanes / R;
  for (int j = 0; j < width; j += count) {
    const StreamedTile<Engine, R> tile(q, q_stride, keys, offset + j);
    Vec a[lanes];
    if constexpr (R == 1) {
      stream_row_products<Engine, kChunks>(tile, a);
      store(sums_of(a), sums + j);
    } else {
      stream_products<Engine, R>(tile, a);
      float each[lanes];
      store(sums_of(a), each);
      repeat<R>(LEVELHEAD_EACH(r) { __builtin_memcpy(sums + r * width + j, each + r * count, count * sizeof(float)); });
    }
    repeat<count>(LEVELHEAD_EACH(x) { keys.fetch_ahead(tile.key[x], keys.width * Engine::element_bytes); });
  }
}

/// The rest of the engine's product_tile: sums [R][C x lanes] into registers.
template <int R, int C, class Stage>
HWY_INLINE void stage_sums(const float* sums, int offset, const Stage& stage) {
  Vec s[R][C];
  repeat<R>(LEVELHEAD_EACH(r) { repeat<C>(LEVELHEAD_EACH(v) { s[r][v] = load(sums + (r * C + v) * lanes); }); });
  stage(0, offset, s);
}

/// Tells an engine's keys and values where the segment ends.
inline void end_streams(const Problem& p, const Task& task, std::byte* keys, std::byte* values) {
  const Segment& s = *task.segment;
  const std::int64_t last = s.k_end > s.k_begin ? s.k_end - 1 : s.k_begin;
  rows_in(keys).last = element(p.k, p.k.at(s.b, task.kv_head, last, 0));
  rows_in(values).last = element(p.v, p.v.at(s.b, task.kv_head, last, 0));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
