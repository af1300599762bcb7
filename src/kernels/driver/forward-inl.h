// The blocked walk over keys, once for every engine.
//
// A task is one key/value head and 128 to 512 query rows of its head group. It walks its keys in blocks of 128. Each
// block is packed once (keys transposed, values dense, both widened to what the engine multiplies), then every group
// of a few rows meets it:
//
//     product tiles (engine, in registers) -> softmax stage -> weights [rows][128] in L1 -> weights x values -> o
//
// so neither the logits nor the weights of a row ever exist as a whole, and memory is O(threads x block).
//
// Three rules give a row the same bits whatever surrounds it:
//   1. The block grid starts at the segment's first key, never at the first key that some row of the task needs.
//   2. The reference m of the weights is raised per row. A block that a row does not see changes nothing of it.
//   3. Each block's weights x values is summed from zero in key order, then added to o. A hidden key adds 0, so a
//      row's sum is the same beside rows that see more. (Blockwise sums also lose fewer digits than one long chain.)
//
// What a row sees of a block is one bit per key: all ones is the plain path, zero is skipped, anything else pays for
// its masks. 0 x NaN is NaN, so where a block of values holds a non-finite number, partial rows are multiplied one by
// one over their visible keys alone, in the same order.
//
// An Engine supplies only what an instruction set must: Query, Key, Value, Weight element types, packing, a product
// tile, weights times values. See engines/highway_f32-inl.h for the list with its shapes.
#if defined(LEVELHEAD_DRIVER_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVELHEAD_DRIVER_FORWARD_INL_H_
#undef LEVELHEAD_DRIVER_FORWARD_INL_H_
#else
#define LEVELHEAD_DRIVER_FORWARD_INL_H_
#endif

#include <array>
#include <cmath>

#include "kernels/driver/key_bits.hpp"
#include "kernels/driver/softmax-inl.h"
#include "kernels/driver/tasks.hpp"
#include "kernels/driver/tile-inl.h"
#include "kernels/driver/visible-inl.h"
#include "kernels/kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {
namespace {

// The lanes are folded into doubles every this many keys, so that f32 sums stay short.
inline constexpr std::int64_t fold_keys = 8 * block_keys;

/// Where a row of the task stands.
struct RowPlace {
  std::int64_t h = 0, i = 0;
  KeyRange keys;  // visible by position, counted from the segment's first key
};

/// What the rows of one group see by position.
struct GroupPlace {
  KeyRange any;  // some row does
  KeyRange all;  // every row does
};

template <class Engine>
struct Scratch {
  Rows<Engine> rows;
  RowPlace* places = nullptr;                // [r]
  GroupPlace* groups = nullptr;              // [r / tile rows]
  typename Engine::Key* keys = nullptr;      // one packed block
  typename Engine::Value* values = nullptr;  // one packed block
  float* temporary = nullptr;                // [block_keys][D] or one row, for packing and finishing
  float* extra = nullptr;                    // [tile rows][block_keys]
};

inline std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

inline bool has_extra(const Problem& p) { return p.bias || !p.slopes.empty(); }

template <class Engine>
Scratch<Engine> lay_out(const Problem& p, std::int64_t queries, Arena& arena) {
  const std::int64_t n = round_up(queries * p.group(), Engine::tile_rows);
  Scratch<Engine> s;
  s.rows.fields = fields_of(p.statistics.level);
  s.rows.o_stride = round_up(p.Dv, Engine::column_unit);
  s.rows.softcap = static_cast<float>(p.softcap);
  s.rows.plain = !(p.softcap > 0) && !has_extra(p);
  s.rows.q = arena.take<typename Engine::Query>(n * Engine::query_elements(p.D));
  s.rows.sums = arena.take<float>(n * s.rows.fields * lanes);
  s.rows.o = arena.take<float>(n * s.rows.o_stride);
  s.rows.count = arena.take<std::int64_t>(n);
  s.rows.folded = arena.take<Folded>(n);
  s.rows.weights = arena.take<typename Engine::Weight>(Engine::tile_rows * block_keys);
  s.places = arena.take<RowPlace>(n);
  s.groups = arena.take<GroupPlace>(n / Engine::tile_rows);
  s.keys = arena.take<typename Engine::Key>(Engine::key_elements(p.D));
  s.values = arena.take<typename Engine::Value>(Engine::value_elements(p.Dv));
  s.temporary = arena.take<float>(round_up(p.D, lanes) * block_keys + round_up(p.Dv, lanes));
  s.extra = arena.take<float>(Engine::tile_rows * block_keys);
  return s;
}

/// Divides o [Dv, rounded up to whole vectors] by the sum, the sink joining it once; writes o and lse if asked for.
/// state: max and sum.
inline void write_row(const Problem& p, const ForwardOutputs& out, std::int64_t b, const RowPlace& place,
                      const RowState& state, float* o) {
  const std::optional<double> sink = p.sink(place.h);
  if (out.lse.data != nullptr) {
    static_cast<float*>(out.lse.data)[out.lse.at(b, place.h, place.i, 0)] =
        static_cast<float>(log_sum_exp(state, sink));
  }
  if (out.o.data == nullptr) return;
  double denominator = state.sum + (sink && state.sum != 0 ? std::exp(*sink - state.max) : 0.0);
  if (state.count == 0)
    denominator = 1;  // an empty row: o is 0 already
  else if (state.sum == 0)
    denominator = std::numeric_limits<double>::quiet_NaN();  // only -inf logits
  for (std::int64_t c = 0; c < p.Dv; c += lanes) {
    // Adding 0 leaves one kind of zero: the sign of an underflowed sum could depend on the keys beside it.
    store(hn::Add(hn::Div(load(o + c), set(static_cast<float>(denominator))), zero()), o + c);
  }
  narrow(o, p.Dv, element(out.o, out.o.at(b, place.h, place.i, 0)), out.o.dtype, out.o.strides[3]);
}

/// The forward pass of one task.
template <class Engine, StatisticsLevel kLevel>
class ForwardTask {
 public:
  ForwardTask(const Problem& p, const ForwardOutputs& out, const Task& task, Scratch<Engine>& scratch)
      : p_(p), out_(out), task_(task), segment_(*task.segment), s_(scratch) {}

  void run() {
    walk({0, std::numeric_limits<std::int64_t>::max()});
    finish();
  }

  /// Meets those keys of `limit` alone that its rows see; it starts at a block.
  void walk(KeyRange limit) {
    [[maybe_unused]] const typename Engine::Session session;
    prepare_rows();
    KeyRange keys = prepare_groups();
    keys = {max(keys.begin, limit.begin), min(keys.end, limit.end)};
    const std::int64_t n_k = segment_.k_end - segment_.k_begin;
    for (std::int64_t k = keys.begin / block_keys * block_keys; k < keys.end; k += block_keys) {
      const std::int64_t n = n_k - k < block_keys ? n_k - k : block_keys;
      bool packed = false, finite = true;
      for (int row = 0; row < count_; row += Engine::tile_rows) {
        const int rows = count_ - row < Engine::tile_rows ? count_ - row : Engine::tile_rows;
        const GroupPlace& group = s_.groups[row / Engine::tile_rows];
        if (group.any.end <= k || group.any.begin >= k + n) continue;
        if (!packed) {
          finite = pack(k, n);
          packed = true;
        }
        meet(row, rows, group, k, finite);
      }
      if (k % fold_keys == fold_keys - block_keys) {
        for (int r = 0; r < count_; ++r) fold<kLevel>(s_.rows, r);
      }
    }
  }

  /// Divides by the sums and writes what was asked for.
  void finish() {
    for (int r = 0; r < count_; ++r) {
      const RowState state = state_of(r);
      write_row(p_, out_, segment_.b, s_.places[r], state, o_of(r));
      if (out_.state != nullptr) out_.state_at(p_, segment_.b, s_.places[r].h, s_.places[r].i) = measured(r, state);
    }
  }

  int rows() const { return count_; }
  /// [o_stride], not divided by the sum yet.
  float* o_of(int r) const { return s_.rows.o + r * s_.rows.o_stride; }

  /// max and sum alone, relative to the reference m: o and lse come from them, whether statistics are asked for or not.
  RowState state_of(int r) const {
    RowState state;
    state.level = kLevel;
    state.count = s_.rows.count[r];
    if (state.count == 0) return state;
    state.max = static_cast<double>(s_.rows.number(r, number_m));
    state.sum = sum_lanes(s_.rows.lane(r, lane_l));
    return state;
  }

  /// The state relative to the row's true maximum, with all that its level keeps.
  RowState measured(int r, RowState state) {
    if (state.count == 0) return state;
    const Rows<Engine>& rows = s_.rows;
    fold<kLevel>(rows, r);
    Folded f = rows.folded[r];
    const float top = most(r, lane_max);
    const auto n = static_cast<double>(state.count);
    const float m = rows.number(r, number_m);
    if (top > m && m != minus_infinity) {
      const double delta = (static_cast<double>(top) - m) * log2_e;
      const double factor = std::exp2(-delta);
      shift(f, state.sum, n, delta, factor);
      state.sum *= factor;
      state.max = static_cast<double>(top);
    }
    state.weighted = f.weighted * ln_2;
    if constexpr (kLevel == StatisticsLevel::all) {
      state.sum2 = f.sum2;
      state.sum3 = f.sum3;
      state.mean = std::isinf(state.max) ? state.max : state.max + f.z * ln_2 / n;
      const double m2 = (f.z2 - f.z * f.z / n) * ln_2 * ln_2;
      state.m2 = m2 < 0 ? 0 : m2;
      state.min = static_cast<double>(hn::GetLane(hn::MinOfLanes(Floats(), load(rows.lane(r, lane_min)))));
      const double high = std::abs(state.max), low = std::abs(state.min);
      state.absmax_uncapped = !rows.plain ? static_cast<double>(most(r, lane_uncapped)) : high > low ? high : low;
      state.first_logit = static_cast<double>(f.first_logit);
      state.first_key = f.first_key;
    }
    if (std::isnan(state.sum)) spread_nan(state);
    return state;
  }

 private:
  void prepare_rows() {
    count_ = static_cast<int>((task_.i_end - task_.i_begin) * p_.group());
    for (int r = 0; r < count_; ++r) prepare_row(r);
    // Padding rows of the last tile are multiplied like the others and then ignored.
    for (int r = count_; r < round_up(count_, Engine::tile_rows); ++r) {
      Engine::clear_query(p_.D, s_.rows.q + r * Engine::query_elements(p_.D));
      clear_sums(r, 0);
    }
  }

  void prepare_row(int r) {
    const std::int64_t group = p_.group();
    RowPlace& place = s_.places[r];
    place.h = task_.kv_head * group + r % group;
    place.i = task_.i_begin + r / group;
    place.keys = p_.keys(segment_, place.i);
    place.keys.begin -= segment_.k_begin;
    place.keys.end -= segment_.k_begin;
    Engine::pack_query(element(p_.q, p_.q.at(segment_.b, place.h, place.i, 0)), p_.dtype, p_.q.strides[3], p_.D,
                       s_.rows.q + r * Engine::query_elements(p_.D));
    clear_sums(r, static_cast<float>(p_.multiplier(segment_.b, place.h, place.i)));
  }

  void clear_sums(int r, float multiplier) {
    const Rows<Engine>& rows = s_.rows;
    rows.count[r] = 0;
    rows.folded[r] = {};
    fill(rows.lane(r, lane_numbers), rows.fields * lanes, 0);
    rows.number(r, number_m) = rows.number(r, number_limit) = minus_infinity;
    rows.number(r, number_multiplier) = multiplier;
    fill(rows.lane(r, lane_max), lanes, minus_infinity);
    if constexpr (kLevel == StatisticsLevel::all) fill(rows.lane(r, lane_min), lanes, -minus_infinity);
    fill(rows.o + r * rows.o_stride, rows.o_stride, 0);
  }

  static void fill(float* to, std::int64_t n, float x) {
    for (std::int64_t c = 0; c < n; ++c) to[c] = x;
  }

  // Returns what some row of the task sees.
  KeyRange prepare_groups() {
    constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
    KeyRange task{far, 0};
    for (int row = 0; row < count_; row += Engine::tile_rows) {
      GroupPlace group{{far, 0}, {0, far}};
      for (int r = row; r < row + Engine::tile_rows && r < count_; ++r) {
        const KeyRange& keys = s_.places[r].keys;
        if (!keys.empty()) group.any = {min(group.any.begin, keys.begin), max(group.any.end, keys.end)};
        group.all = {max(group.all.begin, keys.begin), min(group.all.end, keys.end)};
      }
      task = {min(task.begin, group.any.begin), max(task.end, group.any.end)};
      s_.groups[row / Engine::tile_rows] = group;
    }
    return task;
  }

  static std::int64_t min(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
  static std::int64_t max(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

  // Keys k .. k + n of the segment. Returns whether all values are finite.
  bool pack(std::int64_t k, std::int64_t n) {
    const std::int64_t j = segment_.k_begin + k;
    touch(p_.k, j, n, p_.D);
    Engine::pack_keys(element(p_.k, p_.k.at(segment_.b, task_.kv_head, j, 0)), p_.dtype, p_.k.strides[2],
                      p_.k.strides[3], n, p_.D, s_.temporary, s_.keys);
    const std::byte* const v = element(p_.v, p_.v.at(segment_.b, task_.kv_head, j, 0));
    if constexpr (requires { Engine::are_finite(values_, n); }) {
      values_ = Engine::values_in_place(v, p_.dtype, p_.v.strides[2], p_.v.strides[3], p_.Dv);
      if (values_ != nullptr) return Engine::are_finite(values_, n * p_.Dv);
    }
    values_ = s_.values;
    touch(p_.v, j, n, p_.Dv);
    return Engine::pack_values(v, p_.dtype, p_.v.strides[2], p_.v.strides[3], n, p_.Dv, s_.values);
  }

  // Reads a byte of every cache line of rows j .. j + n, in order: packing reads columns of many rows at a time, and
  // would wait for the memory at each of them. An engine that does not pack asks ahead for what it reads, and would
  // only read it twice.
  void touch(const Readable& t, std::int64_t j, std::int64_t n, std::int64_t elements) const {
    if (!Engine::packs || t.strides[3] != 1) return;
    constexpr std::int64_t line = 64;
    for (std::int64_t row = 0; row < n; ++row) {
      const std::byte* const from = element(t, t.at(segment_.b, task_.kv_head, j + row, 0));
      for (std::int64_t x = 0; x < elements * static_cast<std::int64_t>(size_of(t.dtype)); x += line)
        static_cast<void>(*static_cast<const volatile std::byte*>(from + x));
    }
  }

  // The row's visible keys of the block at k, and its additions to their logits.
  KeyBits word_of(const RowPlace& place, std::int64_t k, float* extra) const {
    KeyBits word = KeyBits::range(place.keys.begin - k, place.keys.end - k);
    if (word.none()) return word;
    const std::int64_t j = segment_.k_begin + k;
    if (p_.mask) apply_mask(p_.mask, p_.mask.at(segment_.b, place.h, place.i, j), word);
    if (!has_extra(p_) || word.none()) return word;
    fill(extra, block_keys, 0);
    if (p_.bias) apply_bias(p_.bias, p_.bias.at(segment_.b, place.h, place.i, j), word, extra);
    if (!p_.slopes.empty()) {
      apply_slope(p_.slopes[static_cast<std::size_t>(place.h)], p_.distance(segment_, place.i, j), extra);
    }
    return word;
  }

  // One group of rows against the packed block at k.
  void meet(int row, int rows, const GroupPlace& group, std::int64_t k, bool finite) {
    static constexpr auto every = [] {
      std::array<KeyBits, Engine::tile_rows> words;
      words.fill(KeyBits::every());
      return words;
    }();
    if (!p_.mask && s_.rows.plain && group.all.begin <= k && group.all.end >= k + block_keys) {
      return multiply({row, segment_.k_begin + k, every.data(), nullptr, rows}, KeyBits::every(), KeyBits::every(),
                      true);
    }
    KeyBits words[Engine::tile_rows] = {};
    KeyBits any, all = KeyBits::every();
    for (int x = 0; x < rows; ++x) {
      words[x] = word_of(s_.places[row + x], k, s_.extra + x * block_keys);
      any.add(words[x]);
      all.keep(words[x]);
    }
    if (any.none()) return;
    multiply({row, segment_.k_begin + k, words, has_extra(p_) ? s_.extra : nullptr, rows}, any, all, finite);
  }

  // any, all: the keys that some row sees, and those that every row sees.
  void multiply(const GroupBlock& g, const KeyBits& any, const KeyBits& all, bool finite) {
    // Tiles without a visible key at either end are left out; the weights of one in between are cleared.
    const int from = any.first() / Engine::tile_keys * Engine::tile_keys, to = any.end();
    g.rows <= Engine::few_rows ? tiles<Engine::few_rows>(g, from, to, all) : tiles<Engine::tile_rows>(g, from, to, all);
    add_values(g, from, to, finite || all.all());
    for (int x = 0; x < g.rows; ++x) s_.rows.count[g.row + x] += g.words[x].count();
  }

  // o += weights x values. clean: no hidden value of the block could make a sum NaN.
  void add_values(const GroupBlock& g, int from, int to, bool clean) {
    const std::int64_t width = s_.rows.o_stride;
    float* const o = s_.rows.o + g.row * width;
    if (!clean) {
      for (int x = 0; x < g.rows; ++x) {
        Engine::weights_times_visible_values(s_.rows.weights + x * block_keys, g.words[x], values_, width,
                                             o + x * width);
      }
    } else if (g.rows <= Engine::few_rows) {
      Engine::template weights_times_values<Engine, Engine::few_rows>(s_.rows.weights, g.words, from, to, values_,
                                                                      width, o);
    } else {
      Engine::template weights_times_values<Engine, Engine::tile_rows>(s_.rows.weights, g.words, from, to, values_,
                                                                       width, o);
    }
  }

  template <int R>
  void tiles(const GroupBlock& g, int from, int to, const KeyBits& all) {
    int offset = from;
    for (; offset + Engine::tile_keys <= to; offset += Engine::tile_keys) {
      const bool plain = s_.rows.plain && all.covers(offset, offset + Engine::tile_keys);
      plain ? tile<true, R, Engine::tile_vectors>(g, offset) : tile<false, R, Engine::tile_vectors>(g, offset);
    }
    if (offset < to) last_tile<R, Engine::tile_vectors>(g, offset, to);
  }

  // As narrow as the keys that are left allow: under a causal window half of a full tile would be for nothing.
  template <int R, int C>
  HWY_INLINE void last_tile(const GroupBlock& g, int offset, int to) {
    if constexpr (C > Engine::least_vectors) {
      if (to - offset <= C / 2 * lanes) return last_tile<R, C / 2>(g, offset, to);
    }
    tile<false, R, C>(g, offset);
  }

  template <bool kPlain, int R, int C>
  HWY_INLINE void tile(const GroupBlock& g, int offset) {
    const auto* const q = s_.rows.q + g.row * Engine::query_elements(p_.D);
    Engine::template product_tile<R, C>(q, s_.keys, offset, p_.D,
                                        [&](int first, int at, auto& s) HWY_ATTR LEVELHEAD_INLINE {
                                          if (first > 0 && first >= g.rows) return;
                                          softmax_tile<Engine, kLevel, kPlain>(s_.rows, g, first, at, s);
                                        });
  }

  float most(int r, LaneField field) const {
    return hn::GetLane(hn::MaxOfLanes(Floats(), load(s_.rows.lane(r, field))));
  }

  // A NaN logit makes every floating field NaN; which of them the lanes caught is an accident of their order.
  static void spread_nan(RowState& state) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    state.max = state.sum = state.weighted = state.sum2 = state.sum3 = nan;
    state.mean = state.m2 = state.min = state.absmax_uncapped = state.first_logit = nan;
  }

  const Problem& p_;
  const ForwardOutputs& out_;
  const Task& task_;
  const Segment& segment_;
  Scratch<Engine>& s_;
  const typename Engine::Value* values_ = nullptr;  // the block's, packed or where they lie
  int count_ = 0;
};

/// Rows behind a length: no segment holds them, so no task writes them.
inline void finish_uncovered(const Problem& p, const ForwardOutputs& out) {
  for (const Segment& s : p.segments) {
    const bool last = &s == &p.segments.back() || (&s + 1)->b != s.b;
    if (!last) continue;
    for (std::int64_t h = 0; h < p.Hq; ++h) {
      for (std::int64_t i = s.q_end; i < p.Nq; ++i) {
        RowState state;
        state.level = p.statistics.level;
        if (out.state != nullptr) out.state_at(p, s.b, h, i) = state;
        if (out.lse.data != nullptr) {
          static_cast<float*>(out.lse.data)[out.lse.at(s.b, h, i, 0)] =
              static_cast<float>(log_sum_exp(state, p.sink(h)));
        }
        if (out.o.data == nullptr) continue;
        const float nothing = 0;
        for (std::int64_t c = 0; c < p.Dv; ++c)
          narrow(&nothing, 1, element(out.o, out.o.at(s.b, h, i, c)), out.o.dtype, 1);
      }
    }
  }
}

template <class Engine>
std::size_t forward_workspace(const Problem& p, int threads) noexcept {
  const std::int64_t queries = queries_per_task(p, threads, sizeof(typename Engine::Key));
  Arena arena(nullptr);
  arena.take<std::int64_t>(static_cast<std::int64_t>(p.segments.size()) + 1);
  for (int t = 0; t < threads; ++t) lay_out<Engine>(p, queries, arena);
  return arena.used();
}

template <class Engine, StatisticsLevel kLevel>
void forward_level(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* memory) {
  Arena whole(memory);
  std::int64_t* const starts = whole.take<std::int64_t>(static_cast<std::int64_t>(p.segments.size()) + 1);
  const std::int64_t queries = queries_per_task(p, pool.threads(), sizeof(typename Engine::Key));
  const std::int64_t tasks = index_tasks(p, queries, starts);
  Arena measure_one(nullptr);
  lay_out<Engine>(p, queries, measure_one);
  std::byte* const parts = whole.take<std::byte>(0);
  pool.run(tasks, [&](std::int64_t index, int thread) HWY_ATTR {
    Arena arena(parts + static_cast<std::size_t>(thread) * measure_one.used());
    Scratch<Engine> scratch = lay_out<Engine>(p, queries, arena);
    scratch.rows.measured = out.state != nullptr;
    const Task task = task_at(p, queries, starts, index);
    ForwardTask<Engine, kLevel>(p, out, task, scratch).run();
  });
  finish_uncovered(p, out);
}

template <class Engine>
void forward(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  // What a level costs is only paid for rows whose state somebody reads.
  switch (out.state == nullptr ? StatisticsLevel::lse_max : p.statistics.level) {
    case StatisticsLevel::lse_max: return forward_level<Engine, StatisticsLevel::lse_max>(p, out, pool, scratch);
    case StatisticsLevel::entropy: return forward_level<Engine, StatisticsLevel::entropy>(p, out, pool, scratch);
    case StatisticsLevel::all: return forward_level<Engine, StatisticsLevel::all>(p, out, pool, scratch);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#endif
