// The tables of `check`: layers, heads, rows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/check_output.hpp"

namespace levelhead::cli {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t entropy_cells = 16, z_cells = 8;
constexpr double z_full = 2;  // a full bar; half of it is the freezing point

/// Mean over heads of one statistic; NaN when none has it.
double mean_of(const MeasuredLayer& layer, std::optional<double> HeadStatistics::*member) {
  double sum = 0;
  int count = 0;
  for (const MeasuredHead& head : layer.heads)
    if (const auto& x = head.statistics.*member) sum += *x, ++count;
  return count > 0 ? sum / count : nan;
}

std::string number(double x, int decimals) { return std::isnan(x) ? "-" : fmt::format("{:.{}f}", x, decimals); }

std::string number(const std::optional<double>& x, int decimals) {
  if (!x) return "-";
  if (std::isnan(*x)) return "nan";
  const std::string text = fmt::format("{:.{}f}", *x, decimals);
  return text.size() <= 8 ? text : fmt::format("{:.1e}", *x);
}

Colour colour_of(std::string_view flag) {
  if (flag == "frozen" || flag == "nan" || flag == "empty") return Colour::red;
  return flag == "flat" ? Colour::yellow : Colour::cyan;
}

// "sink 0 2 5", or "sink all".
std::string heads_with(const MeasuredLayer& layer, std::string_view flag) {
  std::string numbers;
  std::size_t count = 0;
  for (const MeasuredHead& head : layer.heads) {
    const auto here = flags(head.statistics);
    if (std::find(here.begin(), here.end(), flag) == here.end()) continue;
    numbers += " " + std::to_string(head.number);
    ++count;
  }
  if (count == 0) return {};
  return std::string(flag) + (count == layer.heads.size() && count > 1 ? " all" : numbers);
}

constexpr std::array<std::string_view, 6> all_flags{"nan", "empty", "frozen", "flat", "sink", "local"};

// Groups of heads that fit into `width`; the rest is counted.
std::string notable(const Screen& screen, const MeasuredLayer& layer, std::size_t width) {
  std::string text;
  std::size_t used = 0, left_out = 0;
  for (const std::string_view flag : all_flags) {
    const std::string group = heads_with(layer, flag);
    if (group.empty()) continue;
    const std::size_t needed = group.size() + (text.empty() ? 0 : 2);
    if (left_out > 0 || used + needed > width - 4) {
      ++left_out;
      continue;
    }
    text += (text.empty() ? "" : ", ") + paint(screen, colour_of(flag), flag) + group.substr(flag.size());
    used += needed;
  }
  if (left_out > 0) text += (text.empty() ? "" : " ") + fmt::format("+{}", left_out);
  return text;
}

bool any_has(const Judged& judged, std::string_view flag) {
  return std::any_of(judged.layers.begin(), judged.layers.end(),
                     [&](const MeasuredLayer& layer) { return !heads_with(layer, flag).empty(); });
}

std::string meaning_of(std::string_view flag) {
  if (flag == "flat") return "flat: entropy ratio > 0.9";
  if (flag == "frozen") return "frozen: one key takes > 99 % in most rows";
  if (flag == "sink") return "sink: the first key takes > 50 %";
  if (flag == "local") return "local: own and previous key take > 50 %";
  if (flag == "nan") return "nan: rows are NaN";
  return "empty: no row sees a key";
}

std::string legend(const Screen& screen, const Judged& judged) {
  std::string text;
  for (const std::string_view flag : all_flags)
    if (any_has(judged, flag)) text += (text.empty() ? "" : "; ") + meaning_of(flag);
  return text.empty() ? "" : wrapped(screen, text + ".", "       ", "       ");
}

std::string row_line(const Screen& screen, const Capture& capture, std::size_t i, const RowState& state) {
  const RowStatistics row = row_statistics(state, std::nullopt);
  std::string token = i < capture.tokens.size() ? shown(screen, capture.tokens[i], 16) : "";
  const double ratio = row.count >= 2 ? row.entropy / std::log(static_cast<double>(row.count)) : nan;
  return fmt::format("{:>5}  {} {:>6}  {} {:>5}  {:>7}  {:>5}  {:>8}  {:>8}\n", i, padded(std::move(token), 16),
                     row.count, paint(screen, Colour::cyan, bar(screen, ratio, 8)), number(ratio, 2),
                     number(std::optional(row.entropy), 3), number(std::optional(row.top1), 2),
                     row.count > 0 ? number(std::optional(row.effective_keys), 1) : "-",
                     row.count > 0 ? number(std::optional(std::sqrt(row.variance)), 2) : "-");
}

}  // namespace

std::string layer_table(const Screen& screen, const Judged& judged) {
  // Lines stay below the last column, so that no terminal wraps them.
  const std::size_t fixed = 5 + 2 + entropy_cells + 6 + 3 + z_cells + 6 + 3;
  std::string text = paint(screen, Colour::dim,
                           fmt::format("{:>5}  {:<{}}   {:<{}}   {}", "layer", "entropy ratio", entropy_cells + 6, "z",
                                       z_cells + 6, "notable heads")) +
                     "\n";
  for (const MeasuredLayer& layer : judged.layers) {
    const double entropy = mean_of(layer, &HeadStatistics::entropy_ratio), z = mean_of(layer, &HeadStatistics::z);
    const std::string heads = notable(screen, layer, screen.columns - 1 - fixed);
    std::string line = fmt::format("{:>5}  {} {:>5}   {} {:>5}   {}", layer.number,
                                   paint(screen, Colour::cyan, bar(screen, entropy, entropy_cells)), number(entropy, 2),
                                   paint(screen, Colour::cyan, bar(screen, z / z_full, z_cells)), number(z, 2), heads);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += wrapped(screen,
                  "Means over heads. Entropy ratio: 1 spreads over all keys, 0 picks one. z: spread of the logits "
                  "within a row; at 1, half a bar, Gaussian logits freeze.",
                  "       ", "       ");
  return text + legend(screen, judged);
}

std::string head_table(const Screen& screen, const Judged& judged) {
  std::string text = paint(screen, Colour::dim,
                           fmt::format("{:>5} {:>4}  {:<14}  {:>5}  {:>6}  {:>5}  {:>7}  {:>6}  {}", "layer", "head",
                                       "entropy ratio", "z", "spread", "top1", "eff.key", "frozen", "notable")) +
                     "\n";
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads) {
      const HeadStatistics& h = head.statistics;
      std::string names;
      for (const std::string_view flag : flags(h))
        names += (names.empty() ? "" : " ") + paint(screen, colour_of(flag), flag);
      std::string line =
          fmt::format("{:>5} {:>4}  {} {:>5}  {:>5}  {:>6}  {:>5}  {:>7}  {:>6}  {}", layer.number, head.number,
                      paint(screen, Colour::cyan, bar(screen, h.entropy_ratio.value_or(nan), 8)),
                      number(h.entropy_ratio, 2), number(h.z, 2), number(h.logit_std_within, 2), number(h.top1, 2),
                      number(h.effective_keys, 1), number(h.saturated, 2), names);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  return text + legend(screen, judged);
}

std::string row_tables(const Screen& screen, const Capture& capture, const Judged& judged) {
  std::string text;
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads) {
      text += fmt::format("\nlayer {}, head {}\n", layer.number, head.number);
      text += paint(screen, Colour::dim,
                    fmt::format("{:>5}  {:<16} {:>6}  {:<14}  {:>7}  {:>5}  {:>8}  {:>8}", "query",
                                capture.tokens.empty() ? "" : "token", "keys", "entropy ratio", "entropy", "top1",
                                "eff.keys", "spread")) +
              "\n";
      for (std::size_t i = 0; i < head.rows.size(); ++i) text += row_line(screen, capture, i, head.rows[i]);
    }
  return text;
}

}  // namespace levelhead::cli
