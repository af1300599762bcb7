#include "core/head.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/logits.hpp"
#include "core/qk_norm.hpp"
#include "core/scale.hpp"
#include "levelhead/verdict.hpp"

namespace levelhead {
namespace {

// A mean's running sum lives in the field that will hold the mean.
void accumulate(std::optional<double>& sum, double x) { sum = sum.value_or(0) + x; }

void divide(std::optional<double>& sum, std::int64_t n) {
  if (sum) *sum /= static_cast<double>(n);
}

void raise(std::optional<double>& max, double x) { max = max ? std::max(*max, x) : x; }
void lower(std::optional<double>& min, double x) { min = min ? std::min(*min, x) : x; }

struct Quantiles {
  std::optional<double> q05, q50, q95;
};

Quantiles quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95)};
}

// p on the row's own key and the one before it.
double adjacent_mass(const Problem& p, const Segment& segment, std::int64_t h, std::int64_t i, const RowState& state) {
  const std::int64_t own = segment.k_begin + (i - segment.q_begin);
  const KeyRange keys = p.keys(segment, i);
  const auto sink = p.sink(h);
  const double denominator = state.sum + (sink ? std::exp(*sink - state.max) : 0.0);
  double mass = 0;
  for (std::int64_t j = std::max(own - 1, keys.begin); j < std::min(own + 1, keys.end); ++j)
    if (passes(p, segment.b, h, i, j)) mass += std::exp(logit(p, segment, h, i, j).value - state.max) / denominator;
  return mass;
}

std::size_t row_index(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i) {
  return static_cast<std::size_t>((b * p.Hq + h) * p.Nq + i);
}

}  // namespace

bool is_nan(const RowState& state) noexcept { return state.count > 0 && std::isnan(log_sum_exp(state, std::nullopt)); }

void HeadPool::add(const RowState& state, std::optional<double> sink, bool nan_output) {
  ++head_.rows;
  if (state.count == 0) {
    ++head_.empty_rows;
    return;
  }
  if (nan_output || is_nan(state)) ++head_.nan_rows;
  if (is_nan(state)) return add_nan(state);
  const RowStatistics row = row_statistics(state, sink);
  level_ = std::min(level_, state.level);
  head_.n_max = std::max(head_.n_max, state.count);
  entropies_.push_back(row.entropy);
  top1s_.push_back(row.top1);
  raise(head_.logit_max, row.max);
  lower(head_.logit_min, row.min);
  raise(head_.absmax_uncapped, row.absmax_uncapped);
  accumulate(head_.lse, row.lse);
  accumulate(head_.entropy, row.entropy);
  accumulate(head_.perplexity, row.perplexity);
  accumulate(head_.effective_keys, row.effective_keys);
  accumulate(head_.top1, row.top1);
  accumulate(head_.trace_gain, row.trace_gain);
  accumulate(head_.frobenius_gain, row.frobenius_gain);
  accumulate(head_.sink_mass, row.sink_mass);
  add_moments(state);
  if (state.count >= 2) add_wide(state, row);
}

// Sorting and extremes can't carry a NaN, so finish puts it where it belongs: everywhere but in shares and counts.
void HeadPool::add_nan(const RowState& state) {
  has_nan_ = true;
  level_ = std::min(level_, state.level);
  if (state.count < 2) return;
  ++wide_;
  accumulate(head_.saturated, 0);
}

void HeadPool::add_wide(const RowState& state, const RowStatistics& row) {
  const auto n = static_cast<double>(state.count);
  ++wide_;
  wide_pairs_ += n;
  m2_within_ += state.m2;
  accumulate(head_.entropy_ratio, row.entropy / std::log(n));
  accumulate(head_.saturated, row.saturated ? 1 : 0);
  accumulate(head_.first_key_mass, row.first_key_mass);
}

// Chan, Golub and LeVeque 1979.
void HeadPool::add_moments(const RowState& state) {
  const auto n = static_cast<double>(state.count);
  const double delta = state.mean - mean_, share = n / (pairs_ + n);
  m2_ += state.m2 + delta * delta * pairs_ * share;
  mean_ += delta * share;
  pairs_ += n;
}

HeadStatistics HeadPool::finish() const {
  HeadStatistics head = head_;
  const auto measured = static_cast<std::int64_t>(entropies_.size());
  for (auto* sum : {&head.lse, &head.entropy, &head.perplexity, &head.effective_keys, &head.top1, &head.trace_gain,
                    &head.frobenius_gain, &head.sink_mass})
    divide(*sum, measured);
  for (auto* sum : {&head.entropy_ratio, &head.saturated, &head.first_key_mass}) divide(*sum, wide_);
  const Quantiles entropy = quantiles(entropies_), top1 = quantiles(top1s_);
  head.entropy_q05 = entropy.q05, head.entropy_q50 = entropy.q50, head.entropy_q95 = entropy.q95;
  head.top1_q05 = top1.q05, head.top1_q50 = top1.q50, head.top1_q95 = top1.q95;
  if (measured > 0) {
    head.logit_mean = mean_;
    head.logit_std = std::sqrt(m2_ / pairs_);
  }
  if (wide_ > 0) {
    head.logit_std_within = std::sqrt(m2_within_ / wide_pairs_);
    head.z = *head.logit_std_within / std::sqrt(2 * std::log(static_cast<double>(head.n_max)));
  }

  if (has_nan_) {
    for_each_member([&](std::string_view name, auto member) {
      if (name != "saturated") head.*member = std::numeric_limits<double>::quiet_NaN();
    });
  }

  using H = HeadStatistics;
  if (level_ < StatisticsLevel::entropy)
    for (auto member : {&H::entropy, &H::entropy_ratio, &H::perplexity, &H::top1, &H::saturated, &H::sink_mass,
                        &H::entropy_q05, &H::entropy_q50, &H::entropy_q95, &H::top1_q05, &H::top1_q50, &H::top1_q95})
      (head.*member).reset();
  if (level_ < StatisticsLevel::all)
    for (auto member : {&H::logit_mean, &H::logit_std, &H::logit_std_within, &H::logit_min, &H::absmax_uncapped,
                        &H::effective_keys, &H::trace_gain, &H::frobenius_gain, &H::first_key_mass, &H::z})
      (head.*member).reset();
  return head;
}

bool is_self_attention(const Problem& problem) {
  return std::all_of(problem.segments.begin(), problem.segments.end(),
                     [](const Segment& s) { return s.q_end - s.q_begin == s.k_end - s.k_begin; });
}

std::vector<std::optional<double>> adjacent_mass(const Problem& problem, std::span<const RowState> state) {
  std::vector<std::optional<double>> means(static_cast<std::size_t>(problem.Hq));
  for (std::int64_t h = 0; h < problem.Hq; ++h) {
    double mass = 0;
    std::int64_t rows = 0;
    for (const Segment& segment : problem.segments)
      for (std::int64_t i = segment.q_begin; i < segment.q_end; ++i) {
        const RowState& row = state[row_index(problem, segment.b, h, i)];
        if (row.count == 0) continue;
        mass += adjacent_mass(problem, segment, h, i, row);
        ++rows;
      }
    if (rows > 0) means[static_cast<std::size_t>(h)] = mass / static_cast<double>(rows);
  }
  return means;
}

void check_state_size(const Problem& p, std::span<const RowState> state) {
  const auto rows = static_cast<std::size_t>(p.B * p.Hq * p.Nq);
  if (state.size() != rows)
    throw Error("head statistics need the state of " + std::to_string(rows) + " rows but got " +
                std::to_string(state.size()));
}

std::vector<HeadStatistics> head_statistics(const Inputs& inputs, const Options& options,
                                            std::span<const RowState> state) {
  Problem p = make_problem(inputs, options);
  check_state_size(p, state);
  std::vector<HeadStatistics> heads;
  heads.reserve(static_cast<std::size_t>(p.Hq));
  for (std::int64_t h = 0; h < p.Hq; ++h) {
    HeadPool pool;
    for (std::int64_t b = 0; b < p.B; ++b)
      for (std::int64_t i = 0; i < p.Nq; ++i) pool.add(state[row_index(p, b, h, i)], p.sink(h));
    heads.push_back(pool.finish());
  }
  if (!is_self_attention(p)) return heads;

  std::optional<Normalised> norm;
  if (const auto* asked = std::get_if<QkNorm>(&options.scale)) norm = normalise(p, asked->kind);
  fill_multipliers(p, inputs, options);
  const auto adjacent = adjacent_mass(p, state);
  for (std::size_t h = 0; h < heads.size(); ++h) heads[h].adjacent_mass = adjacent[h];
  return heads;
}

}  // namespace levelhead
