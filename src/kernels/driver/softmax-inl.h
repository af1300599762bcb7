// The softmax stage: turns a tile of products, still in the engine's registers, into weights, and keeps each row's
// state. Included once per target.
//
// A weight is 2^z, z = (s - m) log2(e), s the logit. m is the row's reference: the largest logit of the first tile in
// which it sees a key, raised only when a later one exceeds it by more than `headroom`. So hardly any row is rescaled,
// and what a row does depends on nothing but what it sees. Its true maximum is tracked where somebody asks for its
// state, which is moved there at the end.
#if defined(LEVELHEAD_DRIVER_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_SOFTMAX_INL_H_
#undef LEVELHEAD_DRIVER_SOFTMAX_INL_H_
#else
#define LEVELHEAD_DRIVER_SOFTMAX_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "kernels/driver/key_bits.hpp"
#include "kernels/driver/tile-inl.h"
#include "kernels/driver/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
inline constexpr double log2_e = 1.4426950408889634, ln_2 = 0.6931471805599453;

// e^5 = 148: cubes of such weights and their sums have all their digits in f32, and z is still rounded to 2^-22.
inline constexpr float headroom = 5;

// What a row keeps while its task runs lies together, so that the softmax stage finds all of it from one address: a
// vector of numbers, then accumulators with one number per lane. Weights are relative to m.
enum LaneField : int {
  lane_numbers,   // see Number
  lane_l,         // sum p
  lane_max,       // max s
  lane_weighted,  // sum p z
  lane_sum2,      // sum p^2
  lane_sum3,      // sum p^3
  lane_z,         // sum z
  lane_z2,        // sum z^2
  lane_min,       // min s
  lane_uncapped,  // max |scaled|, where the logit is another number
  lane_fields
};

enum Number : int {
  number_m,           // the reference
  number_subtracted,  // m, or 0 while that is -inf: all logits so far are, and get weight 0
  number_limit,       // m + headroom: a larger logit raises m
  number_multiplier,
  numbers
};
static_assert(numbers <= lanes);

/// How many of the fields a level keeps; at `lse_max` the maximum only for rows whose state is asked for.
constexpr int fields_of(StatisticsLevel level) {
  return level == StatisticsLevel::lse_max   ? lane_max + 1
         : level == StatisticsLevel::entropy ? lane_weighted + 1
                                             : static_cast<int>(lane_fields);
}

/// What the lanes were folded into so far.
struct Folded {
  double weighted = 0, sum2 = 0, sum3 = 0, z = 0, z2 = 0;
  std::int64_t first_key = 0;
  float first_logit = 0;
};

/// The rows of one task, in scratch memory; r counts them, padded to the engine's tile height.
template <class Engine>
struct Rows {
  typename Engine::Query* q = nullptr;         // [r][Engine::query_elements(D)]
  float* sums = nullptr;                       // [r][fields][lanes], see LaneField
  float* o = nullptr;                          // [r][o_stride]
  std::int64_t* count = nullptr;               // [r] keys seen in the blocks before this one
  Folded* folded = nullptr;                    // [r]
  typename Engine::Weight* weights = nullptr;  // [tile rows][block_keys], one group at a time
  std::int64_t o_stride = 0;
  int fields = 0;
  bool measured = false;  // whether somebody asks for the rows' states
  float softcap = 0;
  bool plain = true;  // whether a logit is multiplier x product: no softcap, no bias, no slope

  float* lane(int r, LaneField field) const { return sums + (r * fields + field) * lanes; }
  float& number(int r, Number n) const { return lane(r, lane_numbers)[n]; }
};

/// One group of rows against one block of keys.
struct GroupBlock {
  int row = 0;                     // the group's first row
  std::int64_t key = 0;            // absolute index of the block's first key
  const KeyBits* words = nullptr;  // [tile rows] none for the padding of the last tile
  const float* extra = nullptr;    // [tile rows][block_keys] bias + alibi, or null
  int rows = 0;                    // real ones; padding follows
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
      take(lane_z, f.z);
      take(lane_z2, f.z2);
    }
  }
}

// Moves the folded sums to a reference that is higher by `delta` in units of z; factor = 2^-delta. l is the sum of
// weights before, n the keys so far.
inline void shift(Folded& f, double l, double n, double delta, double factor) {
  f.weighted = factor * (f.weighted - delta * l);
  f.sum2 *= factor * factor;
  f.sum3 *= factor * factor * factor;
  f.z2 += delta * (n * delta - 2 * f.z);
  f.z -= n * delta;
}

/// Raises row r's reference to `m`: everything the row has summed so far is rescaled, the block's earlier weights
/// [0, offset) included.
template <StatisticsLevel kLevel, class Engine>
HWY_NOINLINE void raise(const Rows<Engine>& rows, const GroupBlock& g, int row, int offset, float m) {
  const int r = g.row + row;
  const float old = rows.number(r, number_m);
  if (!(m > old)) return;  // a NaN or only -inf: nothing to raise
  rows.number(r, number_m) = rows.number(r, number_subtracted) = m;
  rows.number(r, number_limit) = m + headroom;
  const std::int64_t n = rows.count[r] + g.words[row].count_before(offset);
  if (n == 0) return;
  const float factor = hn::GetLane(Engine::exp2(set((old - m) * static_cast<float>(log2_e))));
  if constexpr (kLevel >= StatisticsLevel::entropy) {
    fold<kLevel>(rows, r);
    // Only -inf logits so far: their sums are 0 or infinite, and no shift changes them.
    if (old != minus_infinity) {
      const double delta = (static_cast<double>(m) - old) * log2_e;
      shift(rows.folded[r], sum_lanes(rows.lane(r, lane_l)), static_cast<double>(n), delta, factor);
    }
  }
  const Vec by = set(factor);
  store(hn::Mul(load(rows.lane(r, lane_l)), by), rows.lane(r, lane_l));
  for (std::int64_t c = 0; c < rows.o_stride; c += lanes) {
    float* const o = rows.o + r * rows.o_stride + c;
    store(hn::Mul(load(o), by), o);
  }
  Engine::rescale_weights(rows.weights + row * block_keys, offset, factor);
}

// A row's accumulators in registers while it meets one tile. at: the row's sums.
template <StatisticsLevel kLevel, bool kPlain>
class Measure {
 public:
  HWY_INLINE explicit Measure(const float* at) {
    if constexpr (kLevel >= StatisticsLevel::entropy) weighted_ = load(at + lane_weighted * lanes);
    if constexpr (kLevel == StatisticsLevel::all) {
      sum2_ = load(at + lane_sum2 * lanes);
      sum3_ = load(at + lane_sum3 * lanes);
      z_ = load(at + lane_z * lanes);
      z2_ = load(at + lane_z2 * lanes);
      min_ = load(at + lane_min * lanes);
    }
  }

  HWY_INLINE void add(Mask visible, Vec s, Vec z, Vec p) {
    if constexpr (kLevel >= StatisticsLevel::entropy) {
      const auto shown = [&](Vec x) HWY_ATTR { return kPlain ? x : hn::IfThenElseZero(visible, x); };
      // 0 x -inf would be NaN; Max(bound, z) keeps a NaN in z.
      const Vec bounded = shown(hn::Max(set(std::numeric_limits<float>::lowest()), z));
      weighted_ = hn::MulAdd(p, bounded, weighted_);
      if constexpr (kLevel == StatisticsLevel::all) {
        const Vec square = hn::Mul(p, p), seen = shown(z);
        sum2_ = hn::Add(square, sum2_);
        sum3_ = hn::MulAdd(square, p, sum3_);
        z_ = hn::Add(seen, z_);
        z2_ = hn::MulAdd(seen, seen, z2_);
        min_ = hn::Min(kPlain ? s : hn::IfThenElse(visible, s, set(-minus_infinity)), min_);
      }
    }
  }

  HWY_INLINE void keep(float* at) const {
    if constexpr (kLevel >= StatisticsLevel::entropy) store(weighted_, at + lane_weighted * lanes);
    if constexpr (kLevel == StatisticsLevel::all) {
      store(sum2_, at + lane_sum2 * lanes);
      store(sum3_, at + lane_sum3 * lanes);
      store(z_, at + lane_z * lanes);
      store(z2_, at + lane_z2 * lanes);
      store(min_, at + lane_min * lanes);
    }
  }

 private:
  Vec weighted_, sum2_, sum3_, z_, z2_, min_;
};

/// Scaled products become logits where that is more than a name: by the cap, bias and slopes.
template <class Engine, StatisticsLevel kLevel, int C>
HWY_INLINE void to_logits(const Rows<Engine>& rows, const GroupBlock& g, int row, int offset, const Mask (&visible)[C],
                          Vec (&x)[C]) {
  repeat<C>(LEVELHEAD_EACH(v) {
    if constexpr (kLevel == StatisticsLevel::all) {
      float* const uncapped = rows.lane(g.row + row, lane_uncapped);
      store(hn::Max(hn::IfThenElseZero(visible[v], hn::Abs(x[v])), load(uncapped)), uncapped);
    }
    if (rows.softcap > 0) x[v] = cap(x[v], rows.softcap);
    if (g.extra != nullptr) x[v] = hn::Add(x[v], load(g.extra + row * block_keys + offset + v * lanes));
  });
}

template <class Engine, int C>
HWY_INLINE void keep_first(const Rows<Engine>& rows, const GroupBlock& g, int row, int offset, std::uint64_t word,
                           const Vec (&x)[C]) {
  if (rows.count[g.row + row] != 0 || g.words[row].count_before(offset) != 0) return;
  Folded& f = rows.folded[g.row + row];
  float all[C * lanes];
  repeat<C>(LEVELHEAD_EACH(v) { store(x[v], all + v * lanes); });
  f.first_logit = all[std::countr_zero(word)];
  f.first_key = g.key + offset + std::countr_zero(word);
}

/// x [C]: products <q, k> of one row with the keys from `offset` of the block on. See softmax_tile.
template <class Engine, StatisticsLevel kLevel, bool kPlain, int C>
HWY_INLINE void softmax_row(const Rows<Engine>& rows, const GroupBlock& g, int row, int offset, Vec (&x)[C]) {
  const std::uint64_t word = kPlain ? ~std::uint64_t{0} : g.words[row].part(offset, C * lanes);
  typename Engine::Weight* const weights = rows.weights + row * block_keys + offset;
  if (!kPlain && word == 0) return Engine::template clear_weights<C>(weights);
  float* const at = rows.lane(g.row + row, lane_numbers);
  const Vec multiplier = set(at[number_multiplier]);
  Mask visible[C];
  repeat<C>(LEVELHEAD_EACH(v) {
    visible[v] = mask_of(word >> (v * lanes));
    x[v] = hn::Mul(x[v], multiplier);
  });
  if constexpr (!kPlain) {
    if (!rows.plain) to_logits<Engine, kLevel, C>(rows, g, row, offset, visible, x);
  }
  const auto seen = [&](auto v)
                        HWY_ATTR { return kPlain ? x[v] : hn::IfThenElse(visible[v], x[v], set(minus_infinity)); };
  Vec top = seen(0);
  repeat<C - 1>(LEVELHEAD_EACH(v) { top = hn::Max(top, seen(v + 1)); });
  if (!hn::AllTrue(Floats(), hn::Le(top, set(at[number_limit])))) {
    raise<kLevel>(rows, g, row, offset, hn::GetLane(hn::MaxOfLanes(Floats(), hn::Max(top, set(minus_infinity)))));
  }
  if (kLevel >= StatisticsLevel::entropy || rows.measured) {
    store(hn::Max(top, load(at + lane_max * lanes)), at + lane_max * lanes);
  }
  if constexpr (kLevel == StatisticsLevel::all) keep_first(rows, g, row, offset, word, x);
  const Vec m = set(at[number_subtracted]);
  Measure<kLevel, kPlain> measure(at);
  Vec l = load(at + lane_l * lanes);
  Vec p[C];
  repeat<C>(LEVELHEAD_EACH(v) {
    const Vec z = hn::Mul(hn::Sub(x[v], m), set(static_cast<float>(log2_e)));
    p[v] = Engine::exp2(z);
    if constexpr (!kPlain) p[v] = hn::IfThenElseZero(visible[v], p[v]);
    l = hn::Add(l, p[v]);
    measure.add(visible[v], x[v], z, p[v]);
  });
  measure.keep(at);
  store(l, at + lane_l * lanes);
  Engine::store_weights(p, weights);
}

/// s [R][C]: products <q, k> of the group's rows from `first` on with keys offset .. offset + C x lanes of the block.
/// Writes the weights of the tile and updates m, l and the lanes of each row. kPlain: every key is visible to every
/// real row, and a logit is multiplier x product. Both forms give a row the same bits.
template <class Engine, StatisticsLevel kLevel, bool kPlain, int R, int C>
HWY_INLINE void softmax_tile(const Rows<Engine>& rows, const GroupBlock& g, int first, int offset, Vec (&s)[R][C]) {
  repeat<R>(LEVELHEAD_EACH(row) { softmax_row<Engine, kLevel, kPlain, C>(rows, g, first + row, offset, s[row]); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
