// Untrained weights: the textbook case, where 1/sqrt(D) is there to give the logits of a row a spread of 1.
#include <algorithm>
#include <cmath>

#include "core/verdict_words.hpp"

namespace levelhead {
namespace {

using Name = Verdict::Name;

struct Spreads {
  std::vector<double> sorted;
  std::int64_t missing = 0, outside = 0, n_max = 0;
};

Spreads spreads_of(std::span<const HeadStatistics> heads) {
  Spreads spreads;
  for (const HeadStatistics& head : heads) {
    spreads.n_max = std::max(spreads.n_max, head.n_max);
    if (!head.logit_std_within) ++spreads.missing;
    if (!head.logit_std_within || std::isnan(*head.logit_std_within)) continue;
    const double spread = *head.logit_std_within;
    spreads.sorted.push_back(spread);
    spreads.outside += FreshVerdict::holds(spread) ? 0 : 1;
  }
  std::sort(spreads.sorted.begin(), spreads.sorted.end());
  return spreads;
}

/// Why no judgement is possible, or nothing.
std::string undecided_reason(const Spreads& spreads, Scope scope) {
  if (scope == Scope::part) return part_reason;
  if (spreads.sorted.empty()) return "no head has a row with two keys";
  if (spreads.missing > 0)
    return counted(spreads.missing, "head has", "heads have") + " no row with two keys, the rule needs every head";
  if (spreads.n_max < Verdict::fewest_keys) return few_keys_reason(spreads.n_max);
  return {};
}

std::optional<double> finite_ratio(double scale, double spread) {
  const double ratio = scale / spread;
  return std::isfinite(ratio) && std::isfinite(spread) ? std::optional(ratio) : std::nullopt;
}

}  // namespace

std::optional<double> suggested_scale(double scale, const HeadStatistics& head) {
  return head.logit_std_within ? finite_ratio(scale, *head.logit_std_within) : std::nullopt;
}

FreshVerdict judge_fresh(std::span<const HeadStatistics> heads, double scale, Scope scope,
                         std::span<const NamedScale> scale_is) {
  const Spreads spreads = spreads_of(heads);
  FreshVerdict verdict;
  verdict.heads = static_cast<std::int64_t>(spreads.sorted.size());
  verdict.outside = spreads.outside;
  verdict.spread = quantile(spreads.sorted, 0.5);
  if (verdict.spread) verdict.suggested_scale = finite_ratio(scale, *verdict.spread);
  if (verdict.reason = nan_reason(heads); !verdict.reason.empty()) {
    verdict.name = Name::broken;
    return verdict;
  }
  verdict.reason = undecided_reason(spreads, scope);
  if (!verdict.reason.empty()) return verdict;

  const std::string range = number_text(FreshVerdict::low_limit) + " to " + number_text(FreshVerdict::high_limit);
  if (verdict.outside == 0) {
    verdict.name = Name::level;
    verdict.reason = "the spread of every head lies in " + range;
    return verdict;
  }
  verdict.name = *verdict.spread > 1 ? Name::too_sharp : Name::too_flat;
  verdict.reason = "the spread of " + std::to_string(verdict.outside) + " of " +
                   counted(verdict.heads, "head", "heads") + " lies outside " + range + ", the median is " +
                   number_text(*verdict.spread);
  verdict.likely_mistake = mistake_among(scale_is);
  return verdict;
}

}  // namespace levelhead
