// One merge for blocks, threads, cache splits and shards; one finish for rows.
#include "levelhead/stats.hpp"

#include <algorithm>
#include <cmath>

#include "core/row_state.hpp"

namespace levelhead {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool is_nan_row(const RowState& s) { return std::isnan(s.max) || std::isnan(s.sum); }

// Visible keys, but every logit -inf: no weight can be given to any of them.
bool only_minus_infinity(const RowState& s) { return s.count > 0 && s.max == -inf; }

// e^(m - m'), m' >= m. The row that saw only -inf has nothing to rescale, also against its like.
double rescale_factor(double m, double larger) { return m == -inf ? 0 : std::exp(m - larger); }

// sum of e^(s-m')(s-m') from w, l and m: e^(m-m') (w + l (m - m')); a factor of 0 wins over m - m' = -inf.
double rebased_weighted(double weighted, double sum, double m, double larger) {
  const double factor = rescale_factor(m, larger);
  return factor == 0 ? 0 : factor * (weighted + sum * (m - larger));
}

// Chan, Golub and LeVeque 1979.
void merge_mean_m2(const RowState& a, const RowState& b, RowState& out) {
  if (out.min == -inf) {  // a visible -inf: its distance to the mean is not a number, in any order of merging
    out.mean = -inf;
    out.m2 = nan;
    return;
  }
  const double count_a = static_cast<double>(a.count), count_b = static_cast<double>(b.count);
  const double share_b = count_b / (count_a + count_b);
  const double delta = b.mean - a.mean;
  out.mean = a.mean + delta * share_b;
  out.m2 = a.m2 + b.m2 + delta * delta * count_a * share_b;
}

void merge_all(const RowState& a, const RowState& b, double factor_a, double factor_b, RowState& out) {
  out.sum2 = a.sum2 * factor_a * factor_a + b.sum2 * factor_b * factor_b;
  out.sum3 = a.sum3 * factor_a * factor_a * factor_a + b.sum3 * factor_b * factor_b * factor_b;
  out.min = std::min(a.min, b.min);
  merge_mean_m2(a, b, out);
  out.absmax_uncapped = std::max(a.absmax_uncapped, b.absmax_uncapped);
  const RowState& first = b.first_key < a.first_key ? b : a;
  out.first_logit = first.first_logit;
  out.first_key = first.first_key;
}

// Rounding may leave a hair below 0; NaN stays NaN, which std::max would not promise.
double at_least_zero(double x) { return x < 0 ? 0 : x; }

// ln(e^a + e^b) without overflow.
double log_add_exp(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  if (std::isnan(a) || std::isnan(b)) return nan;
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

// The sink seen from the row's keys. share: what is left of a weight e^(s-m) / l once the sink is counted;
// mass: the sink's own weight. Both from the larger of m and the sink, so neither overflows.
struct SinkShare {
  double share = 1;
  double mass = 0;
};

SinkShare sink_share(const RowState& s, double sink) {
  if (sink <= s.max) {
    const double e = std::exp(sink - s.max);
    return {s.sum / (s.sum + e), e / (s.sum + e)};
  }
  const double keys = s.sum * std::exp(s.max - sink);
  return {keys / (keys + 1), 1 / (keys + 1)};
}

double entropy_with_sink(const RowState& s, double sink) {
  const double m = std::max(s.max, sink);
  const double keys = s.sum * std::exp(s.max - m);
  const double e = std::exp(sink - m);
  const double weighted = rebased_weighted(s.weighted, s.sum, s.max, m) + (e == 0 ? 0 : e * (sink - m));
  const double log_total = e == 1 ? std::log1p(keys) : std::log(keys + e);
  return at_least_zero(log_total - weighted / (keys + e));
}

void finish_all(const RowState& s, double key_share, RowStatistics& row) {
  const double n = static_cast<double>(s.count);
  const double sum_squares = s.sum2 / (s.sum * s.sum);  // of the weights
  const double sum_cubes = s.sum3 / (s.sum * s.sum * s.sum);
  row.mean = s.min == -inf ? -inf : s.mean;
  row.variance = s.min == -inf ? nan : s.m2 / n;
  row.min = s.min;
  row.absmax = std::max(std::abs(s.max), std::abs(s.min));
  row.absmax_uncapped = s.absmax_uncapped;
  row.effective_keys = std::clamp(1 / sum_squares, 1.0, n);
  row.trace_gain = at_least_zero(1 - sum_squares);
  row.frobenius_gain = std::sqrt(at_least_zero(sum_squares - 2 * sum_cubes + sum_squares * sum_squares));
  row.first_key_mass = std::exp(s.first_logit - s.max) / s.sum * key_share;
}

void finish_nan(RowStatistics& row) {
  row.mean = row.variance = row.max = row.min = row.absmax = row.absmax_uncapped = nan;
  row.lse = row.entropy = row.entropy_sink = row.effective_keys = row.perplexity = row.top1 = nan;
  row.trace_gain = row.frobenius_gain = row.first_key_mass = row.sink_mass = nan;
}

void finish_empty(RowStatistics& row, std::optional<double> sink) {
  row.mean = row.variance = nan;
  row.max = -inf;
  row.min = inf;
  row.sink_mass = sink ? 1 : 0;
}

}  // namespace

RowState merge(const RowState& a, const RowState& b) noexcept {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  RowState out;
  out.level = std::min(a.level, b.level);
  out.count = a.count + b.count;
  if (is_nan_row(a) || is_nan_row(b)) {
    make_nan(out);
    out.first_key = std::min(a.first_key, b.first_key);
    return out;
  }
  out.max = std::max(a.max, b.max);
  const double factor_a = rescale_factor(a.max, out.max), factor_b = rescale_factor(b.max, out.max);
  out.sum = a.sum * factor_a + b.sum * factor_b;
  if (out.level >= StatisticsLevel::entropy)
    out.weighted =
        rebased_weighted(a.weighted, a.sum, a.max, out.max) + rebased_weighted(b.weighted, b.sum, b.max, out.max);
  if (out.level >= StatisticsLevel::all) merge_all(a, b, factor_a, factor_b, out);
  return out;
}

double log_sum_exp(const RowState& state, std::optional<double> sink) noexcept {
  if (state.count == 0) return sink.value_or(-inf);
  if (is_nan_row(state) || only_minus_infinity(state)) return nan;
  const double lse = state.max + std::log(state.sum);
  return sink ? log_add_exp(lse, *sink) : lse;
}

RowStatistics row_statistics(const RowState& state, std::optional<double> sink) noexcept {
  RowStatistics row;
  row.level = state.level;
  row.count = state.count;
  row.lse = log_sum_exp(state, sink);
  if (state.count == 0) {
    finish_empty(row, sink);
    return row;
  }
  if (is_nan_row(state) || only_minus_infinity(state)) {
    finish_nan(row);
    return row;
  }
  const double n = static_cast<double>(state.count);
  const SinkShare with_sink = sink ? sink_share(state, *sink) : SinkShare{};
  row.max = state.max;
  row.top1 = 1 / state.sum;
  row.saturated = row.top1 > 0.99 && state.count >= 2;
  row.sink_mass = with_sink.mass;
  if (state.level >= StatisticsLevel::entropy) {
    row.entropy = std::clamp(std::log(state.sum) - state.weighted / state.sum, 0.0, std::log(n));
    row.perplexity = std::clamp(std::exp(row.entropy), 1.0, n);
    row.entropy_sink = sink ? entropy_with_sink(state, *sink) : row.entropy;
  }
  if (state.level >= StatisticsLevel::all) finish_all(state, with_sink.share, row);
  return row;
}

}  // namespace levelhead
