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

// H75 between its limits, as on a spirit level.
std::string ruler(const Screen& screen, const Verdict& verdict) {
  const std::size_t cells = std::min<std::size_t>(screen.columns - 8, 72);
  const auto place = [cells](double x) {
    return static_cast<std::size_t>(std::lround(std::clamp(x, 0.0, 1.0) * static_cast<double>(cells - 1)));
  };
  const std::size_t sharp = place(Verdict::sharp_limit), flat = place(Verdict::flat_limit);
  std::string labels(cells + 6, ' ');
  const auto label = [&labels](std::size_t at, std::string_view text) { labels.replace(at, text.size(), text); };
  label(0, "too sharp");
  label(sharp - 2, fmt::format("{:.2f}", Verdict::sharp_limit));
  label((sharp + flat) / 2 - 2, "level");
  label(flat - 2, fmt::format("{:.2f}", Verdict::flat_limit));
  label(flat + 3, "too flat");
  std::string line;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    if (cell == place(*verdict.h75))
      line += paint(screen, colour_of(verdict.name), screen.utf8 ? "●" : "O");
    else if (cell == sharp || cell == flat)
      line += screen.utf8 ? "┼" : "|";
    else
      line += screen.utf8 ? "─" : "-";
  }
  labels.erase(labels.find_last_not_of(' ') + 1);
  return "  " + labels + "\n  " + line + "\n";
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

std::string verdict_text(const Screen& screen, const Capture& capture, const Judged& judged) {
  const Verdict& verdict = judged.verdict;
  std::string title = "Verdict: " + paint(screen, colour_of(verdict.name), name_of(verdict.name));
  if (const std::string from = from_text(capture); !from.empty()) title += ", " + from;
  if (verdict.name == Verdict::Name::broken || verdict.name == Verdict::Name::undecided) title += ": " + verdict.reason;
  std::string text = wrapped(screen, title, "", "         ");
  if (verdict.likely_mistake) text += "Likely mistake: the scale is " + *verdict.likely_mistake + "\n";
  if (verdict.h75) text += ruler(screen, verdict);
  text += wrapped(screen, h75_text(judged), "", "");
  return text + wrapped(screen, next_text(capture, judged), "Next: ", "      ");
}

std::string notes_text(const Screen& screen) {
  const std::string columns =
      "Means over rows, of layers over heads too. Entropy ratio: 1 spreads over all keys, 0 picks one. z: spread of "
      "the logits within a row; at 1, half a bar, Gaussian logits freeze. Heads: flat, entropy ratio over 0.9; frozen, "
      "most rows give one key over 0.99; sink, over half goes to the first key; local, over half goes to the own and "
      "the previous key; nan and empty, it has such rows.";
  return wrapped(screen, columns, "Read:   ", "        ") + wrapped(screen, limits_text(), "Limits: ", "        ");
}

}  // namespace levelhead::cli
