#include "cli/check_cells.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace levelhead::cli {

double mean_of(const MeasuredLayer& layer, Member member) {
  double sum = 0;
  int count = 0;
  for (const MeasuredHead& head : layer.heads)
    if (const auto& x = head.statistics.*member) sum += *x, ++count;
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

double mean_of(const MeasuredLayer* layer, Member member) {
  return layer != nullptr ? mean_of(*layer, member) : std::numeric_limits<double>::quiet_NaN();
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

std::string numbers_text(const std::vector<std::int64_t>& numbers, std::size_t heads) {
  if (numbers.size() == heads && heads > 1) return "all";
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last - first == 1) last = first;  // two are no range
    text += fmt::format("{}{}", text.empty() ? "" : " ", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text;
}

}  // namespace levelhead::cli
