// The softmax stage: turns a tile of products, still in the engine's registers, into weights, and keeps each row's
// state. Included once per target.
#if defined(LEVELHEAD_DRIVER_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_SOFTMAX_INL_H_
#undef LEVELHEAD_DRIVER_SOFTMAX_INL_H_
#else
#define LEVELHEAD_DRIVER_SOFTMAX_INL_H_
#endif

#include <bit>
#include <cstdint>

#include "kernels/driver/tasks.hpp"
#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// Per-row accumulators with one number per lane, relative to the row's m; s is the logit, t = s - m.
enum LaneField : int {
  lane_weighted,  // sum p t
  lane_sum2,      // sum p^2
  lane_sum3,      // sum p^3
  lane_t,         // sum t
  lane_t2,        // sum t^2
  lane_min,       // min s
  lane_uncapped,  // max |scaled|
  lane_fields
};

/// What the lanes were folded into so far; count is kept at every level.
struct Folded {
  double weighted = 0, sum2 = 0, sum3 = 0, t = 0, t2 = 0;
  std::int64_t count = 0, first_key = 0;
  float first_logit = 0;
};

/// The rows of one task, in scratch memory; r counts them, padded to the engine's tile height.
template <class Engine>
struct Rows {
  typename Engine::Query* q = nullptr;         // [r][Engine::query_elements(D)]
  float* m = nullptr;                          // [r] running maximum, raised per row and never per block
  float* multiplier = nullptr;                 // [r]
  float* l = nullptr;                          // [r][lanes] sum of weights
  float* o = nullptr;                          // [r][o_stride]
  float* stats = nullptr;                      // [r][lane_fields][lanes], or null
  Folded* folded = nullptr;                    // [r]
  typename Engine::Weight* weights = nullptr;  // [tile rows][block_keys], one group at a time
  std::int64_t o_stride = 0;
  float softcap = 0;

  float* lane(int r, LaneField field) const { return stats + (r * lane_fields + field) * lanes; }
};

/// One group of rows against one block of keys.
struct GroupBlock {
  int row = 0;                           // the group's first row
  int rows = 0;                          // real ones; the rest of the tile is padding
  std::int64_t key = 0;                  // absolute index of the block's first key
  const std::uint64_t* words = nullptr;  // [tile rows] visible keys of the block, a bit each
  const float* extra = nullptr;          // [tile rows][block_keys] bias + alibi, or null
};

template <StatisticsLevel kLevel, class Engine>
HWY_INLINE void fold(const Rows<Engine>& rows, int r) {
  if constexpr (kLevel >= StatisticsLevel::entropy) {
    Folded& f = rows.folded[r];
    const auto take = [&](LaneField field, double& into) {
      into += sum_lanes(rows.lane(r, field));
      store(zero(), rows.lane(r, field));
    };
    take(lane_weighted, f.weighted);
    if constexpr (kLevel == StatisticsLevel::all) {
      take(lane_sum2, f.sum2);
      take(lane_sum3, f.sum3);
      take(lane_t, f.t);
      take(lane_t2, f.t2);
    }
  }
}

// Moves the folded sums from m to m + delta; factor = e^-delta. l is the sum of weights before, n the keys so far.
HWY_INLINE void shift(Folded& f, double l, double n, double delta, double factor) {
  f.weighted = factor * (f.weighted - delta * l);
  f.sum2 *= factor * factor;
  f.sum3 *= factor * factor * factor;
  f.t2 += delta * (n * delta - 2 * f.t);
  f.t -= n * delta;
}

/// Raises row r's maximum to `m`: everything the row has summed so far is rescaled, the block's earlier weights
/// [0, offset) included.
template <StatisticsLevel kLevel, class Engine>
HWY_NOINLINE void raise(const Rows<Engine>& rows, const GroupBlock& g, int row, int offset, float m) {
  const int r = g.row + row;
  const float old = rows.m[r];
  if (!(m > old)) return;  // a NaN among the logits, or rounding: nothing to raise
  rows.m[r] = m;
  const std::uint64_t before = g.words[row] & ((std::uint64_t{1} << offset) - 1);
  const std::int64_t n = rows.folded[r].count + std::popcount(before);
  if (n == 0) return;
  const float factor = hn::GetLane(Engine::exp(set(old - m)));
  if constexpr (kLevel >= StatisticsLevel::entropy) {
    fold<kLevel>(rows, r);
    // Only -inf logits so far: their sums are 0 or infinite, and no shift changes them.
    if (old != minus_infinity) {
      shift(rows.folded[r], sum_lanes(rows.l + r * lanes), static_cast<double>(n), static_cast<double>(m) - old,
            factor);
    }
  }
  const Vec by = set(factor);
  store(hn::Mul(load(rows.l + r * lanes), by), rows.l + r * lanes);
  for (std::int64_t c = 0; c < rows.o_stride; c += lanes) {
    float* const o = rows.o + r * rows.o_stride + c;
    store(hn::Mul(load(o), by), o);
  }
  Engine::rescale_weights(rows.weights + row * block_keys, offset, factor);
}

template <StatisticsLevel kLevel, bool kPlain, class Engine>
HWY_INLINE void measure(const Rows<Engine>& rows, int r, Mask visible, Vec s, Vec t, Vec p) {
  if constexpr (kLevel >= StatisticsLevel::entropy) {
    const auto at = [&](LaneField field) { return rows.lane(r, field); };
    const auto shown = [&](Vec x) { return kPlain ? x : hn::IfThenElseZero(visible, x); };
    // 0 x -inf would be NaN; Max(bound, t) keeps a NaN in t.
    const Vec bounded = shown(hn::Max(set(std::numeric_limits<float>::lowest()), t));
    store(hn::MulAdd(p, bounded, load(at(lane_weighted))), at(lane_weighted));
    if constexpr (kLevel == StatisticsLevel::all) {
      const Vec square = hn::Mul(p, p), tt = shown(t);
      store(hn::Add(square, load(at(lane_sum2))), at(lane_sum2));
      store(hn::MulAdd(square, p, load(at(lane_sum3))), at(lane_sum3));
      store(hn::Add(tt, load(at(lane_t))), at(lane_t));
      store(hn::MulAdd(tt, tt, load(at(lane_t2))), at(lane_t2));
      const Vec low = kPlain ? s : hn::IfThenElse(visible, s, set(-minus_infinity));
      store(hn::Min(low, load(at(lane_min))), at(lane_min));
    }
  }
}

/// s [R][tile vectors]: products <q, k> of the tile's rows with keys offset .. offset + tile_keys of the block.
/// Writes the weights of the tile and updates m, l and the lanes of each row. kPlain: every key is visible to every
/// real row, and the logit is multiplier x product. Both forms give a row the same bits.
template <class Engine, StatisticsLevel kLevel, bool kPlain, int R>
HWY_INLINE void softmax_tile(const Rows<Engine>& rows, const GroupBlock& g, int offset,
                             Vec (&s)[R][Engine::tile_vectors]) {
  constexpr int C = Engine::tile_vectors;
  constexpr std::uint64_t all_keys = ~std::uint64_t{0} >> (64 - Engine::tile_keys);
#pragma GCC unroll 8
  for (int row = 0; row < R; ++row) {
    if (R > 1 && row >= g.rows) break;
    const int r = g.row + row;
    const std::uint64_t word = kPlain ? all_keys : (g.words[row] >> offset) & all_keys;
    typename Engine::Weight* const weights = rows.weights + row * block_keys + offset;
    if (!kPlain && word == 0) {
      Engine::clear_weights(weights);
      continue;
    }
    Vec(&x)[C] = s[row];
    Mask visible[C];
    Vec top = set(minus_infinity);
#pragma GCC unroll 8
    for (int v = 0; v < C; ++v) {
      x[v] = hn::Mul(x[v], set(rows.multiplier[r]));
      visible[v] = mask_of(word >> (v * lanes));
      if constexpr (kLevel == StatisticsLevel::all) {
        float* const uncapped = rows.lane(r, lane_uncapped);
        const Vec magnitude = hn::Abs(x[v]);
        store(hn::Max(kPlain ? magnitude : hn::IfThenElseZero(visible[v], magnitude), load(uncapped)), uncapped);
      }
      if constexpr (!kPlain) {
        if (rows.softcap > 0) x[v] = cap(x[v], rows.softcap);
        if (g.extra != nullptr) x[v] = hn::Add(x[v], load(g.extra + row * block_keys + offset + v * lanes));
      }
      top = hn::Max(top, kPlain ? x[v] : hn::IfThenElse(visible[v], x[v], set(minus_infinity)));
    }
    if (!hn::AllTrue(Floats(), hn::Le(top, set(rows.m[r])))) {
      raise<kLevel>(rows, g, row, offset, hn::GetLane(hn::MaxOfLanes(Floats(), top)));
    }
    if constexpr (kLevel == StatisticsLevel::all) {
      Folded& f = rows.folded[r];
      const std::uint64_t before = g.words[row] & ((std::uint64_t{1} << offset) - 1);
      if (f.count == 0 && before == 0) {
        float logits[Engine::tile_keys];
        for (int v = 0; v < C; ++v) store(x[v], logits + v * lanes);
        f.first_logit = logits[std::countr_zero(word)];
        f.first_key = g.key + offset + std::countr_zero(word);
      }
    }
    // While all logits are -inf, m is too; 0 in its place gives them weight 0.
    const Vec m = set(rows.m[r] == minus_infinity ? 0.0f : rows.m[r]);
    Vec l = load(rows.l + r * lanes);
    Vec p[C];
#pragma GCC unroll 8
    for (int v = 0; v < C; ++v) {
      const Vec t = hn::Sub(x[v], m);
      p[v] = Engine::exp(t);
      if constexpr (!kPlain) p[v] = hn::IfThenElseZero(visible[v], p[v]);
      l = hn::Add(l, p[v]);
      measure<kLevel, kPlain>(rows, r, visible[v], x[v], t, p[v]);
    }
    store(l, rows.l + r * lanes);
    Engine::store_weights(p, weights);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
