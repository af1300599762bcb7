#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/check_compare.hpp"
#include "cli/check_output.hpp"
#include "cli/check_words.hpp"

namespace levelhead::cli {
namespace {

using report::Chart;
using report::Series;
using report::Table;

constexpr std::size_t most_heads = 20;  // of the table of changes
constexpr std::size_t most_ticks = 16;

Json name_json(const Capture& capture) { return capture.model ? Json(*capture.model) : Json("not given"); }

Table sides_table(const Comparison& comparison) {
  const Checked &a = *comparison.a, &b = *comparison.b;
  return {.columns = {"", "A", "B"},
          .rows = {{"model", name_json(a.capture), name_json(b.capture)},
                   {"file", a.capture.file.name(), b.capture.file.name()},
                   {"what", facts_text(a.capture, a.judged), facts_text(b.capture, b.judged)},
                   {"scale", scale_text(a.capture, a.judged), scale_text(b.capture, b.judged)}}};
}

Series side_series(const Comparison& comparison, const Compared& shown, bool first) {
  Series series{.name = first ? "A" : "B"};
  for (const LayerPair& pair : comparison.layers) {
    const MeasuredLayer* layer = first ? pair.a : pair.b;
    if (layer == nullptr) continue;
    series.points.push_back({static_cast<double>(pair.number), mean_of(*layer, shown.member),
                             fmt::format("layer {} of {}", pair.number, series.name)});
  }
  return series;
}

Chart layers_chart(const Comparison& comparison, const Compared& shown) {
  Chart chart{.title = std::string(shown.title), .x = {.title = "layer"}, .y = {.title = "mean over heads", .min = 0}};
  if (shown.name == "entropy_ratio") chart.y.max = 1;
  if (comparison.layers.size() <= most_ticks)  // else the chart chooses, and not between layers
    for (const LayerPair& pair : comparison.layers)
      chart.x.ticks.emplace_back(static_cast<double>(pair.number), std::to_string(pair.number));
  chart.series = {side_series(comparison, shown, true), side_series(comparison, shown, false)};
  return chart;
}

Table heads_table(const Comparison& comparison) {
  Table table{.columns = {"layer", "head", "A", "B", "change"}};
  for (std::size_t i = 0; i < std::min(most_heads, comparison.heads.size()); ++i) {
    const HeadChange& head = comparison.heads[i];
    table.rows.push_back({head.layer, head.head, head.a, head.b, head.change()});
  }
  return table;
}

}  // namespace

report::Tab compare_tab(const Comparison& comparison) {
  report::Tab tab{.title = "A and B"};
  const std::vector<std::string> verdicts = verdict_lines(comparison);
  tab.sections.push_back(
      {.title = "A and B, side by side",
       .lead = differs_text(comparison),
       .blocks = {report::words("A: " + verdicts[0] + "."), report::words("B: " + verdicts[1] + "."),
                  block(sides_table(comparison)), report::words(limits_text(comparison.a->judged.rule()))}});
  report::Section layers{.title = "Layer by layer", .lead = "Means over the heads of a layer."};
  for (const Compared& shown : comparison.shown) layers.blocks.push_back(block(layers_chart(comparison, shown)));
  tab.sections.push_back(std::move(layers));
  if (!comparison.heads.empty())
    tab.sections.push_back(
        {.title = "The heads that changed most",
         .lead = fmt::format("By [{}]({}), matched by their numbers; change is B minus A. A change says that attention "
                             "differs, not which is better.",
                             comparison.shown[0].title, comparison.shown[0].name),
         .blocks = {block(heads_table(comparison))}});
  return tab;
}

}  // namespace levelhead::cli
