#include "report/check_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "levelhead/verdict.hpp"
#include "report/definitions.hpp"

namespace levelhead::report {
namespace {

struct VerdictWords {
  std::string_view name, title, meaning;
};

constexpr std::array verdict_words{
    VerdictWords{"level", "Level: no sign of a wrong attention scale",
                 "As in healthy models, most [heads](head) neither stick to a single [key](key) nor look at all keys "
                 "alike."},
    VerdictWords{"too_sharp", "Too sharp: the attention scale looks too large",
                 "In too many [heads](head) each [query](query) sticks to a single [key](key), and then hardly any "
                 "gradient passes: the dot products seem to be multiplied by too much."},
    VerdictWords{"too_flat", "Too flat: the attention scale looks too small",
                 "Most [heads](head) look at all [keys](key) nearly alike, so they tell little apart: the dot products "
                 "seem to be multiplied by too little."},
    VerdictWords{"undecided", "Undecided: there is too little to judge by",
                 "The numbers are shown, but what was measured is too small a part for a verdict."},
    VerdictWords{"broken", "Broken: some results are not numbers",
                 "A NaN reached the softmax. Nothing else matters until that is mended."},
};

constexpr std::array fresh_words{
    VerdictWords{"level", "Level: fresh weights start with a spread of 1",
                 "Every [head](head) has a [spread](logit_std_within) within 10 % of 1, as 1/sqrt(D) is meant to give "
                 "it before training."},
    VerdictWords{"too_sharp", "Too sharp: the scale is too large for fresh weights",
                 "The [spread](logit_std_within) should be 1 before training and is more in the middle of the "
                 "[heads](head): the dot products seem to be multiplied by too much, or q and k are too large."},
    VerdictWords{"too_flat", "Too flat: the scale is too small for fresh weights",
                 "The [spread](logit_std_within) should be 1 before training and is less in the middle of the "
                 "[heads](head): the dot products seem to be multiplied by too little, or q and k are too small."},
    verdict_words[3],
    verdict_words[4],
};

bool is_fresh(const CheckedCapture& capture) { return capture.check.at("verdict").at("rule") == "fresh"; }

const VerdictWords& words_of(const CheckedCapture& capture) {
  const auto name = capture.check.at("verdict").at("name").get<std::string>();
  const auto& all = is_fresh(capture) ? fresh_words : verdict_words;
  const auto* found = std::find_if(all.begin(), all.end(), [&](const VerdictWords& w) { return w.name == name; });
  return found == all.end() ? all[3] : *found;
}

constexpr std::string_view intro =
    "What is judged: attention looks from each [query](query) at its [keys](key) with weights softmax([scale](scale) · "
    "q·k). "
    "With too large a scale every query sticks to one key, with too small a one all keys look alike. Words with dots "
    "under "
    "them explain themselves.";

std::string counted(std::size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::optional<double> number(const Json& head, std::string_view name) {
  const auto found = head.find(std::string(name));
  return found != head.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

/// Calls visit(layer, head, n_max) for each head of the capture.
template <class Visit>
void for_each_head(const CheckedCapture& capture, Visit&& visit) {
  std::size_t i = 0;
  for (const Json& layer : capture.check.at("layers"))
    for (const Json& head : layer.at("heads"))
      visit(layer.at("layer").get<std::int64_t>(), head, capture.n_max.at(i++));
}

Section verdict_section(const CheckedCapture& capture, std::string_view limits) {
  const Json& verdict = capture.check.at("verdict");
  const VerdictWords& said = words_of(capture);
  Json block{{"kind", "verdict"},
             {"title", said.title},
             {"from", capture.from},
             {"meaning", said.meaning},
             {"verdict", verdict},
             {"model", capture.check.at("model")},
             {"file", capture.check.at("file")},
             {"facts", capture.facts},
             {"scale", capture.scale},
             {"evidence", capture.evidence},
             {"next", capture.next},
             {"intro", intro},
             {"limits", limits}};
  return {.blocks = {std::move(block)}};
}

/// Where the curve passes `limit`, as a multiplier; nothing if it does not.
std::optional<double> crossing(const std::vector<SweepPoint>& sweep, double limit) {
  for (std::size_t i = 0; i + 1 < sweep.size(); ++i) {
    const auto &a = sweep[i].h75, &b = sweep[i + 1].h75;
    if (!a || !b || (*a - limit) * (*b - limit) > 0 || *a == *b) continue;
    const double share = (limit - *a) / (*b - *a);
    return sweep[i].multiplier * std::pow(sweep[i + 1].multiplier / sweep[i].multiplier, share);
  }
  return std::nullopt;
}

std::string sweep_words(const CheckedCapture& capture) {
  std::string text =
      "The larger the scale, the sharper the attention: the curve is [H75](h75), the green band is level.";
  const auto sharp = crossing(capture.sweep, Verdict::sharp_limit), flat = crossing(capture.sweep, Verdict::flat_limit);
  if (sharp)
    text += fmt::format(" It falls below {:.2f} at about {:.2g} times the scale in use.", Verdict::sharp_limit, *sharp);
  if (flat) text += fmt::format(" It rises above {:.2f} at about {:.2g} times.", Verdict::flat_limit, *flat);
  if (!sharp && !flat) text += " Within these multiples it does not leave its zone.";
  return text;
}

Section sweep_section(const CheckedCapture& capture) {
  Chart chart{.says = sweep_words(capture)};
  chart.x = {.title = "multiple of the scale in use",
             .min = 0.25,
             .max = 4,
             .log = true,
             .ticks = {{0.25, "1/4"}, {0.5, "1/2"}, {1, "1"}, {2, "2"}, {4, "4"}}};
  chart.y = {.title = "H75", .min = 0, .max = 1};
  Series curve{.name = "H75"};
  for (const auto& [multiplier, h75] : capture.sweep)
    curve.points.push_back({multiplier, h75.value_or(std::nan("")), fmt::format("{:.3g} times the scale", multiplier)});
  chart.series = {std::move(curve)};
  chart.marks = capture.sweep_marks;
  chart.marks.push_back({Mark::Across::y, Verdict::sharp_limit, Verdict::flat_limit, "level"});
  chart.marks.push_back(
      {.axis = Mark::Across::y, .at = Verdict::sharp_limit, .label = "too sharp below 0.48", .below = true});
  chart.marks.push_back({.axis = Mark::Across::y, .at = Verdict::flat_limit, .label = "too flat above 0.90"});
  return {"What another scale would do", "Every head was computed again at each scale.", {block(chart)}};
}

/// Each head's spread against the one that its components let expect.
Section expected_section(const CheckedCapture& capture) {
  Series heads{.name = "heads", .style = Series::Style::points},
      equal{.name = "as expected", .style = Series::Style::dashed};
  double most = 1.5;
  for_each_head(capture, [&](std::int64_t layer, const Json& head, std::int64_t) {
    const auto spread = number(head, "logit_std_within"), expected = number(head, "expected_spread");
    if (!spread || !expected) return;
    most = std::max({most, *spread, *expected});
    heads.points.push_back(
        {*expected, *spread, fmt::format("layer {}, head {}", layer, head.at("head").get<std::int64_t>())});
  });
  most = std::ceil(most * 1.05 * 2) / 2;
  equal.points = {{0, 0, "as expected"}, {most, most, "as expected"}};
  Chart chart{.says =
                  "In the green band the [spread](logit_std_within) is within 10 % of 1. On the dashed line it is the "
                  "[expected spread](expected_spread); off it, components depend on each other or tokens differ."};
  chart.x = {.title = "expected spread", .min = 0, .max = most};
  chart.y = {.title = "spread of the logits in a row", .min = 0, .max = most};
  chart.series = {std::move(heads), std::move(equal)};
  chart.marks = {{Mark::Across::y, FreshVerdict::low_limit, FreshVerdict::high_limit, "level"}};
  return {"What the components let expect",
          "With twice the scale every [spread](logit_std_within) is twice as large, and so is what is expected.",
          {block(chart)}};
}

struct Quantity {
  std::string_view name, says;
  std::optional<double> full;  // the dark end of the ramp; absent: the 95th percentile of the heads
};

constexpr std::array quantities{
    Quantity{"entropy_ratio",
             "Near 0 a head gives its weight to one key, near 1 to all keys alike; healthy models have both.", 1.0},
    Quantity{"z",
             "Above 1 the logits are spread beyond the freezing point of Gaussian ones: such a head looks at few keys.",
             2.0},
    Quantity{"saturated",
             "Share of the rows where one key has more than 0.99 of the weight; local and sink heads may have many.",
             1.0},
    Quantity{"first_key_mass",
             "Weight parked on the first key: trained decoders often use it as a place to look at nothing.", 1.0},
    Quantity{"trace_gain",
             "Near 0 a change of the logits hardly moves the weights, so the head hardly learns through them.", 1.0},
    Quantity{"frobenius_gain", "Small where one key has all the weight, and where very many share it; 0.5 at most.",
             0.5},
    Quantity{"logit_std_within",
             "How far the logits of a row lie apart; healthy trained models have heads from 0.5 to 13.",
             {}},
};

// Before those of every capture.
constexpr std::array fresh_quantities{
    Quantity{"logit_std_within", "Of fresh weights this should be within 10 % of 1 in every head.", 2.0},
    Quantity{"expected_spread", "What the means, variances and correlation of the components let expect.", 2.0},
    Quantity{"suggested_scale", "The scale that would give the head a spread of 1.", {}},
};

Json quantities_json(bool fresh) {
  Json list = Json::array();
  const auto add = [&list](const Quantity& q) {
    const bool known = std::any_of(list.begin(), list.end(), [&](const Json& one) { return one.at("name") == q.name; });
    if (!known) list.push_back({{"name", q.name}, {"says", q.says}, {"full", q.full ? Json(*q.full) : Json(nullptr)}});
  };
  if (fresh) std::for_each(fresh_quantities.begin(), fresh_quantities.end(), add);
  std::for_each(quantities.begin(), quantities.end(), add);
  return list;
}

Section map_section(std::size_t number, bool fresh) {
  Json block{{"kind", "head_map"}, {"capture", number}, {"quantities", quantities_json(fresh)}};
  return {"Every head",
          "One cell a head, one row a layer. Point at a cell, or walk with the arrow keys.",
          {std::move(block)}};
}

Series freezing_line(double largest_n) {
  Series line{.name = "freezing line, sqrt(2 ln n)", .style = Series::Style::dashed};
  const int last = static_cast<int>(std::lround(2 * std::log2(largest_n)));
  for (int half_octaves = 2; half_octaves <= last; ++half_octaves) {
    const double n = std::exp2(half_octaves / 2.0);
    line.points.push_back({n, std::sqrt(2 * std::log(n)), fmt::format("{:.0f} keys", n)});
  }
  return line;
}

// All heads of a capture see the same number of keys, so they are drawn side by side, layer by layer.
Series plane_heads(const CheckedCapture& capture) {
  Series heads{.name = "heads, by entropy ratio", .style = Series::Style::points};
  const auto layers = static_cast<double>(capture.check.at("layers").size());
  double place = 0;
  std::int64_t last = -1;
  for_each_head(capture, [&](std::int64_t layer, const Json& head, std::int64_t n_max) {
    if (last != -1 && layer != last) ++place;
    last = layer;
    const auto spread = number(head, "logit_std_within");
    if (!spread || n_max < 2) return;
    Point point{static_cast<double>(n_max), *spread,
                fmt::format("layer {}, head {}", layer, head.at("head").get<std::int64_t>())};
    point.shade = number(head, "entropy_ratio");
    point.aside = layers > 1 ? (place / (layers - 1) - 0.5) * 0.3 : 0;
    heads.points.push_back(std::move(point));
  });
  return heads;
}

Section plane_section(const CheckedCapture& capture) {
  Series heads = plane_heads(capture);
  double largest_n = 2, largest_spread = 4;
  std::size_t above = 0;
  for (const Point& point : heads.points) {
    largest_n = std::max(largest_n, point.x);
    largest_spread = std::max(largest_spread, point.y);
    above += point.y > std::sqrt(2 * std::log(point.x)) ? 1 : 0;
  }
  Chart chart{
      .says = fmt::format("{} of {} above the [freezing line](freezing_line), where softmax of Gaussian logits would "
                          "give its weight to few keys however many there are; real heads can be healthy there.",
                          above, counted(heads.points.size(), "head lies", "heads lie"))};
  const int octaves = static_cast<int>(std::ceil(std::log2(std::max(16.0, largest_n)))) + 2;
  const double right = std::exp2(octaves);
  chart.x = {.title = "number of keys n", .min = 2, .max = right, .log = true};
  for (int octave = 1; octave <= octaves; octave += 2)
    chart.x.ticks.emplace_back(std::exp2(octave), fmt::format("{:.0f}", std::exp2(octave)));
  chart.y = {.title = "spread of the logits in a row", .min = 0, .max = std::ceil(largest_spread * 1.05)};
  if (!heads.points.empty())
    chart.marks = {{.axis = Mark::Across::x, .at = largest_n, .label = fmt::format("n = {:.0f}", largest_n)}};
  chart.series = {std::move(heads), freezing_line(right)};
  return {"Spread against the number of keys",
          "A head's [spread](logit_std_within) decides how sharp it can be; how much is needed depends on how many "
          "keys there "
          "are. Heads are drawn side by side around their n, the first layer leftmost.",
          {block(chart)}};
}

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8U | (k < left ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= left ? alphabet[group >> (18U - 6U * k) & 63U] : '=';
  }
  return text;
}

Section attention_section(const AttentionPictures& pictures) {
  Json block{{"kind", "attention"},
             {"rows", pictures.rows},
             {"keys", pictures.keys},
             {"row_names", pictures.row_names},
             {"key_names", pictures.key_names},
             {"heads", Json::array()}};
  for (const AttentionPicture& picture : pictures.heads)
    block["heads"].push_back(
        {{"layer", picture.layer}, {"head", picture.head}, {"why", picture.why}, {"weights", base64(picture.weights)}});
  std::string lead =
      "Each row is a [query](query), each column a [key](key) it looks at: the stronger a cell, the more weight.";
  if (pictures.rows < pictures.all_rows || pictures.keys < pictures.all_keys)
    lead += fmt::format(" Drawn are the first {} of {} queries and {} of {} keys.", pictures.rows, pictures.all_rows,
                        pictures.keys, pictures.all_keys);
  return {"The most extreme heads", lead, {std::move(block)}};
}

Section numbers_section(std::size_t number) {
  return {"All numbers", "As `levelhead check --json -` gives them.", {{{"kind", "heads"}, {"capture", number}}}};
}

// Long paths end up as their last part.
std::string short_name(const Json& check) {
  std::string name =
      check.at("model").is_string() ? check.at("model").get<std::string>() : check.at("file").get<std::string>();
  const std::size_t slash = name.find_last_of('/');
  if (slash != std::string::npos && slash + 1 < name.size()) name.erase(0, slash + 1);
  return name;
}

Tab tab_of(const CheckedCapture& capture, std::size_t number, std::string_view limits) {
  Tab tab{capture.label + short_name(capture.check) + ": " +
          std::string(label_of(capture.check.at("verdict").at("name").get<std::string>()))};
  const bool fresh = is_fresh(capture);
  tab.sections = {verdict_section(capture, limits), fresh ? expected_section(capture) : sweep_section(capture),
                  map_section(number, fresh), plane_section(capture)};
  if (!capture.pictures.heads.empty()) tab.sections.push_back(attention_section(capture.pictures));
  tab.sections.push_back(numbers_section(number));
  return tab;
}

}  // namespace

std::string check_page(std::span<const CheckedCapture> captures, std::string_view limits, std::optional<Tab> first) {
  Page page;
  if (first) page.tabs.push_back(std::move(*first));
  page.title = captures.size() == 1 ? "levelhead check: " + short_name(captures[0].check) : "levelhead check";
  page.definitions = definitions_json();
  page.data = Json::array();
  for (std::size_t i = 0; i < captures.size(); ++i) {
    page.data.push_back(captures[i].check);
    page.tabs.push_back(tab_of(captures[i], i, limits));
  }
  return html(page);
}

}  // namespace levelhead::report
