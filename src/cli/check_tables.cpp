// The tables of `check`: layers, heads, rows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/check_cells.hpp"
#include "cli/check_output.hpp"

namespace levelhead::cli {
namespace {

constexpr std::size_t entropy_cells = 12, z_cells = 8;
constexpr double z_full = 2;  // a full bar; half of it is the freezing point

std::vector<std::int64_t> heads_with(const MeasuredLayer& layer, std::string_view flag) {
  std::vector<std::int64_t> numbers;
  for (const MeasuredHead& head : layer.heads) {
    const auto here = flags(head.statistics);
    if (std::find(here.begin(), here.end(), flag) != here.end()) numbers.push_back(head.number);
  }
  return numbers;
}

/// Heads that share a flag: which, and for where that takes too long how many.
struct Group {
  std::string_view flag;
  std::string which, how_many;

  std::size_t least() const { return flag.size() + 3 + std::min(which.size(), how_many.size()); }
};

std::vector<Group> groups_of(const MeasuredLayer& layer) {
  constexpr std::array<std::string_view, 6> all_flags{"nan", "empty", "frozen", "flat", "sink", "local"};
  std::vector<Group> groups;
  for (const std::string_view flag : all_flags) {
    const auto heads = heads_with(layer, flag);
    if (!heads.empty())
      groups.push_back({flag, numbers_text(heads, layer.heads.size()), fmt::format("x{}", heads.size())});
  }
  return groups;
}

// "frozen 2, sink 0 1 8", in `width` characters.
std::string notable(const Screen& screen, const MeasuredLayer& layer, std::size_t width) {
  const std::vector<Group> groups = groups_of(layer);
  std::size_t needed = 0;  // with the groups still to come at their shortest
  for (const Group& group : groups) needed += group.least();
  std::string text;
  for (const Group& group : groups) {
    const std::size_t more = group.flag.size() + 3 + group.which.size() - group.least();
    const bool fits = needed + more <= width + 2;  // the last ", " is not written
    needed += fits ? more : 0;
    text += (text.empty() ? "" : ", ") + paint(screen, colour_of(group.flag), group.flag) + " " +
            (fits || group.which.size() <= group.how_many.size() ? group.which : group.how_many);
  }
  return text;
}

constexpr std::size_t token_columns = 13;

std::string row_line(const Screen& screen, const Capture& capture, std::size_t i, const RowState& state) {
  const RowStatistics row = row_statistics(state, std::nullopt);
  std::string token = i < capture.tokens.size() ? shown(screen, capture.tokens[i], token_columns) : "";
  const double ratio = row.count >= 2 ? row.entropy / std::log(static_cast<double>(row.count)) : std::nan("");
  return fmt::format(
      "{:>5}  {} {:>6}  {} {:>5}  {:>7}  {:>5}  {:>8}  {:>8}\n", i, padded(std::move(token), token_columns), row.count,
      paint(screen, Colour::cyan, bar(screen, ratio, 8)), number(ratio, 2), number(std::optional(row.entropy), 3),
      number(std::optional(row.top1), 2), row.count > 0 ? number(std::optional(row.effective_keys), 1) : "-",
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
  return text;
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
                      paint(screen, Colour::cyan, bar(screen, h.entropy_ratio.value_or(std::nan("")), 8)),
                      number(h.entropy_ratio, 2), number(h.z, 2), number(h.logit_std_within, 2), number(h.top1, 2),
                      number(h.effective_keys, 1), number(h.saturated, 2), names);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  return text;
}

std::string row_tables(const Screen& screen, const Capture& capture, const Judged& judged) {
  std::string text;
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads) {
      text += fmt::format("\nlayer {}, head {}\n", layer.number, head.number);
      text += paint(screen, Colour::dim,
                    fmt::format("{:>5}  {:<{}} {:>6}  {:<14}  {:>7}  {:>5}  {:>8}  {:>8}", "query",
                                capture.tokens.empty() ? "" : "token", token_columns, "keys", "entropy ratio",
                                "entropy", "top1", "eff.keys", "spread")) +
              "\n";
      for (std::size_t i = 0; i < head.rows.size(); ++i) text += row_line(screen, capture, i, head.rows[i]);
    }
  return text;
}

}  // namespace levelhead::cli
