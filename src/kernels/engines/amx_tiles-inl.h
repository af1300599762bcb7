// The engine of AMX: bf16 products by tiles, 32 rows x 128 keys at a time. Untested on hardware: no machine that built
// it had AMX. Everything but the operations of Tile runs everywhere, as amx-twin.
//
// Sums can't go from tiles to vectors but through memory, so a tile's products are stored once, in L1, and the softmax
// stage reads them row by row. Packing, weights and exp2 are those of Bf16Pairs.
#if defined(LEVELHEAD_ENGINES_AMX_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_ENGINES_AMX_TILES_INL_H_
#undef LEVELHEAD_ENGINES_AMX_TILES_INL_H_
#else
#define LEVELHEAD_ENGINES_AMX_TILES_INL_H_
#endif

#include "kernels/engines/bf16_pairs-inl.h"
#include "kernels/engines/tile_registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

struct AmxTiles : Bf16Pairs {
  // As in Bf16Pairs, but D rounded up to 32, Dv to 16, keys to 32: zeros make every tile a whole one.
  using Session = TileSession;

  static constexpr int depth = 2 * register_words;  // components, or keys, of one product of tiles
  static constexpr int tile_rows = 32, few_rows = 16;
  static constexpr int tile_vectors = 8, tile_keys = tile_vectors * lanes, least_vectors = depth / lanes;
  static constexpr int column_unit = register_words;
  static_assert(block_keys % tile_keys == 0 && tile_keys % depth == 0);

  static constexpr std::int64_t query_elements(std::int64_t D) { return D < 1 ? depth : round_to(D, depth); }
  static constexpr std::int64_t key_elements(std::int64_t D) { return query_elements(D) * block_keys; }
  static constexpr std::int64_t value_elements(std::int64_t Dv) { return round_to(Dv, column_unit) * block_keys; }

  static void pack_query(const void* q, DType, std::int64_t stride, std::int64_t D, Query* to) {
    copy_row(static_cast<const std::uint16_t*>(q), stride, D, query_elements(D), to);
  }
  static void clear_query(std::int64_t D, Query* to) { clear(to, query_elements(D)); }

  static void pack_keys(const void* k, DType type, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                        std::int64_t D, float* temporary, Key* to) {
    Bf16Pairs::pack_keys<depth>(k, type, row_stride, stride, n, D, temporary, to);
    clear(to + Bf16Pairs::key_elements(D), key_elements(D) - Bf16Pairs::key_elements(D));
  }

  static bool pack_values(const void* v, DType type, std::int64_t row_stride, std::int64_t stride, std::int64_t n,
                          std::int64_t Dv, Value* to) {
    const std::int64_t width = round_to(Dv, column_unit), there = round_to(n, 2);
    clear(to + there * width, (round_to(n, depth) - there) * width);
    return Bf16Pairs::pack_values<column_unit>(v, type, row_stride, stride, n, Dv, to);
  }

  /// Calls stage once for each row and piece of C x lanes keys: [1][up to 4 vectors].
  template <int R, int C, class Stage>
  static HWY_INLINE void product_tile(const Query* q, const Key* k, int offset, std::int64_t D, const Stage& stage) {
    constexpr int pieces = C < 4 ? 1 : C / 4, vectors = C / pieces;
    alignas(64) float sums[R * block_keys];
    multiply<R>({q, query_elements(D)}, {k + 2 * offset, 2 * block_keys}, query_elements(D) / depth, C * lanes, sums);
    for (int row = 0; row < R; ++row) {
      for (int piece = 0; piece < pieces; ++piece) {
        const int c = piece * vectors * lanes;
        Vec s[1][vectors];
        repeat<vectors>(LEVELHEAD_EACH(x) { s[0][x] = load(sums + row * block_keys + c + x * lanes); });
        stage(row, offset + c, s);
      }
    }
  }

  /// o[r] += weights[r] x values over keys from .. to, summed from zero; rows without a bit keep their o. from is a
  /// multiple of 32; the keys from `to` to the next one weigh 0.
  template <class, int R>
  static void weights_times_values(const Weight* weights, const KeyBits* words, int from, int to, const Value* v,
                                   std::int64_t width, float* o) {
    alignas(64) float sums[R * block_keys];
    const std::int64_t steps = round_to(to - from, depth) / depth;
    for (std::int64_t c = 0; c < width; c += block_keys) {
      const std::int64_t columns = width - c < block_keys ? width - c : block_keys;
      multiply<R>({weights + from, block_keys}, {v + from * width + 2 * c, 2 * width}, steps, columns, sums);
      for (int row = 0; row < R; ++row) {
        if (!words[row].none()) add(sums + row * block_keys, columns, o + row * width + c);
      }
    }
  }

  /// The same for one row, zeros in place of the keys it does not see: for values that are not finite. A row's sum must
  /// not depend on which of the two made it, so this one multiplies by tiles too.
  static void weights_times_visible_values(const Weight* weights, const KeyBits& word, const Value* v,
                                           std::int64_t width, float* o) {
    alignas(64) float sums[register_rows * register_words];
    alignas(64) std::uint32_t shown[register_rows * register_words];
    for (std::int64_t c = 0; c < width; c += register_words) {
      Tile<0>::clear();
      for (int j = 0; j < block_keys; j += depth) {
        const std::uint64_t seen = word.part(j, depth);
        if (seen == 0) continue;
        copy_visible(v + j * width + 2 * c, width, seen, shown);
        Tile<4>::load(weights + j, 0);
        Tile<6>::load(shown, row_bytes);
        Tile<0>::add_product<4, 6>();
      }
      Tile<0>::store(sums, row_bytes);
      add(sums, register_words, o + c);
    }
  }

 private:
  static constexpr std::int64_t row_bytes = sizeof(float) * register_words;

  static constexpr std::int64_t round_to(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

  /// Rows of 16-bit numbers, `stride` of them apart.
  struct Matrix {
    const std::uint16_t* at;
    std::int64_t stride;

    template <int T>
    HWY_INLINE void load(std::int64_t row, std::int64_t c) const {
      Tile<T>::load(at + row * stride + c, stride * 2);
    }
    template <int T>
    HWY_INLINE void stream(std::int64_t row, std::int64_t c) const {
      Tile<T>::stream(at + row * stride + c, stride * 2);
    }
  };

  // sums [R][block_keys]: a [R][32 steps] x b [16 steps][columns][2], from zero. columns is a multiple of 16.
  template <int R>
  static HWY_NOINLINE void multiply(const Matrix a, const Matrix b, std::int64_t steps, std::int64_t columns,
                                    float* sums) {
    float* pending = nullptr;
    std::int64_t c = 0;
    for (; c + 2 * register_words <= columns; c += 2 * register_words) {
      multiply_columns<R, 2>(a, {b.at + 2 * c, b.stride}, steps, pending);
      pending = sums + c;
    }
    if (c < columns) {
      multiply_columns<R, 1>(a, {b.at + 2 * c, b.stride}, steps, pending);
      finish<R, 1>(sums + c);
    } else if (pending != nullptr) {
      finish<R, 2>(pending);
    }
  }

  // Two tiles of rows x two of columns: sums in 0 to 3, a in 4 and 5, b in 6 and 7.
  template <int R, int kColumns>
  static HWY_INLINE void multiply_columns(const Matrix& a, const Matrix& b, std::int64_t steps, float* pending) {
    step<R, kColumns, true>(a, b, 0, pending);
    for (std::int64_t k = 1; k < steps; ++k) step<R, kColumns, false>(a, b, k, nullptr);
  }

  template <int R, int kColumns, bool kFirst>
  static HWY_INLINE void step(const Matrix& a, const Matrix& b, std::int64_t k, float* pending) {
    a.template load<4>(0, depth * k);
    b.template stream<6>(register_rows * k, 0);
    if constexpr (kFirst) renew<0>(pending);
    Tile<0>::add_product<4, 6>();
    if constexpr (kColumns == 2) b.template stream<7>(register_rows * k, 2 * register_words);
    if constexpr (kFirst) renew<1>(pending);
    if constexpr (kColumns == 2) Tile<1>::add_product<4, 7>();
    if constexpr (R > register_rows) {
      a.template load<5>(register_rows, depth * k);
      if constexpr (kFirst) renew<2>(pending);
      Tile<2>::add_product<5, 6>();
      if constexpr (kFirst) renew<3>(pending);
      if constexpr (kColumns == 2) Tile<3>::add_product<5, 7>();
    }
  }

  // A store waits for the products before it and holds up what follows. So the sums of the columns before are stored
  // one by one, each just before its tile is needed again, with products in between.
  template <int T>
  static HWY_INLINE void renew(float* pending) {
    if (pending != nullptr) store<T>(pending);
    Tile<T>::clear();
  }

  template <int T>
  static HWY_INLINE void store(float* sums) {
    Tile<T>::store(sums + T / 2 * register_rows * block_keys + T % 2 * register_words, 4 * block_keys);
  }

  template <int R, int kColumns>
  static HWY_INLINE void finish(float* sums) {
    store<0>(sums);
    if constexpr (kColumns == 2) store<1>(sums);
    if constexpr (R > register_rows) store<2>(sums);
    if constexpr (R > register_rows && kColumns == 2) store<3>(sums);
  }

  // o [n] += sums; n is a multiple of 16.
  static HWY_INLINE void add(const float* sums, std::int64_t n, float* o) {
    for (std::int64_t c = 0; c < n; c += lanes)
      levelhead::HWY_NAMESPACE::store(hn::Add(load(o + c), load(sums + c)), o + c);
  }

  // to [16][16]: pairs of keys of 16 columns, zeros for the keys whose bits are not set. from [16][width][2].
  static HWY_NOINLINE void copy_visible(const Value* from, std::int64_t width, std::uint64_t seen, std::uint32_t* to) {
    for (int k = 0; k < register_rows; ++k, seen >>= 2, from += 2 * width, to += register_words) {
      const std::uint32_t bits = (seen & 1 ? 0x0000FFFFU : 0U) | (seen & 2 ? 0xFFFF0000U : 0U);
      for (int c = 0; c < register_words; c += lanes)
        hn::StoreU(hn::And(pairs_at(from + 2 * c), hn::Set(Words(), bits)), Words(), to + c);
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
