#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "core/verdict_words.hpp"

namespace levelhead {
namespace {

bool within_a_thousandth(double x, double value) { return std::abs(x - value) <= 1e-3 * std::abs(value); }

struct Totals {
  std::int64_t n_max = 0;
  std::vector<double> ratios;  // sorted
};

Totals total(std::span<const HeadStatistics> heads) {
  Totals totals;
  for (const HeadStatistics& head : heads) {
    totals.n_max = std::max(totals.n_max, head.n_max);
    if (head.entropy_ratio && !std::isnan(*head.entropy_ratio)) totals.ratios.push_back(*head.entropy_ratio);
  }
  std::sort(totals.ratios.begin(), totals.ratios.end());
  return totals;
}

/// Why no judgement is possible, or nothing.
std::string undecided_reason(const Totals& totals, Scope scope) {
  if (scope == Scope::part) return part_reason;
  const auto measured = static_cast<std::int64_t>(totals.ratios.size());
  if (measured < Verdict::fewest_heads)
    return "only " + counted(measured, "head has", "heads have") + " rows to measure, the rule needs " +
           std::to_string(Verdict::fewest_heads);
  if (totals.n_max < Verdict::fewest_keys) return few_keys_reason(totals.n_max);
  return {};
}

void judge_by_h75(Verdict& verdict) {
  const double h75 = *verdict.h75;
  if (h75 < Verdict::sharp_limit) {
    verdict.name = Verdict::Name::too_sharp;
    verdict.reason = "H75 " + number_text(h75) + " is below " + number_text(Verdict::sharp_limit);
  } else if (h75 > Verdict::flat_limit) {
    verdict.name = Verdict::Name::too_flat;
    verdict.reason = "H75 " + number_text(h75) + " is above " + number_text(Verdict::flat_limit);
  } else {
    verdict.name = Verdict::Name::level;
    verdict.reason = "H75 " + number_text(h75) + " lies between " + number_text(Verdict::sharp_limit) + " and " +
                     number_text(Verdict::flat_limit);
  }
}

}  // namespace

std::string number_text(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", x);
  return text.data();
}

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  return std::to_string(n).append(" ").append(n == 1 ? one : many);
}

std::string nan_reason(std::span<const HeadStatistics> heads) {
  std::int64_t rows = 0, nan_heads = 0;
  for (const HeadStatistics& head : heads) rows += head.nan_rows, nan_heads += head.nan_rows > 0 ? 1 : 0;
  if (rows == 0) return {};
  return counted(rows, "row of ", "rows of ") + counted(nan_heads, "head", "heads") + (rows == 1 ? " holds" : " hold") +
         " a visible NaN";
}

std::string few_keys_reason(std::int64_t n_max) {
  return "no row sees more than " + counted(n_max, "key", "keys") + ", the rule needs " +
         std::to_string(Verdict::fewest_keys);
}

std::optional<std::string> mistake_among(std::span<const NamedScale> scale_is) {
  const auto mistake = std::find_if(scale_is.begin(), scale_is.end(), [](const NamedScale& s) { return !s.plain; });
  return mistake == scale_is.end() ? std::nullopt : std::optional(mistake->name);
}

std::optional<double> quantile(std::span<const double> sorted, double q) {
  if (sorted.empty()) return std::nullopt;
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

std::vector<std::string_view> flags(const HeadStatistics& head) {
  const auto more_than = [](const std::optional<double>& x, double limit) { return x && *x > limit; };
  std::vector<std::string_view> names;
  if (more_than(head.entropy_ratio, 0.9)) names.push_back("flat");
  if (more_than(head.saturated, 0.5)) names.push_back("frozen");
  if (more_than(head.first_key_mass, 0.5)) names.push_back("sink");
  if (more_than(head.adjacent_mass, 0.5)) names.push_back("local");
  if (head.nan_rows > 0) names.push_back("nan");
  if (head.empty_rows > 0 || head.rows == 0) names.push_back("empty");
  return names;
}

std::vector<NamedScale> known_scales(const ScaleFacts& facts) {
  const auto inv_sqrt = [](std::int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); };
  const double plain = facts.D > 0 ? inv_sqrt(facts.D) : 1;
  std::vector<NamedScale> known;
  const auto add = [&](std::string name, double value) {
    known.push_back({std::move(name), value, within_a_thousandth(value, plain)});
  };
  const auto add_inv_sqrt = [&](std::string_view of, std::int64_t n) {
    if (n > 0) add(std::string("1/sqrt(").append(of).append(")"), inv_sqrt(n));
  };

  add_inv_sqrt("D", facts.D);
  add("1", 1);
  if (facts.D > 0) add("1/D", 1 / static_cast<double>(facts.D));
  add_inv_sqrt("heads", facts.heads);
  add_inv_sqrt("kv_heads", facts.kv_heads);
  add_inv_sqrt("d_model", facts.d_model.value_or(0));
  for (const std::int64_t multiple : {8, 16, 32, 64, 128})
    if (facts.D % multiple != 0)
      add_inv_sqrt("D rounded up to a multiple of " + std::to_string(multiple), (facts.D / multiple + 1) * multiple);
  add_inv_sqrt("Dv", facts.Dv.value_or(0));
  if (facts.D > 0) {
    add("sqrt(D)", 1 / plain);
    add("1/sqrt(D) times log2(e)", plain * std::numbers::log2e);
    add("1/sqrt(D) over log2(e)", plain / std::numbers::log2e);
    if (facts.yarn_mscale)
      add("1/sqrt(D) times the square of the YaRN mscale", plain * *facts.yarn_mscale * *facts.yarn_mscale);
  }
  return known;
}

std::vector<NamedScale> scale_is(double scale, const ScaleFacts& facts) {
  std::vector<NamedScale> names = known_scales(facts);
  std::erase_if(names, [scale](const NamedScale& named) { return !within_a_thousandth(scale, named.value); });
  return names;
}

std::string_view name_of(Verdict::Name name) noexcept {
  constexpr std::array<std::string_view, 5> names{"broken", "undecided", "too_sharp", "too_flat", "level"};
  return names[static_cast<std::size_t>(name)];
}

std::optional<double> Verdict::above_sharp() const { return h75 ? std::optional(*h75 - sharp_limit) : std::nullopt; }

std::optional<double> Verdict::below_flat() const { return h75 ? std::optional(flat_limit - *h75) : std::nullopt; }

Verdict judge(std::span<const HeadStatistics> heads, Scope scope, std::span<const NamedScale> scale_is) {
  const Totals totals = total(heads);
  Verdict verdict;
  verdict.h75 = quantile(totals.ratios, 0.75);
  if (verdict.reason = nan_reason(heads); !verdict.reason.empty()) {
    verdict.name = Verdict::Name::broken;
    return verdict;
  }
  verdict.reason = undecided_reason(totals, scope);
  if (!verdict.reason.empty()) return verdict;

  judge_by_h75(verdict);
  if (verdict.name != Verdict::Name::level) verdict.likely_mistake = mistake_among(scale_is);
  return verdict;
}

}  // namespace levelhead
