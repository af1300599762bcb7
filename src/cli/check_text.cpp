// What `check` prints beside its tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/check_output.hpp"
#include "cli/check_words.hpp"

namespace levelhead::cli {
namespace {

Colour colour_of(Verdict::Name name) {
  switch (name) {
    case Verdict::Name::level: return Colour::green;
    case Verdict::Name::undecided: return Colour::bold;
    case Verdict::Name::too_flat:
    case Verdict::Name::too_sharp: return Colour::yellow;
    case Verdict::Name::broken: return Colour::red;
  }
  return Colour::none;
}

/// What a rule judges, drawn between its limits as on a spirit level.
struct Ruler {
  std::string_view left, right;  // what lies beyond the limits
  double low = 0, high = 0;      // the limits
  double (*place)(double) = nullptr;
};

double share_place(double x) { return x; }
double octave_place(double x) { return 0.5 + std::log2(std::max(x, 1e-9)) / 1.6; }  // 1 in the middle

const Ruler& ruler_of(Rule rule) {
  static constexpr Ruler h75{"too sharp", "too flat", Verdict::sharp_limit, Verdict::flat_limit, share_place};
  static constexpr Ruler fresh{"too flat", "too sharp", FreshVerdict::low_limit, FreshVerdict::high_limit,
                               octave_place};
  return rule == Rule::fresh ? fresh : h75;
}

}  // namespace

std::string header_text(const Screen& screen, const Capture& capture, const Judged& judged) {
  std::string name = shown(screen, capture.file.name(), 200);
  std::string text;
  if (capture.model) text = paint(screen, Colour::bold, shown(screen, *capture.model, screen.columns - 2)) + "\n";
  text += wrapped(screen, name, "", "");
  text += wrapped(screen, facts_text(capture, judged), "", "");
  return text + wrapped(screen, scale_text(capture, judged), "", "  ");
}

std::string ruler_text(const Screen& screen, Rule rule, std::span<const RulerMark> marks) {
  const Ruler& ruler = ruler_of(rule);
  const std::size_t cells = std::min<std::size_t>(screen.columns - 8, 72);
  const auto place = [&](double x) {
    return static_cast<std::size_t>(std::lround(std::clamp(ruler.place(x), 0.0, 1.0) * static_cast<double>(cells - 1)));
  };
  const std::size_t low = place(ruler.low), high = place(ruler.high);
  std::string labels(cells + 6, ' ');
  const auto label = [&labels](std::size_t at, std::string_view text) { labels.replace(at, text.size(), text); };
  label(0, ruler.left);
  label(low - 2, fmt::format("{:.2f}", ruler.low));
  if (high - low >= 12) label((low + high) / 2 - 2, "level");
  label(high - 2, fmt::format("{:.2f}", ruler.high));
  label(std::max(high + 3, cells - ruler.right.size()), ruler.right);
  labels.erase(labels.find_last_not_of(' ') + 1);
  std::string text = "  " + labels + "\n";
  for (const RulerMark& mark : marks) {
    std::string line;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      if (cell == place(mark.at))
        line += paint(screen, colour_of(mark.verdict), mark.sign);
      else if (cell == low || cell == high)
        line += screen.utf8 ? "┼" : "|";
      else
        line += screen.utf8 ? "─" : "-";
    }
    text += "  " + line + "\n";
  }
  return text;
}

std::optional<double> judged_number(const Judged& judged) {
  return judged.fresh ? judged.fresh->spread : judged.verdict.h75;
}

std::string verdict_name(const Screen& screen, const Judged& judged) {
  return paint(screen, colour_of(judged.verdict.name), name_of(judged.verdict.name));
}

std::string verdict_text(const Screen& screen, const Capture& capture, const Judged& judged) {
  const Verdict& verdict = judged.verdict;
  std::string title = "Verdict: " + verdict_name(screen, judged);
  if (judged.fresh) title += ", as fresh weights";
  if (const std::string from = from_text(capture); !from.empty()) title += ", " + from;
  if (verdict.name == Verdict::Name::broken || verdict.name == Verdict::Name::undecided) title += ": " + verdict.reason;
  std::string text = wrapped(screen, title, "", "         ");
  if (verdict.likely_mistake) text += "Likely mistake: the scale is " + *verdict.likely_mistake + "\n";
  if (const auto number = judged_number(judged)) {
    const RulerMark mark{*number, verdict.name, screen.utf8 ? "●" : "O"};
    text += ruler_text(screen, judged.rule(), {&mark, 1});
  }
  text += wrapped(screen, evidence_text(judged), "", "");
  return text + wrapped(screen, next_text(capture, judged), "Next: ", "      ");
}

std::string notes_text(const Screen& screen, Rule rule) {
  const std::string beyond = std::string(" ") + (screen.utf8 ? "▶" : ">") + ": beyond the bar.";
  const std::string columns =
      rule == Rule::fresh
          ? "Spread: root mean square of a logit minus the mean of its row, over a head; of layers the mean, half a "
            "bar "
            "is 1. Expected: what the means, variances and correlation of the components of q and k let expect. Scale: "
            "the one in use over the spread, which would make it 1; of layers the median. Outside: heads farther than "
            "10 % from 1; x8 is eight of them."
          : "Means over rows, of layers over heads too. Entropy ratio: 1 spreads over all keys, 0 picks one. z: spread "
            "of the logits within a row; at 1, half a bar, Gaussian logits freeze. Heads: flat, entropy ratio over "
            "0.9; frozen, most rows give one key over 0.99; sink, over half goes to the first key; local, over half "
            "goes to the own and the previous key; nan and empty, it has such rows; x8 is eight heads.";
  return wrapped(screen, columns + beyond, "Read:   ", "        ") +
         wrapped(screen, limits_text(rule), "Limits: ", "        ");
}

}  // namespace levelhead::cli
