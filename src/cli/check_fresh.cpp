// `check --fresh`: the words and tables of the verdict on untrained weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/check_cells.hpp"
#include "cli/check_output.hpp"
#include "cli/check_words.hpp"

namespace levelhead::cli {
namespace {

constexpr std::size_t spread_cells = 7, spread_cells_of_head = 6;  // so that 60 columns hold a line
constexpr double spread_full = 2;                                  // a full bar; half of it is 1

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  bool empty() const { return least > most; }
};

template <class Heads>
Range range_of(const Heads& heads) {
  Range range;
  for (const MeasuredHead& head : heads) {
    const double x = head.statistics.logit_std_within.value_or(std::nan(""));
    if (std::isnan(x)) continue;
    range.least = std::min(range.least, x);
    range.most = std::max(range.most, x);
  }
  return range;
}

std::vector<MeasuredHead> all_heads(const Judged& judged) {
  std::vector<MeasuredHead> heads;
  for (const MeasuredLayer& layer : judged.layers) heads.insert(heads.end(), layer.heads.begin(), layer.heads.end());
  return heads;
}

// In 5 characters, unless it is very large.
std::string short_number(double x) { return x >= 99.995 ? fmt::format("{:.3g}", x) : number(x, 2); }

/// The middle of what the heads have of one number; absent when none has it.
std::optional<double> median(const std::vector<MeasuredHead>& heads, std::optional<double> MeasuredHead::*member) {
  std::vector<double> values;
  for (const MeasuredHead& head : heads)
    if (const auto& x = head.*member; x && !std::isnan(*x)) values.push_back(*x);
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

// The heads beyond the limits by their numbers, or how many they are where those do not fit.
std::string outside_text(const MeasuredLayer& layer, std::size_t room) {
  std::vector<std::int64_t> numbers;
  for (const MeasuredHead& head : layer.heads)
    if (const auto& x = head.statistics.logit_std_within; x && !FreshVerdict::holds(*x)) numbers.push_back(head.number);
  const std::string text = numbers_text(numbers, layer.heads.size());
  return text.size() <= room ? text : fmt::format("x{}", numbers.size());
}

std::string significant(const std::optional<double>& x, int digits) {
  return x && !std::isnan(*x) ? fmt::format("{:.{}g}", *x, digits) : "-";
}

std::string spread_bar(const Screen& screen, double spread, std::size_t cells) {
  return paint(screen, FreshVerdict::holds(spread) ? Colour::green : Colour::yellow,
               bar(screen, spread / spread_full, cells));
}

}  // namespace

std::string fresh_layer_table(const Screen& screen, const Judged& judged) {
  std::string text = paint(screen, Colour::dim,
                           fmt::format("{:>5}  {:<{}} {:>5} {:>5} {:>8} {:>8}  {}", "layer", "spread", spread_cells + 6,
                                       "least", "most", "expected", "scale", "outside")) +
                     "\n";
  for (const MeasuredLayer& layer : judged.layers) {
    const double mean = mean_of(layer, &HeadStatistics::logit_std_within);
    const Range range = range_of(layer.heads);
    const std::string outside = outside_text(layer, screen.columns - 1 - 52);
    std::string line = fmt::format(
        "{:>5}  {} {:>5} {:>5} {:>5} {:>8} {:>8}  {}", layer.number, spread_bar(screen, mean, spread_cells),
        short_number(mean), range.empty() ? "-" : short_number(range.least),
        range.empty() ? "-" : short_number(range.most), number(median(layer.heads, &MeasuredHead::expected_spread), 2),
        significant(median(layer.heads, &MeasuredHead::suggested_scale), 3), outside);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string fresh_head_table(const Screen& screen, const Judged& judged) {
  std::string text = paint(screen, Colour::dim,
                           fmt::format("{:>5} {:>4}  {:<{}} {:>8} {:>9} {:>13}", "layer", "head", "spread",
                                       spread_cells_of_head + 7, "expected", "scale", "entropy ratio")) +
                     "\n";
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads) {
      const HeadStatistics& h = head.statistics;
      text += fmt::format("{:>5} {:>4}  {} {:>6} {:>8} {:>9} {:>13}\n", layer.number, head.number,
                          spread_bar(screen, h.logit_std_within.value_or(std::nan("")), spread_cells_of_head),
                          number(h.logit_std_within, 3), number(head.expected_spread, 3),
                          significant(head.suggested_scale, 4), number(h.entropy_ratio, 2));
    }
  return text;
}

std::string fresh_evidence_text(const FreshVerdict& fresh, const Judged& judged) {
  if (!fresh.spread) return "The spread within rows can't be given: no head has a row with two keys.";
  const std::vector<MeasuredHead> heads = all_heads(judged);
  std::string text = fmt::format(
      "The spread within rows of {} has the median {:.3f} (should be 1) and runs from {:.3f} to {:.3f}; {} within 10 % "
      "of 1.",
      counted(fresh.heads, "head", "heads"), *fresh.spread, range_of(heads).least, range_of(heads).most,
      fresh.outside == 0 ? "all are" : counted(fresh.outside, "is not", "are not"));
  if (const auto expected = median(heads, &MeasuredHead::expected_spread))
    text += fmt::format(" From the components alone {:.3f} is expected.", *expected);
  if (fresh.suggested_scale)
    text += fmt::format(" Suggested scale, for a median of 1: {:.6g}.", *fresh.suggested_scale);
  return text;
}

std::string fresh_next_text(const Capture& capture, const Judged& judged) {
  const FreshVerdict& fresh = *judged.fresh;
  if (fresh.name == Verdict::Name::level)
    return "nothing to mend before training. Once it is trained, judge it by H75: `levelhead check` without `--fresh`.";
  if (!fresh.suggested_scale)
    return capture.scale == 0 ? "the scale is 0, so every logit is: look at the line that scales q k."
                              : "look at q and k: no scale gives such logits a spread of 1.";
  const Range range = range_of(all_heads(judged));
  const bool one_fits =
      FreshVerdict::holds(range.least / *fresh.spread) && FreshVerdict::holds(range.most / *fresh.spread);
  if (!one_fits && FreshVerdict::holds(*fresh.spread))
    return "the median is right but no one scale brings every head within 10 % of 1: is the model untrained?";
  std::string text = fmt::format("the scale {:.6g} would give a median of 1", *fresh.suggested_scale);
  if (judged.D > 0) text += fmt::format(" (1/sqrt(D) is {:.6g})", 1 / std::sqrt(static_cast<double>(judged.D)));
  if (const auto& mistake = judged.verdict.likely_mistake)
    text += fmt::format(", and the one in use equals {}", *mistake);
  text += ": look at the line that scales q k, and at how q and k are initialised.";
  if (!one_fits) text += " No one scale brings every head within 10 %: is the model untrained?";
  return text + fmt::format(" See `levelhead check --fresh --scale {:.6g}`.", *fresh.suggested_scale);
}

}  // namespace levelhead::cli
