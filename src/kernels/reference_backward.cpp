// Backward of the reference; each step quotes the forward line it differentiates. It recomputes p from the saved m and
// its own logits, and l with them: a faster kernel's l belongs to logits that were rounded to f32, and beside logits in
// double the weights would not sum to 1, by as much as the larger logits were rounded.
#include <algorithm>
#include <cmath>

#include "kernels/reference.hpp"

namespace levelhead {
namespace reference {
namespace {

// Gradients summed over b and i, kept apart per (b, h) so that their sum has one order: [B, Hq] each.
struct Partials {
  double* dsinks = nullptr;
  double* dslopes = nullptr;
};

Partials take_partials(const Problem& p, Arena& arena) {
  return {arena.take<double>(p.B, p.Hq), arena.take<double>(p.B, p.Hq)};
}

// The row's gradient of each of its outputs; absent ones are 0.
struct Incoming {
  const double* dout = nullptr;  // [Dv], or null
  double dlse = 0;
  double dentropy = 0;
};

// What one row needs to turn a logit into its weight and its gradient.
struct Row {
  std::int64_t h = 0, i = 0;
  double m = 0, l = 0, divisor = 0;
  double delta = 0;    // sum_j p_ij <dout_i, v_j>
  double entropy = 0;  // over the keys alone
};

Incoming load_incoming(const Problem& p, const BackwardTensors& t, std::int64_t b, const Row& row, const Workspace& w) {
  Incoming in;
  if (t.dout) {
    for (std::int64_t c = 0; c < p.Dv; ++c) w.dout[c] = load(t.dout, b, row.h, row.i, c);
    in.dout = w.dout;
  }
  if (t.dlse) in.dlse = load(t.dlse, b, row.h, row.i, 0);
  if (t.dentropy) in.dentropy = load(t.dentropy, b, row.h, row.i, 0);
  return in;
}

// The sink's own weight e^(sink - m) / (l + e^(sink - m)), from the larger of m and the sink.
double sink_mass(double sink, const Row& row) {
  if (sink > row.m) return 1 / (1 + row.l * std::exp(row.m - sink));
  const double e = std::exp(sink - row.m);
  return e / (row.l + e);
}

// l, dp_ij = <dout_i, v_j>, delta_i and the entropy: sums over the row that every ds_ij needs.
void sum_row(const Problem& p, std::span<const Pair> pairs, const Incoming& in, const Workspace& w, Row& row) {
  for (const Pair& x : pairs) row.l += std::exp(x.logit.value - row.m);
  const std::optional<double> sink = p.sink(row.h);
  row.divisor = sink ? row.l + std::exp(*sink - row.m) : row.l;
  double weighted = 0;
  for (std::size_t n = 0; n < pairs.size(); ++n) {
    w.dp[n] = 0;
    for (std::int64_t c = 0; in.dout != nullptr && c < p.Dv; ++c) w.dp[n] += in.dout[c] * w.v[pairs[n].j * p.Dv + c];
    const double shifted = pairs[n].logit.value - row.m;
    const double e = std::exp(shifted);
    row.delta += e / row.divisor * w.dp[n];
    weighted += e == 0 ? 0 : e * shifted;
  }
  row.entropy = std::log(row.l) - weighted / row.l;
}

// d loss / d logit_ij, and through o_i = sum_j p_ij v_j the row's share of dv_j.
double logit_gradient(const Problem& p, const Pair& x, double dp, const Incoming& in, const Row& row,
                      const Workspace& w) {
  const double shifted = x.logit.value - row.m;
  const double weight = std::exp(shifted) / row.divisor;  // p_ij = e^(logit - m) / (l + e^(sink - m))
  const double weight_keys = std::exp(shifted) / row.l;   // pbar_ij, the sink left out
  double ds = in.dlse * weight;                           // lse_i = ln sum_j e^logit_ij
  if (in.dout != nullptr) {
    ds += weight * (dp - row.delta);
    for (std::int64_t c = 0; c < p.Dv; ++c) w.dv[x.j * p.Dv + c] += weight * in.dout[c];
  }
  // entropy_i = -sum_j pbar_ij ln pbar_ij; x ln x is 0 at 0
  if (in.dentropy != 0 && weight_keys != 0) ds -= in.dentropy * weight_keys * (shifted - std::log(row.l) + row.entropy);
  return ds;
}

// 1 - tanh^2(scaled / softcap), without its cancellation.
double cap_factor(const Problem& p, double scaled) {
  if (!(p.softcap > 0)) return 1;
  const double cosh = std::cosh(scaled / p.softcap);
  return 1 / (cosh * cosh);
}

// logit = capped + bias + slope * distance; capped = softcap tanh(scaled / softcap); scaled = multiplier <q, k>.
// Adds the pair's share to every gradient but dv, and returns its share of dmultiplier.
double push_logit_gradient(const Problem& p, const BackwardTensors& t, const Segment& s, const Row& row, const Pair& x,
                           double ds, double* dslope, const Workspace& w) {
  if (t.dbias) static_cast<double*>(t.dbias.data)[t.dbias.at(s.b, row.h, row.i, x.j)] += ds;
  *dslope += ds * static_cast<double>(p.distance(s, row.i, x.j));
  const double dscaled = ds * cap_factor(p, x.logit.scaled);
  const double draw = dscaled * p.multiplier(s.b, row.h, row.i);
  for (std::int64_t c = 0; c < p.D; ++c) {
    w.dq[c] += draw * w.k[x.j * p.D + c];
    w.dk[x.j * p.D + c] += draw * w.q[c];
  }
  return dscaled * x.raw;
}

void backward_row(const Problem& p, const BackwardTensors& t, const Segment& s, Row row, const Partials& partials,
                  const Workspace& w) {
  const RowState& state = t.state[(s.b * p.Hq + row.h) * p.Nq + row.i];
  const std::int64_t head = s.b * p.Hq + row.h;
  const std::span<const Pair> pairs = load_row(p, s, row.h, row.i, w);
  if (pairs.empty()) {  // o is the constant 0 and lse the sink
    if (t.dlse && p.sink(row.h)) partials.dsinks[head] += load(t.dlse, s.b, row.h, row.i, 0);
    return;
  }
  row.m = state.max;
  const Incoming in = load_incoming(p, t, s.b, row, w);
  sum_row(p, pairs, in, w, row);
  if (const auto sink = p.sink(row.h)) partials.dsinks[head] += sink_mass(*sink, row) * (in.dlse - row.delta);

  std::fill(w.dq, w.dq + p.D, 0.0);
  double dmultiplier = 0;
  for (std::size_t n = 0; n < pairs.size(); ++n) {
    const double ds = logit_gradient(p, pairs[n], w.dp[n], in, row, w);
    dmultiplier += push_logit_gradient(p, t, s, row, pairs[n], ds, &partials.dslopes[head], w);
  }
  if (t.dmultiplier != nullptr) t.dmultiplier[head * p.Nq + row.i] = dmultiplier;
  for (std::int64_t c = 0; t.dq && c < p.D; ++c) store(t.dq, s.b, row.h, row.i, c, w.dq[c]);
}

// Zero wherever no segment reaches: rows and keys behind a length.
void zero(const Writable& x, std::int64_t b, std::int64_t h, std::int64_t tokens, std::int64_t dim) {
  for (std::int64_t n = 0; x && n < tokens; ++n) {
    for (std::int64_t c = 0; c < dim; ++c) store(x, b, h, n, c, 0);
  }
}

void store_keys(const Writable& x, const Segment& s, std::int64_t key_head, std::int64_t dim, const double* values) {
  for (std::int64_t j = s.k_begin; x && j < s.k_end; ++j) {
    for (std::int64_t c = 0; c < dim; ++c) store(x, s.b, key_head, j, c, values[j * dim + c]);
  }
}

void backward_key_head(const Problem& p, const BackwardTensors& t, std::int64_t b, std::int64_t key_head,
                       const Partials& partials, const Workspace& w) {
  const std::int64_t h_begin = key_head * p.group(), h_end = h_begin + p.group();
  for (std::int64_t h = h_begin; h < h_end; ++h) zero(t.dq, b, h, p.Nq, p.D);
  zero(t.dk, b, key_head, p.Nk, p.D);
  zero(t.dv, b, key_head, p.Nk, p.Dv);
  for (const Segment& s : segments_of(p, b)) {
    if (s.q_begin >= s.q_end) continue;
    load_keys(p, s, key_head, w);
    std::fill(w.dk + s.k_begin * p.D, w.dk + std::max(s.k_begin, s.k_end) * p.D, 0.0);
    std::fill(w.dv + s.k_begin * p.Dv, w.dv + std::max(s.k_begin, s.k_end) * p.Dv, 0.0);
    for (std::int64_t h = h_begin; h < h_end; ++h) {
      for (std::int64_t i = s.q_begin; i < s.q_end; ++i) {
        Row row;
        row.h = h;
        row.i = i;
        backward_row(p, t, s, row, partials, w);
      }
    }
    store_keys(t.dk, s, key_head, p.D, w.dk);
    store_keys(t.dv, s, key_head, p.Dv, w.dv);
  }
}

// Two tasks would add to the same element of dbias.
bool dbias_is_shared(const Problem& p, const BackwardTensors& t) {
  return t.dbias && ((p.B > 1 && t.dbias.strides[0] == 0) || (p.Hk > 1 && t.dbias.strides[1] == 0));
}

void add_partials(const Problem& p, const double* partials, double* total) {
  for (std::int64_t b = 0; total != nullptr && b < p.B; ++b) {
    for (std::int64_t h = 0; h < p.Hq; ++h) total[h] += partials[b * p.Hq + h];
  }
}

}  // namespace

std::size_t backward_workspace(const Problem& p, const BackwardTensors& /*t*/, int threads) noexcept {
  Arena arena(nullptr);
  take_partials(p, arena);
  for (int thread = 0; thread < threads; ++thread) take_workspace(p, Direction::backward, arena);
  return arena.bytes();
}

void backward(const Problem& p, const BackwardTensors& t, Pool& pool, std::byte* scratch) noexcept {
  Arena arena(scratch);
  const Partials partials = take_partials(p, arena);
  std::fill(partials.dsinks, partials.dsinks + p.B * p.Hq, 0.0);
  std::fill(partials.dslopes, partials.dslopes + p.B * p.Hq, 0.0);
  std::byte* const workspaces = scratch + arena.bytes();
  const auto task = [&](std::int64_t n, int thread) {
    Arena own(workspaces + workspaces_bytes(p, Direction::backward, thread));
    backward_key_head(p, t, n / p.Hk, n % p.Hk, partials, take_workspace(p, Direction::backward, own));
  };
  if (dbias_is_shared(p, t)) {  // one thread keeps the order of its sums
    for (std::int64_t n = 0; n < p.B * p.Hk; ++n) task(n, 0);
  } else {
    pool.run(p.B * p.Hk, task);
  }
  add_partials(p, partials.dsinks, t.dsinks);
  add_partials(p, partials.dslopes, t.dslopes);
}

}  // namespace reference
}  // namespace levelhead
