#include "cli/check_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levelhead::cli {
namespace {

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

std::string distance(double x, std::string_view above, std::string_view below) {
  return fmt::format("{:.3f} {}", std::abs(x), x >= 0 ? above : below);
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

}  // namespace

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string facts_text(const Capture& capture, const Judged& judged) {
  const auto layers = static_cast<std::int64_t>(capture.layers.size());
  const std::string of_model = capture.layers_of_model && *capture.layers_of_model > layers
                                   ? fmt::format("{} of {} layers", layers, *capture.layers_of_model)
                                   : counted(layers, "layer", "layers");
  const std::string kv = judged.kv_heads == judged.heads ? "" : fmt::format(" ({} for keys)", judged.kv_heads);
  return fmt::format("{}, {}{}, {}, D {}, {}", of_model, counted(judged.heads, "head", "heads"), kv,
                     tokens_text(judged), judged.D, causal_text(capture));
}

std::string scale_text(const Capture& capture, const Judged& judged) {
  std::string text = fmt::format("scale {:.6g}", capture.scale);
  for (const NamedScale& named : judged.scale_is)
    if (named.name != fmt::format("{:.6g}", capture.scale)) text += " = " + named.name;
  if (capture.own_scale && *capture.own_scale != capture.scale)
    text += fmt::format(" (asked for; the capture was made with {:.6g})", *capture.own_scale);
  return text;
}

std::string from_text(const Capture& capture) {
  const auto layers = static_cast<std::int64_t>(capture.layers.size());
  if (!capture.layers_of_model || *capture.layers_of_model <= layers) return "";
  return fmt::format("from {} of {} layers", layers, *capture.layers_of_model);
}

std::string evidence_text(const Judged& judged) {
  if (judged.fresh) return fresh_evidence_text(*judged.fresh, judged);
  const Verdict& verdict = judged.verdict;
  if (!verdict.h75) return "H75 can't be given: no head has a row with two keys.";
  std::int64_t heads = 0;
  for (const MeasuredLayer& layer : judged.layers)
    heads += std::count_if(layer.heads.begin(), layer.heads.end(), [](const MeasuredHead& head) {
      return !std::isnan(head.statistics.entropy_ratio.value_or(std::nan("")));
    });
  return fmt::format(
      "H75, the 75th percentile of the entropy ratios of {}, is {:.3f}: {} {:.2f} (too sharp below it), "
      "{} {:.2f} (too flat above it).",
      counted(heads, "head", "heads"), *verdict.h75, distance(*verdict.above_sharp(), "above", "below"),
      Verdict::sharp_limit, distance(*verdict.below_flat(), "below", "above"), Verdict::flat_limit);
}

std::string next_text(const Capture& capture, const Judged& judged) {
  const bool asked_for_part = judged.scope == Scope::part;
  const bool wrong = judged.verdict.name != Verdict::Name::broken && judged.verdict.name != Verdict::Name::undecided;
  if (judged.fresh && wrong) return fresh_next_text(capture, judged);
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

std::string limits_text(Rule rule) {
  if (rule == Rule::fresh)
    return "For untrained weights: H75 is not judged, they lie about its flat limit, and trained models have heads "
           "with a "
           "spread from 0.5 to 13. Chance moves the spread of a head by about 1/sqrt(D times tokens), so over few "
           "tokens a right scale can miss. A spread of 1 is where the textbook starts, no proof that training goes "
           "well: a loss sweep over the scale is better evidence.";
  return "Evidence, never proof. On 14 real models H75 at their own scale was .54 to .84, and .94 to .96 in one that "
         "hardly uses its attention. Wrong factors of 2.43 and more, or 0.38 and less, were always found; factors of 2 "
         "are often missed, 1.4 mostly. A loss sweep over the scale is better evidence.";
}

}  // namespace levelhead::cli
