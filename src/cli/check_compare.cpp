#include "cli/check_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "cli/check_output.hpp"
#include "cli/check_words.hpp"

namespace levelhead::cli {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool changes_more(const HeadChange& x, const HeadChange& y) { return std::abs(x.change()) > std::abs(y.change()); }

std::vector<HeadChange> changes_of(const LayerPair& pair, Member member) {
  std::vector<HeadChange> changes;
  if (pair.a == nullptr || pair.b == nullptr || pair.a->heads.size() != pair.b->heads.size()) return changes;
  for (std::size_t h = 0; h < pair.a->heads.size(); ++h) {
    const HeadChange change{pair.number, pair.a->heads[h].number, (pair.a->heads[h].statistics.*member).value_or(nan),
                            (pair.b->heads[h].statistics.*member).value_or(nan)};
    if (!std::isnan(change.change())) changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(), changes_more);
  return changes;
}

std::vector<LayerPair> pair_layers(const Judged& a, const Judged& b, Member member) {
  std::map<std::int64_t, LayerPair> pairs;
  for (const MeasuredLayer& layer : a.layers) pairs[layer.number].a = &layer;
  for (const MeasuredLayer& layer : b.layers) pairs[layer.number].b = &layer;
  std::vector<LayerPair> list;
  for (auto& [number, pair] : pairs) {
    pair.number = number;
    pair.heads = changes_of(pair, member);
    list.push_back(std::move(pair));
  }
  return list;
}

std::vector<std::string> differences(const Checked& a, const Checked& b) {
  std::vector<std::string> list;
  const auto numbers = [&list](std::string_view what, auto x, auto y) {
    if (x != y) list.push_back(fmt::format("{} {} and {}", what, x, y));
  };
  if (a.capture.model != b.capture.model) list.emplace_back("the model");
  if (a.capture.scale != b.capture.scale)
    list.push_back(fmt::format("scale {:.6g} and {:.6g}", a.capture.scale, b.capture.scale));
  if (a.capture.causal != b.capture.causal)
    list.push_back(fmt::format("causal in {} alone", a.capture.causal ? "A" : "B"));
  numbers("layers", a.capture.layers.size(), b.capture.layers.size());
  numbers("heads", a.judged.heads, b.judged.heads);
  numbers("heads for keys", a.judged.kv_heads, b.judged.kv_heads);
  if (a.judged.Nq == a.judged.Nk && b.judged.Nq == b.judged.Nk) {
    numbers("tokens", a.judged.Nq, b.judged.Nq);
  } else {
    numbers("queries", a.judged.Nq, b.judged.Nq);
    numbers("keys", a.judged.Nk, b.judged.Nk);
  }
  numbers("D", a.judged.D, b.judged.D);
  if (a.capture.tokens != b.capture.tokens) list.emplace_back("the text");
  return list;
}

std::vector<std::string> unmatched(const std::vector<LayerPair>& layers) {
  std::vector<std::int64_t> only_a, only_b, other_heads;
  for (const LayerPair& pair : layers) {
    if (pair.b == nullptr) only_a.push_back(pair.number);
    if (pair.a == nullptr) only_b.push_back(pair.number);
    if (pair.a != nullptr && pair.b != nullptr && pair.a->heads.size() != pair.b->heads.size())
      other_heads.push_back(pair.number);
  }
  const auto named = [](const std::vector<std::int64_t>& numbers) {
    return (numbers.size() == 1 ? "layer " : "layers ") + numbers_text(numbers, 0);
  };
  std::vector<std::string> list;
  if (only_a.size() + only_b.size() == layers.size() && !only_a.empty() && !only_b.empty())
    list.emplace_back("no layer is in both");
  if (!only_a.empty()) list.push_back(named(only_a) + " only in A");
  if (!only_b.empty()) list.push_back(named(only_b) + " only in B");
  if (!other_heads.empty())
    list.push_back("the heads of " + named(other_heads) + ", where A and B have different numbers of them");
  return list;
}

Json pair_json(double a, double b) { return Json::array({a, b}); }  // NaN becomes null

}  // namespace

Comparison compare(const Checked& a, const Checked& b) {
  Comparison all{&a, &b, {}, {}, {}, false, {}, {}};
  const Compared ratio{"entropy_ratio", "entropy ratio", &HeadStatistics::entropy_ratio};
  const Compared spread{"logit_std_within", "spread", &HeadStatistics::logit_std_within};
  const Compared z{"z", "z", &HeadStatistics::z};
  all.shown = a.judged.fresh ? std::array{spread, ratio} : std::array{ratio, z};
  all.layers = pair_layers(a.judged, b.judged, all.shown[0].member);
  for (const LayerPair& pair : all.layers) all.heads.insert(all.heads.end(), pair.heads.begin(), pair.heads.end());
  std::stable_sort(all.heads.begin(), all.heads.end(), changes_more);
  all.identical = to_line(check_json(a.capture, a.judged).at("layers")) ==
                  to_line(check_json(b.capture, b.judged).at("layers"));  // as text, where NaN is null
  all.differs = differences(a, b);
  all.unmatched = unmatched(all.layers);
  return all;
}

Json compare_json(const Comparison& comparison) {
  Json compared{{"identical", comparison.identical},
                {"differs", comparison.differs},
                {"unmatched", comparison.unmatched},
                {"layers", Json::array()},
                {"heads", Json::array()}};
  for (const LayerPair& pair : comparison.layers) {
    Json layer{{"layer", pair.number}};
    for (const Compared& shown : comparison.shown)
      layer[std::string(shown.name)] = pair_json(mean_of(pair.a, shown.member), mean_of(pair.b, shown.member));
    compared["layers"].push_back(std::move(layer));
  }
  for (const HeadChange& head : comparison.heads)
    compared["heads"].push_back({{"layer", head.layer},
                                 {"head", head.head},
                                 {std::string(comparison.shown[0].name), pair_json(head.a, head.b)},
                                 {"change", head.change()}});
  Json captures = Json::array();
  for (const Checked* side : {comparison.a, comparison.b}) captures.push_back(check_json(side->capture, side->judged));
  return {{"captures", std::move(captures)}, {"compare", std::move(compared)}};
}

std::string differs_text(const Comparison& comparison) {
  const auto joined = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& one : list) text += (text.empty() ? "" : "; ") + one;
    return text;
  };
  std::string text = comparison.differs.empty() ? "A and B have the same layers, heads, tokens, D, scale and causality."
                                                : "A and B differ in: " + joined(comparison.differs) + ".";
  if (comparison.identical) text += " Their figures are identical: every statistic of every head is the same number.";
  if (!comparison.unmatched.empty()) text += " Not matched: " + joined(comparison.unmatched) + ".";
  return text;
}

std::vector<std::string> verdict_lines(const Comparison& comparison) {
  std::vector<std::string> lines;
  const std::string_view what = comparison.a->judged.fresh ? "median spread" : "H75";
  for (const Checked* side : {comparison.a, comparison.b}) {
    const Verdict& verdict = side->judged.verdict;
    std::string line(name_of(verdict.name));
    if (const std::string from = from_text(side->capture); !from.empty()) line += ", " + from;
    const auto number = judged_number(side->judged), first = judged_number(comparison.a->judged);
    if (number) line += fmt::format(", {} {:.3f}", what, *number);
    if (number && first && side == comparison.b) line += fmt::format(" ({:+.3f} against A)", *number - *first);
    if (verdict.name == Verdict::Name::broken || verdict.name == Verdict::Name::undecided)
      line += ": " + verdict.reason;
    if (verdict.likely_mistake) line += ". Likely mistake: the scale is " + *verdict.likely_mistake;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace levelhead::cli
