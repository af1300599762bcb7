// Forward of the reference, and how it meets its keys: what every other kernel is measured against.
#include "kernels/reference.hpp"

#include <algorithm>
#include <cmath>

#include "core/row_state.hpp"

namespace levelhead {
namespace reference {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// mean and M2 in two passes over s; a visible -inf leaves no finite spread.
void measure_moments(std::span<const Pair> pairs, RowState& state) {
  double sum = 0;
  for (const Pair& x : pairs) sum += x.logit.value;
  state.mean = sum / static_cast<double>(pairs.size());
  if (state.min == -inf) {
    state.m2 = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  for (const Pair& x : pairs) state.m2 += (x.logit.value - state.mean) * (x.logit.value - state.mean);
}

void measure_all(std::span<const Pair> pairs, RowState& state) {
  for (const Pair& x : pairs) {
    const double e = x.logit.value == -inf ? 0 : std::exp(x.logit.value - state.max);
    state.sum2 += e * e;
    state.sum3 += e * e * e;
    state.min = std::min(state.min, x.logit.value);
    state.absmax_uncapped = std::max(state.absmax_uncapped, std::abs(x.logit.scaled));
  }
  measure_moments(pairs, state);
  state.first_logit = pairs.front().logit.value;
  state.first_key = pairs.front().j;
}

RowState measure(std::span<const Pair> pairs, StatisticsLevel level) {
  RowState state;
  state.level = level;
  state.count = static_cast<std::int64_t>(pairs.size());
  if (pairs.empty()) return state;
  bool is_nan = false;
  for (const Pair& x : pairs) {
    is_nan = is_nan || std::isnan(x.logit.value) || x.logit.value == inf;
    state.max = std::max(state.max, x.logit.value);
  }
  if (is_nan) {
    make_nan(state);
    state.first_key = pairs.front().j;
    return state;
  }
  for (const Pair& x : pairs) {
    const double shifted = x.logit.value - state.max;
    if (x.logit.value == -inf) continue;  // weight 0, and 0 * (s - m) too
    state.sum += std::exp(shifted);
    if (level >= StatisticsLevel::entropy) state.weighted += std::exp(shifted) * shifted;
  }
  if (level >= StatisticsLevel::all) measure_all(pairs, state);
  return state;
}

// l, or l + e^(sink - m)
double denominator(const Problem& p, std::int64_t h, const RowState& state) {
  const std::optional<double> sink = p.sink(h);
  return sink ? state.sum + std::exp(*sink - state.max) : state.sum;
}

// w.o = sum_j p_ij v_j. A row that is NaN, or saw only -inf, gets NaN from e^(s - m) itself.
void weigh_values(const Problem& p, std::span<const Pair> pairs, double m, double divisor, const Workspace& w) {
  std::fill(w.o, w.o + p.Dv, 0.0);
  for (const Pair& x : pairs) {
    const double e = std::exp(x.logit.value - m);
    for (std::int64_t c = 0; c < p.Dv; ++c) w.o[c] += e * w.v[x.j * p.Dv + c];
  }
  for (std::int64_t c = 0; c < p.Dv; ++c) w.o[c] /= divisor;
}

// o [Dv], lse and state of one row; a row without pairs has o = 0 and the lse of its sink.
void write_row(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i, const RowState& state,
               const Workspace& w, const ForwardOutputs& out) {
  if (out.o) {
    for (std::int64_t c = 0; c < p.Dv; ++c) store(out.o, b, h, i, c, state.count == 0 ? 0 : w.o[c]);
  }
  if (out.lse) store(out.lse, b, h, i, 0, log_sum_exp(state, p.sink(h)));
  if (out.state != nullptr) out.state_at(p, b, h, i) = state;
}

// Every query head over one key head; rows in no segment are empty rows.
void forward_key_head(const Problem& p, std::int64_t b, std::int64_t key_head, const Workspace& w,
                      const ForwardOutputs& out) {
  const std::int64_t h_begin = key_head * p.group(), h_end = h_begin + p.group();
  const RowState empty = measure({}, p.statistics.level);
  for (std::int64_t h = h_begin; h < h_end; ++h) {
    for (std::int64_t i = 0; i < p.Nq; ++i) write_row(p, b, h, i, empty, w, out);
  }
  for (const Segment& s : segments_of(p, b)) {
    if (s.q_begin >= s.q_end) continue;
    load_keys(p, s, key_head, w);
    for (std::int64_t h = h_begin; h < h_end; ++h) {
      for (std::int64_t i = s.q_begin; i < s.q_end; ++i) {
        const std::span<const Pair> pairs = load_row(p, s, h, i, w);
        const RowState state = measure(pairs, p.statistics.level);
        if (out.o) weigh_values(p, pairs, state.max, denominator(p, h, state), w);
        write_row(p, b, h, i, state, w, out);
      }
    }
  }
}

}  // namespace

std::span<const Segment> segments_of(const Problem& p, std::int64_t b) {
  const auto before = [](const Segment& s, std::int64_t item) { return s.b < item; };
  const auto first = std::lower_bound(p.segments.begin(), p.segments.end(), b, before);
  const auto last = std::lower_bound(first, p.segments.end(), b + 1, before);
  return {first, last};
}

Workspace take_workspace(const Problem& p, Direction direction, Arena& arena) {
  Workspace w;
  const std::int64_t keys = p.Nq == 0 ? 0 : p.Nk;  // no row, no key is read
  w.k = arena.take<double>(keys, p.D);
  w.v = arena.take<double>(keys, p.Dv);
  w.q = arena.take<double>(p.D);
  w.o = arena.take<double>(p.Dv);
  w.pairs = arena.take<Pair>(keys);
  if (direction == Direction::forward) return w;
  w.dk = arena.take<double>(keys, p.D);
  w.dv = arena.take<double>(keys, p.Dv);
  w.dq = arena.take<double>(p.D);
  w.dout = arena.take<double>(p.Dv);
  w.dp = arena.take<double>(keys);
  return w;
}

std::size_t workspaces_bytes(const Problem& p, Direction direction, int threads) {
  Arena arena(nullptr);
  for (int thread = 0; thread < threads; ++thread) take_workspace(p, direction, arena);
  return arena.bytes();
}

void load_keys(const Problem& p, const Segment& s, std::int64_t key_head, const Workspace& w) {
  for (std::int64_t j = s.k_begin; j < s.k_end; ++j) {
    for (std::int64_t c = 0; c < p.D; ++c) w.k[j * p.D + c] = load(p.k, s.b, key_head, j, c);
    for (std::int64_t c = 0; c < p.Dv; ++c) w.v[j * p.Dv + c] = load(p.v, s.b, key_head, j, c);
  }
}

std::span<Pair> load_row(const Problem& p, const Segment& s, std::int64_t h, std::int64_t i, const Workspace& w) {
  for (std::int64_t c = 0; c < p.D; ++c) w.q[c] = load(p.q, s.b, h, i, c);
  std::size_t n = 0;
  const KeyRange keys = p.keys(s, i);
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    if (!passes(p, s.b, h, i, j)) continue;
    double raw = 0;
    for (std::int64_t c = 0; c < p.D; ++c) raw += w.q[c] * w.k[j * p.D + c];
    w.pairs[n++] = {j, raw, logit_of(p, s, h, i, j, raw)};
  }
  return {w.pairs, n};
}

std::size_t forward_workspace(const Problem& p, int threads) noexcept {
  return workspaces_bytes(p, Direction::forward, threads);
}

void forward(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  pool.run(p.B * p.Hk, [&](std::int64_t task, int thread) {
    Arena arena(scratch + workspaces_bytes(p, Direction::forward, thread));
    forward_key_head(p, task / p.Hk, task % p.Hk, take_workspace(p, Direction::forward, arena), out);
  });
}

}  // namespace reference

namespace {

Support reference_support(const Cpu& /*cpu*/) { return {true, "any CPU"}; }

}  // namespace

constinit const Kernel reference_kernel{
    "reference",         bit(DType::f64) | bit(DType::f32) | bit(DType::bf16) | bit(DType::f16),
    reference_support,   reference::forward_workspace,
    reference::forward,  reference::backward_workspace,
    reference::backward,
};

}  // namespace levelhead
