// What one pass over the keys leaves per query row, how two disjoint key sets combine, and what follows from it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace levelhead {

/// How much a pass measures. Each level includes the ones before it and changes no bit of o, lse or gradients.
enum class StatisticsLevel : std::uint8_t {
  lse_max,  ///< max, sum, count: enough for lse and for backward; always there
  entropy,  ///< adds `weighted`: entropy
  all       ///< adds every other field of RowState
};

/// fast: 16-bit inputs may measure from their rounded weights. exact: never. The same for f32 and f64.
enum class Precision : std::uint8_t { fast, exact };

struct Statistics {
  StatisticsLevel level = StatisticsLevel::lse_max;
  Precision precision = Precision::fast;
};

/// The state of one query row over the keys it has seen; s is the logit, m the largest one so far.
/// The sink is not part of it (it belongs to the row once, however its keys are split).
/// No key seen is the default value (with the level that was asked for). Only -inf logits seen is max = -inf, sum = 0
/// with count > 0. A NaN or +inf logit makes every floating field NaN, so NaN is carried by any merge.
struct RowState {
  double max = -std::numeric_limits<double>::infinity();  ///< m
  double sum = 0;                                         ///< l  = sum of e^(s-m)
  std::int64_t count = 0;                                 ///< visible keys n
  // level entropy
  double weighted = 0;  ///< w = sum of e^(s-m) (s-m)
  // level all
  double sum2 = 0;                                       ///< c2 = sum of e^2(s-m)
  double sum3 = 0;                                       ///< c3 = sum of e^3(s-m)
  double mean = 0;                                       ///< of s
  double m2 = 0;                                         ///< sum of (s - mean)^2
  double min = std::numeric_limits<double>::infinity();  ///< of s
  double absmax_uncapped = 0;                            ///< of |scaled|, before cap and bias
  double first_logit = 0;                                ///< s of the first visible key; meaningless at count 0
  std::int64_t first_key = 0;                            ///< its index; meaningless at count 0
  StatisticsLevel level = StatisticsLevel::lse_max;      ///< fields above it were not measured
};

/// The state over the union of two disjoint key sets: rescaling by e^(m - m') and Chan's formula.
/// merge(empty, x) == x. The first key is the smaller index (a's on a tie); the level the lower of both,
/// unless one side is empty.
RowState merge(const RowState& a, const RowState& b) noexcept;

/// The statistics of one row (docs/numbers.md). Those above `level` were not measured: read them through
/// for_each_statistic, which leaves them out.
struct RowStatistics {
  std::int64_t count = 0;
  double mean = 0, variance = 0, max = 0, min = 0, absmax = 0, absmax_uncapped = 0;
  double lse = 0, entropy = 0, entropy_sink = 0, effective_keys = 0, perplexity = 0, top1 = 0;
  double trace_gain = 0, frobenius_gain = 0, first_key_mass = 0, sink_mass = 0;
  bool saturated = false;
  StatisticsLevel level = StatisticsLevel::lse_max;
};

/// Natural log of the sum of e^s over the visible keys, and of e^sink with one; -inf (= sink) for an empty row.
double log_sum_exp(const RowState& state, std::optional<double> sink) noexcept;

/// Finishes a row. sink: the row's sink logit, if it has one.
RowStatistics row_statistics(const RowState& state, std::optional<double> sink) noexcept;

/// Calls f(name, value) for each statistic the level measured, in the order of its fields. value is an
/// std::int64_t (count), a double or a bool (saturated).
template <class F>
void for_each_statistic(const RowStatistics& row, F&& f) {
  const bool entropy = row.level >= StatisticsLevel::entropy;
  const bool all = row.level >= StatisticsLevel::all;
  const auto visit = [&f](bool measured, std::string_view name, auto value) {
    if (measured) f(name, value);
  };
  visit(true, "count", row.count);
  visit(all, "mean", row.mean);
  visit(all, "variance", row.variance);
  visit(true, "max", row.max);
  visit(all, "min", row.min);
  visit(all, "absmax", row.absmax);
  visit(all, "absmax_uncapped", row.absmax_uncapped);
  visit(true, "lse", row.lse);
  visit(entropy, "entropy", row.entropy);
  visit(entropy, "entropy_sink", row.entropy_sink);
  visit(all, "effective_keys", row.effective_keys);
  visit(entropy, "perplexity", row.perplexity);
  visit(entropy, "top1", row.top1);
  visit(all, "trace_gain", row.trace_gain);
  visit(all, "frobenius_gain", row.frobenius_gain);
  visit(all, "first_key_mass", row.first_key_mass);
  visit(entropy, "sink_mass", row.sink_mass);
  visit(entropy, "saturated", row.saturated);
}

}  // namespace levelhead
