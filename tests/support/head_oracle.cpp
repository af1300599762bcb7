#include "support/head_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace levelhead::test {

double expected_quantile(std::vector<double> x, double q) {
  std::sort(x.begin(), x.end());
  const double place = q * static_cast<double>(x.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  if (low + 1 >= x.size()) return x.back();
  return x[low] * (1 - (place - std::floor(place))) + x[low + 1] * (place - std::floor(place));
}

ExpectedHead expected_head(const Oracle& oracle, std::int64_t h) {
  const Shape& s = oracle.shape;
  const auto unusable = [](double x) { return std::isnan(x) || x == std::numeric_limits<double>::infinity(); };
  ExpectedHead expected;
  std::map<std::string, double>& x = expected.values;
  std::vector<double> logits, wide_deviations, entropies, top1s;
  std::map<std::string, std::vector<double>> rows, wide;
  double empty_rows = 0, nan_rows = 0, absmax_uncapped = 0, adjacent = 0;
  std::size_t n_max = 0;
  for (std::int64_t b = 0; b < s.B; ++b)
    for (std::int64_t i = 0; i < s.Nq; ++i) {
      const std::size_t row = oracle.row_index(b, h, i);
      std::vector<double> seen;
      double mass = 0;
      for (std::int64_t j = 0; j < s.Nk; ++j) {
        const std::size_t pair = row * static_cast<std::size_t>(s.Nk) + static_cast<std::size_t>(j);
        if (!oracle.visible[pair]) continue;
        seen.push_back(oracle.logit[pair]);
        if (j == i || j == i - 1) mass += oracle.p[pair];
      }
      if (seen.empty()) ++empty_rows;
      if (std::any_of(seen.begin(), seen.end(), unusable)) ++nan_rows;
      if (seen.empty() || std::any_of(seen.begin(), seen.end(), unusable)) continue;

      const RowStatistics& r = oracle.rows.at(row);
      n_max = std::max(n_max, seen.size());
      adjacent += mass;
      absmax_uncapped = std::max(absmax_uncapped, r.absmax_uncapped);
      entropies.push_back(r.entropy);
      top1s.push_back(r.top1);
      rows["lse"].push_back(r.lse);
      rows["entropy"].push_back(r.entropy);
      rows["perplexity"].push_back(r.perplexity);
      rows["effective_keys"].push_back(r.effective_keys);
      rows["top1"].push_back(r.top1);
      rows["trace_gain"].push_back(r.trace_gain);
      rows["frobenius_gain"].push_back(r.frobenius_gain);
      rows["sink_mass"].push_back(r.sink_mass);
      logits.insert(logits.end(), seen.begin(), seen.end());
      if (seen.size() < 2) continue;
      wide["entropy_ratio"].push_back(r.entropy / std::log(static_cast<double>(seen.size())));
      wide["saturated"].push_back(r.top1 > 0.99 ? 1 : 0);
      wide["first_key_mass"].push_back(r.first_key_mass);
      for (const double logit : seen) wide_deviations.push_back(logit - r.mean);
    }

  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  const auto mean_square = [&](std::vector<double> values, double centre) {
    for (double& value : values) value = (value - centre) * (value - centre);
    return mean(values);
  };
  x["rows"] = static_cast<double>(s.B * s.Nq);
  x["empty_rows"] = empty_rows;
  x["nan_rows"] = nan_rows;
  if (logits.empty()) return expected;
  x["logit_mean"] = mean(logits);
  x["logit_std"] = std::sqrt(mean_square(logits, x["logit_mean"]));
  x["logit_max"] = *std::max_element(logits.begin(), logits.end());
  x["logit_min"] = *std::min_element(logits.begin(), logits.end());
  x["absmax_uncapped"] = absmax_uncapped;
  for (const auto& [name, values] : rows) x[name] = mean(values);
  for (const auto& [name, values] : wide) x[name] = mean(values);
  if (!wide_deviations.empty()) {
    x["logit_std_within"] = std::sqrt(mean_square(wide_deviations, 0));
    x["z"] = x["logit_std_within"] / std::sqrt(2 * std::log(static_cast<double>(n_max)));
  }
  for (const auto& [name, q] : std::map<std::string, double>{{"q05", 0.05}, {"q50", 0.5}, {"q95", 0.95}}) {
    x["entropy_" + name] = expected_quantile(entropies, q);
    x["top1_" + name] = expected_quantile(top1s, q);
  }
  expected.adjacent_mass = adjacent / static_cast<double>(entropies.size());
  return expected;
}

}  // namespace levelhead::test
