// Heads described, models judged. No single head can be judged: healthy trained models hold heads with a spread
// of 0.5 and of 13. A model can, by the 75th percentile of its heads' entropy ratios: see docs/numbers.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "levelhead/attention.hpp"
#include "levelhead/stats.hpp"

namespace levelhead {

/// One query head over its rows. Everything but the three counts is over rows that are not empty (of them those with 2
/// keys or more where "n >= 2" is said); absent when there is no such row, or when its level was not measured. Unnamed
/// means are over rows. One row of NaN logits makes every number NaN but the counts and the share `saturated`.
struct HeadStatistics {
  std::int64_t rows = 0;        ///< all of them
  std::int64_t empty_rows = 0;  ///< rows that see no key
  std::int64_t nan_rows = 0;    ///< rows whose result is NaN, through their logits or a visible value

  std::optional<double> logit_mean, logit_std;  ///< pooled over all visible pairs; population deviation
  std::optional<double> logit_std_within;       ///< root mean square of logit - row mean, over pairs of rows n >= 2
  std::optional<double> logit_max, logit_min;   ///< over all visible pairs
  std::optional<double> absmax_uncapped;        ///< max |scaled|, before softcap and bias
  std::optional<double> lse, entropy;           ///< nats; lse counts the sink, entropy the keys alone
  std::optional<double> entropy_ratio;          ///< entropy / ln n, n >= 2
  std::optional<double> perplexity, effective_keys, top1;
  std::optional<double> saturated;  ///< share of rows with top1 > 0.99, n >= 2
  std::optional<double> trace_gain, frobenius_gain;
  std::optional<double> first_key_mass;  ///< n >= 2
  std::optional<double> sink_mass;
  std::optional<double> z;  ///< logit_std_within / sqrt(2 ln n_max); absent when n_max = 1
  std::optional<double> entropy_q05, entropy_q50, entropy_q95;  ///< quantiles over rows, linear interpolation
  std::optional<double> top1_q05, top1_q50, top1_q95;

  // Not among the reported names: what flags and the verdict need besides.
  std::int64_t n_max = 0;               ///< the largest count of a row
  std::optional<double> adjacent_mass;  ///< weight on the same and the previous key; self-attention only
};

/// Calls visit(name, member) for every reported statistic that may be absent, in its order.
template <class Visitor>
void for_each_member(Visitor&& visit) {
  using Member = std::optional<double> HeadStatistics::*;
  using H = HeadStatistics;
  static constexpr std::array<std::pair<std::string_view, Member>, 24> members{{
      {"logit_mean", &H::logit_mean},
      {"logit_std", &H::logit_std},
      {"logit_std_within", &H::logit_std_within},
      {"logit_max", &H::logit_max},
      {"logit_min", &H::logit_min},
      {"absmax_uncapped", &H::absmax_uncapped},
      {"lse", &H::lse},
      {"entropy", &H::entropy},
      {"entropy_ratio", &H::entropy_ratio},
      {"perplexity", &H::perplexity},
      {"effective_keys", &H::effective_keys},
      {"top1", &H::top1},
      {"saturated", &H::saturated},
      {"trace_gain", &H::trace_gain},
      {"frobenius_gain", &H::frobenius_gain},
      {"first_key_mass", &H::first_key_mass},
      {"sink_mass", &H::sink_mass},
      {"z", &H::z},
      {"entropy_q05", &H::entropy_q05},
      {"entropy_q50", &H::entropy_q50},
      {"entropy_q95", &H::entropy_q95},
      {"top1_q05", &H::top1_q05},
      {"top1_q50", &H::top1_q50},
      {"top1_q95", &H::top1_q95},
  }};
  for (const auto& [name, member] : members) visit(name, member);
}

/// Calls visit(name, value) for every reported statistic in its order; value is std::int64_t or
/// std::optional<double>. JSON, tables and bindings take their names from here.
template <class Visitor>
void for_each_head_statistic(const HeadStatistics& head, Visitor&& visit) {
  visit(std::string_view("rows"), head.rows);
  visit(std::string_view("empty_rows"), head.empty_rows);
  visit(std::string_view("nan_rows"), head.nan_rows);
  for_each_member([&](std::string_view name, auto member) { visit(name, head.*member); });
}

/// Pools the rows of one head. Rows are added in index order, so the same rows give the same bits.
class HeadPool {
 public:
  /// sink: the head's sink logit, if it has one. nan_output: the row's output holds a NaN, so it counts as a NaN row
  /// even where its logits are numbers, as beside a NaN in a visible value.
  void add(const RowState& state, std::optional<double> sink, bool nan_output = false);

  HeadStatistics finish() const;

 private:
  void add_nan(const RowState& state);
  void add_wide(const RowState& state, const RowStatistics& row);
  void add_moments(const RowState& state);

  HeadStatistics head_;                           // counts and extremes; means hold sums until finish
  StatisticsLevel level_ = StatisticsLevel::all;  // the lowest of any row
  bool has_nan_ = false;                          // a row whose logits are NaN
  std::int64_t wide_ = 0;                         // rows with n >= 2
  double pairs_ = 0, mean_ = 0, m2_ = 0;          // over all pairs
  double wide_pairs_ = 0, m2_within_ = 0;         // over the pairs of rows with n >= 2
  std::vector<double> entropies_, top1s_;         // of each measured row
};

/// Statistics of every query head, in order, pooled over the batch; adjacent_mass is filled in when every batch
/// item or document has n_q = n_k. state [B, Hq, Nq] as forward wrote it. Throws Error on wrong use.
std::vector<HeadStatistics> head_statistics(const Inputs& inputs, const Options& options,
                                            std::span<const RowState> state);

/// What logit_std_within would be if components were independent and tokens drawn alike, from what was measured of each
/// component: the means and variances of q and k over the tokens, and their correlation at the same token
/// (self-attention only). One per query head [Hq]; absent where no row sees two keys, NaN beside a NaN. Of the products
/// alone: softcap, bias and ALiBi are left out. docs/numbers.md has the formula.
/// state [B, Hq, Nq] as forward wrote it. Throws Error on wrong use.
std::vector<std::optional<double>> expected_spread(const Inputs& inputs, const Options& options,
                                                   std::span<const RowState> state);

/// What a head is notable for, of these in this order: "flat" (entropy_ratio > 0.9), "frozen" (saturated > 0.5),
/// "sink" (first_key_mass > 0.5), "local" (adjacent_mass > 0.5), "nan" and "empty" (it has such rows,
/// or none at all).
std::vector<std::string_view> flags(const HeadStatistics& head);

/// The value at fraction q of sorted numbers, linear between neighbours; absent for none.
std::optional<double> quantile(std::span<const double> sorted, double q);

/// What a scale may have been made of. Absent ones are not known, and their names are left out.
struct ScaleFacts {
  std::int64_t D = 0, heads = 0, kv_heads = 0;
  std::optional<std::int64_t> d_model, Dv;
  std::optional<double> yarn_mscale;
};

struct NamedScale {
  std::string name;
  double value = 0;
  bool plain = false;  ///< within 0.1 % of 1/sqrt(D), under whatever name

  friend bool operator==(const NamedScale&, const NamedScale&) = default;
};

/// The known scales that these facts allow, in the fixed order of the definitions.
std::vector<NamedScale> known_scales(const ScaleFacts& facts);

/// Those of them that `scale` equals to 0.1 %.
std::vector<NamedScale> scale_is(double scale, const ScaleFacts& facts);

struct Verdict {
  enum class Name : std::uint8_t { broken, undecided, too_sharp, too_flat, level };
  static constexpr double sharp_limit = 0.48;       ///< H75 below it: too_sharp
  static constexpr double flat_limit = 0.90;        ///< H75 above it: too_flat
  static constexpr std::int64_t fewest_heads = 18;  ///< below it: undecided
  static constexpr std::int64_t fewest_keys = 16;   ///< n_max below it: undecided

  Name name = Name::undecided;
  std::optional<double> h75;                  ///< over the heads whose entropy_ratio is a number
  std::optional<std::string> likely_mistake;  ///< only with too_sharp and too_flat
  std::string reason;                         ///< one clause with its numbers

  std::optional<double> above_sharp() const;  ///< h75 - sharp_limit
  std::optional<double> below_flat() const;   ///< flat_limit - h75
};

/// "broken", "undecided", "too_sharp", "too_flat" or "level".
std::string_view name_of(Verdict::Name name) noexcept;

/// Whether the heads are all that the model (or its capture) has.
enum class Scope : std::uint8_t { whole, part };

/// Judges a model by H75, the 75th percentile over all heads of entropy_ratio. It is evidence, never proof: wrong
/// factors of 2.43 and more, or 0.38 and less, were always found in 14 models, factors of 2 are often missed.
/// scale_is: names of the scale the logits were made with, for likely_mistake.
Verdict judge(std::span<const HeadStatistics> heads, Scope scope = Scope::whole,
              std::span<const NamedScale> scale_is = {});

/// The verdict on untrained weights, where every head should start with a spread of 1.
struct FreshVerdict {
  static constexpr double low_limit = 0.9, high_limit = 1.1;  ///< of logit_std_within; they belong to level
  static constexpr bool holds(double spread) { return spread >= low_limit && spread <= high_limit; }

  Verdict::Name name = Verdict::Name::undecided;
  std::optional<double> spread;           ///< median over the heads of logit_std_within, of those that are numbers
  std::optional<double> suggested_scale;  ///< scale / spread, for a median of 1
  std::int64_t heads = 0;                 ///< that have a spread
  std::int64_t outside = 0;               ///< of them, beyond the limits
  std::optional<std::string> likely_mistake;
  std::string reason;
};

/// The scale that would give the head a spread of 1: scale / logit_std_within. Absent without a spread, and where it
/// would not be finite.
std::optional<double> suggested_scale(double scale, const HeadStatistics& head);

/// Judges untrained weights: level when logit_std_within of every head is within 10 % of 1, else too_sharp (median
/// above 1) or too_flat. broken comes first; undecided for a part, when a head has no row with two keys, or with n_max
/// < 16, where the spread of so few keys is too small by itself. scale: the one that the logits were made with.
FreshVerdict judge_fresh(std::span<const HeadStatistics> heads, double scale, Scope scope = Scope::whole,
                         std::span<const NamedScale> scale_is = {});

}  // namespace levelhead
