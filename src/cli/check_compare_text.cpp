#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/check_compare.hpp"
#include "cli/check_output.hpp"
#include "cli/check_words.hpp"

namespace levelhead::cli {
namespace {

constexpr double least_named = 0.005;  // a change that is not 0 in two decimals

// Columns of a pair of numbers and their change.
struct Pair {
  double a = std::nan(""), b = std::nan("");

  std::string text() const {
    const double change = b - a;
    const std::string by = std::isnan(change)               ? "-"
                           : std::abs(change) < least_named ? "0.00"
                                                            : fmt::format("{:+.2f}", change);
    return fmt::format("{:>5} {:>5} {:>6}", number(a, 2), number(b, 2), by);
  }
};

Pair means_of(const LayerPair& layer, Member member) { return {mean_of(layer.a, member), mean_of(layer.b, member)}; }

// "3 -0.21, 5 +0.10", as many as fit.
std::string changed_heads(const LayerPair& layer, std::size_t room) {
  std::string text;
  for (const HeadChange& head : layer.heads) {
    if (std::abs(head.change()) < least_named) break;
    const std::string one = fmt::format("{}{} {:+.2f}", text.empty() ? "" : ", ", head.head, head.change());
    if (text.size() + one.size() > room) break;
    text += one;
  }
  return text;
}

std::string compare_table(const Screen& screen, const Comparison& comparison) {
  const std::size_t fixed = 5 + 2 + 18 + 3 + 18 + 3;
  std::string text =
      paint(screen, Colour::dim,
            fmt::format("       {:^18}         {}", comparison.shown[0].title, comparison.shown[1].title)) +
      "\n" +
      paint(screen, Colour::dim,
            fmt::format("layer  {0:>5} {1:>5} {2:>6}   {0:>5} {1:>5} {2:>6}   {3}", "A", "B", "change",
                        screen.columns < 80 ? "heads" : "heads that changed most")) +
      "\n";
  for (const LayerPair& layer : comparison.layers) {
    std::string line = fmt::format(
        "{:>5}  {}   {}   {}", layer.number, means_of(layer, comparison.shown[0].member).text(),
        means_of(layer, comparison.shown[1].member).text(), changed_heads(layer, screen.columns - 1 - fixed));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string most_changed(const Comparison& comparison) {
  std::string text;
  constexpr std::size_t few = 3;
  for (std::size_t i = 0; i < std::min(few, comparison.heads.size()); ++i) {
    const HeadChange& head = comparison.heads[i];
    if (std::abs(head.change()) < least_named) break;
    text += fmt::format("{}layer {}, head {}, {:.2f} to {:.2f}", text.empty() ? "" : "; ", head.layer, head.head,
                        head.a, head.b);
  }
  if (text.empty()) return comparison.heads.empty() ? "" : "No head changed by 0.005 or more.";
  return fmt::format("Changed most, by {}: {}.", comparison.shown[0].title, text);
}

std::string headed(const Screen& screen, std::string_view name, const Checked& side) {
  return paint(screen, Colour::bold, name) + "\n" + header_text(screen, side.capture, side.judged);
}

std::string compare_notes(const Screen& screen, const Comparison& comparison) {
  const std::string read = fmt::format(
      "Means over rows and heads. Change: B minus A. Heads: those whose {} changed most, matched by their number, with "
      "the change. Over other tokens every number moves a little. A change says that attention differs, not which is "
      "better. Each on its own: the same command without --compare.",
      comparison.shown[0].title);
  return wrapped(screen, read, "Read:   ", "        ") +
         wrapped(screen, limits_text(comparison.a->judged.rule()), "Limits: ", "        ");
}

}  // namespace

std::string compare_text(const Screen& screen, const Comparison& comparison) {
  std::string text = headed(screen, "A", *comparison.a) + headed(screen, "B", *comparison.b) + "\n";
  text += wrapped(screen, differs_text(comparison), "", "") + "\n";
  text += compare_table(screen, comparison);
  if (const std::string most = most_changed(comparison); !most.empty()) text += "\n" + wrapped(screen, most, "", "");
  const std::vector<std::string> verdicts = verdict_lines(comparison);
  text += "\n" + wrapped(screen, verdicts[0], "Verdict of A: ", "              ") +
          wrapped(screen, verdicts[1], "Verdict of B: ", "              ");
  std::vector<RulerMark> marks;
  for (const auto& [side, sign] : {std::pair(comparison.a, "A"), std::pair(comparison.b, "B")})
    if (const auto at = judged_number(side->judged)) marks.push_back({*at, side->judged.verdict.name, sign});
  if (!marks.empty()) text += ruler_text(screen, comparison.a->judged.rule(), marks);
  return text + "\n" + compare_notes(screen, comparison);
}

}  // namespace levelhead::cli
