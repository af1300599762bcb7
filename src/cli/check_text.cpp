// The words of `check`: what was judged, the verdict, its limits, what to do next.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/check_output.hpp"

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

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

// "0.176777 = 1/sqrt(D) = 1/sqrt(Dv)"
std::string scale_text(const Capture& capture, const Judged& judged) {
  std::string text = fmt::format("scale {:.6g}", capture.scale);
  for (const NamedScale& named : judged.scale_is)
    if (named.name != fmt::format("{:.6g}", capture.scale)) text += " = " + named.name;
  if (capture.own_scale && *capture.own_scale != capture.scale)
    text += fmt::format(" (asked for; the capture was made with {:.6g})", *capture.own_scale);
  return text;
}

std::string tokens_text(const Judged& judged) {
  if (judged.Nq == judged.Nk) return counted(judged.Nq, "token", "tokens");
  return counted(judged.Nq, "query", "queries") + " and " + counted(judged.Nk, "key", "keys");
}

std::string causal_text(const Capture& capture) {
  return std::string(capture.causal ? "causal" : "not causal") + (capture.causal_given ? " (asked for)" : "");
}

bool what_if(const Capture& capture) {
  return capture.causal_given || (capture.own_scale && *capture.own_scale != capture.scale);
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

std::string distance(double x, std::string_view above, std::string_view below) {
  return fmt::format("{:.3f} {}", std::abs(x), x >= 0 ? above : below);
}

std::string h75_text(const Judged& judged) {
  const Verdict& verdict = judged.verdict;
  if (!verdict.h75) return "H75 can't be given: no head has a row with two keys.";
  std::int64_t heads = 0;
  for (const MeasuredLayer& layer : judged.layers)
    heads += std::count_if(layer.heads.begin(), layer.heads.end(),
                           [](const MeasuredHead& head) { return head.statistics.entropy_ratio.has_value(); });
  return fmt::format(
      "H75, the 75th percentile of the entropy ratios of {}, is {:.3f}: {} {:.2f} (too sharp below it), "
      "{} {:.2f} (too flat above it).",
      counted(heads, "head", "heads"), *verdict.h75, distance(*verdict.above_sharp(), "above", "below"),
      Verdict::sharp_limit, distance(*verdict.below_flat(), "below", "above"), Verdict::flat_limit);
}

std::string first_nan(const Judged& judged) {
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads)
      if (head.statistics.nan_rows > 0) return fmt::format("layer {}, head {}", layer.number, head.number);
  return "no head";
}

std::string wrong_scale_advice(const Judged& judged, std::string_view direction) {
  const double plain = judged.D > 0 ? 1 / std::sqrt(static_cast<double>(judged.D)) : 1;
  const std::string what_if = fmt::format("levelhead check --scale {:.6g}", plain);
  if (const auto& mistake = judged.verdict.likely_mistake)
    return fmt::format(
        "the scale equals {}, where 1/sqrt(D) is {:.6g}: see whether `{}` is level, then look at the line "
        "that scales q k. It is no mistake where the model was trained so (T5 with 1, muP with 1/D).",
        *mistake, plain, what_if);
  return fmt::format(
      "the scale has no name that explains it. See whether `{}` is level, and whether q or k were {} "
      "before they were captured.",
      what_if, direction);
}

std::string advice(const Capture& capture, const Judged& judged) {
  const bool asked_for_part = judged.scope == Scope::part;
  switch (judged.verdict.name) {
    case Verdict::Name::broken:
      return fmt::format("look at {} first: a NaN in q, k or v there, or logits that overflow.", first_nan(judged));
    case Verdict::Name::undecided:
      if (asked_for_part) return "judge all of it: the same command without --layer and --head.";
      return "capture every head of every layer over a text of some hundred tokens, and judge all of them.";
    case Verdict::Name::too_sharp: return wrong_scale_advice(judged, "multiplied");
    case Verdict::Name::too_flat:
      return wrong_scale_advice(judged, "divided") + " A model that hardly uses its attention reads like this too.";
    case Verdict::Name::level: break;
  }
  if (what_if(capture))
    return "H75 finds nothing wrong with what was asked for; a loss sweep can tell it from the own.";
  return "nothing to mend. What a wrong scale would look like: `levelhead check --scale 1`; every head: `--heads`.";
}

}  // namespace

std::string header_text(const Screen& screen, const Capture& capture, const Judged& judged) {
  std::string name = shown(screen, capture.file.name(), 200);
  std::string text;
  if (capture.model) text = paint(screen, Colour::bold, shown(screen, *capture.model, screen.columns - 2)) + "\n";
  text += wrapped(screen, name, "", "");
  const auto layers = static_cast<std::int64_t>(capture.layers.size());
  const std::string of_model = capture.layers_of_model && *capture.layers_of_model > layers
                                   ? fmt::format("{} of {} layers", layers, *capture.layers_of_model)
                                   : counted(layers, "layer", "layers");
  const std::string kv = judged.kv_heads == judged.heads ? "" : fmt::format(" ({} for keys)", judged.kv_heads);
  text += wrapped(screen,
                  fmt::format("{}, {}{}, {}, D {}, {}", of_model, counted(judged.heads, "head", "heads"), kv,
                              tokens_text(judged), judged.D, causal_text(capture)),
                  "", "");
  return text + wrapped(screen, scale_text(capture, judged), "", "  ");
}

std::string verdict_text(const Screen& screen, const Capture& capture, const Judged& judged) {
  const Verdict& verdict = judged.verdict;
  const auto layers = static_cast<std::int64_t>(capture.layers.size());
  std::string title = "Verdict: " + paint(screen, colour_of(verdict.name), name_of(verdict.name));
  if (capture.layers_of_model && *capture.layers_of_model > layers)
    title += fmt::format(", from {} of {} layers", layers, *capture.layers_of_model);
  if (verdict.name == Verdict::Name::broken || verdict.name == Verdict::Name::undecided) title += ": " + verdict.reason;
  std::string text = wrapped(screen, title, "", "         ");
  if (verdict.likely_mistake) text += "Likely mistake: the scale is " + *verdict.likely_mistake + "\n";
  if (verdict.h75) text += ruler(screen, verdict);
  text += wrapped(screen, h75_text(judged), "", "");
  return text + wrapped(screen, advice(capture, judged), "Next: ", "      ");
}

std::string notes_text(const Screen& screen) {
  const std::string columns =
      "Means over rows, of layers over heads too. Entropy ratio: 1 spreads over all keys, 0 picks one. z: spread of "
      "the logits within a row; at 1, half a bar, Gaussian logits freeze. Heads: flat, entropy ratio over 0.9; frozen, "
      "most rows give one key over 0.99; sink, over half goes to the first key; local, over half goes to the own and "
      "the previous key.";
  const std::string limits =
      "Evidence, never proof. On 14 real models H75 at their own scale was .54 to .84, and .94 to .96 in one that "
      "hardly uses its attention. Wrong factors of 2.43 and more, or 0.38 and less, were always found; factors of 2 "
      "are often missed, 1.4 mostly. A loss sweep over the scale is better evidence.";
  return wrapped(screen, columns, "Read:   ", "        ") + wrapped(screen, limits, "Limits: ", "        ");
}

}  // namespace levelhead::cli
