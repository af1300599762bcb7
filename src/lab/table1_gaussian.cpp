// Table 1: what softmax makes of n independent Gaussian logits of deviation s, against figures from an independent run
// in double precision. The logits reach forward as its bias over one zero query and key: exact, and no product of q
// and k, which has tails of its own, stands between the deviation and softmax.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "lab/logits.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

// As printed: the last digit tells how far a figure is rounded.
using Told = std::array<std::string_view, 7>;
struct Cell {
  std::int64_t n;
  double s;
  std::int64_t rows;
  Told told;
};
constexpr std::array<Cell, 10> cells{{
    {128, 1, 20'000, {"4.37", ".069", "52.5", ".980", ".136", "2.60", "0"}},
    {128, 8, 20'000, {".66", ".769", "1.80", ".320", ".223", "20.7", ".16"}},
    {128, 16, 20'000, {".30", ".886", "1.31", ".162", ".135", "41.5", ".44"}},
    {1024, .125, 20'000, {"6.92", ".00146", "1008", ".999", ".032", ".41", "0"}},
    {1024, 1, 20'000, {"6.43", ".016", "387", ".997", ".051", "3.25", "0"}},
    {1024, 3.72, 20'000, {"2.60", ".388", "7.59", ".765", ".274", "12.1", ".0015"}},
    {1024, 8, 20'000, {".90", ".709", "2.18", ".400", ".251", "26.0", ".095"}},
    {1024, 16, 20'000, {".385", ".857", "1.42", ".202", ".160", "52.0", ".35"}},
    {8192, 1, 1000, {"8.51", ".00348", "3028", ".9997", ".018", "3.79", "0"}},
    {8192, 8, 8000, {"1.14", ".657", "2.64", ".465", ".264", "30.4", ".063"}},
}};

struct Column {
  std::string name;
  const char* heading;
  Moments GaussianMeans::*measured;
};
const std::array<Column, 7>& columns() {
  static const std::array<Column, 7> all{{
      {"entropy", "entropy", &GaussianMeans::entropy},
      {"top1", "top1", &GaussianMeans::top1},
      {"effective_keys", "keys", &GaussianMeans::effective_keys},
      {"trace_gain", "trace", &GaussianMeans::trace_gain},
      {"frobenius_gain", "Frob.", &GaussianMeans::frobenius_gain},
      {"max", "max", &GaussianMeans::max},
      {"saturated", ">.99", &GaussianMeans::saturated},
  }};
  return all;
}

double value_of(std::string_view figure) { return std::stod(std::string(figure)); }

/// Half a unit of the last digit; "0" is meant as none.
double half_unit(std::string_view figure) {
  if (figure == "0") return 0;
  const std::size_t point = figure.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : figure.size() - point - 1;
  return 0.5 * std::pow(10, -static_cast<double>(decimals));
}

void run(Context& context, Lab& lab) {
  for (std::size_t at = 0; at < cells.size(); ++at) {
    const Cell& cell = cells[at];
    lab.say(fmt::format("table1: {} keys, spread {}", cell.n, cell.s));
    const GaussianMeans means = gaussian_rows(context, lab, 1000 + at, cell.n, cell.s, lab.samples(cell.rows, 20));
    Row row{{{"n", cell.n}, {"s", cell.s}, {"rows", means.entropy.count()}}, {}, {}};
    for (std::size_t c = 0; c < columns().size(); ++c) {
      const Column& column = columns()[c];
      const Moments& m = means.*column.measured;
      row.measured.push_back({column.name, m.mean()});
      row.measured.push_back({column.name + "_se", m.mean_error()});
      row.told.push_back({column.name, value_of(cell.told[c])});
      row.told.push_back({column.name + "_half_unit", half_unit(cell.told[c])});
    }
    lab.emit(std::move(row));
  }
}

/// How far off: in units of 2 % of the figure, and in standard errors. rounded: from the nearest number that rounds
/// to the figure.
struct Off {
  double share = 0, errors = 0;
  bool within(double most_errors) const { return share <= 1 || errors <= most_errors; }
};

Off off(const Row& row, const Column& column, bool rounded) {
  const double told = number(row.told, column.name), slack = number(row.told, column.name + "_half_unit");
  const double difference = std::fabs(number(row.measured, column.name) - told) - (rounded ? slack : 0);
  if (difference <= 0) return {};
  return {difference / std::fabs(0.02 * told), difference / number(row.measured, column.name + "_se")};
}

// Every figure should be within 2 % or 3 standard errors. One of so many is further off by chance now and then, and the
// figures are rounded (.016 by up to 3 %), so that the verdict falls at the limit for the worst of all, from where the
// figure begins.
Conclusion judge(std::span<const Row> rows) {
  const auto count = static_cast<std::int64_t>(rows.size() * columns().size());
  if (count == 0) return {Outcome::inconclusive, "nothing was measured", {}};
  const double limit = worst_of(count);
  double worst = -1;
  std::int64_t within = 0, sound = 0;
  std::string where;
  for (const Row& row : rows)
    for (const Column& column : columns()) {
      const Off here = off(row, column, false);
      within += here.within(3) ? 1 : 0;
      sound += off(row, column, true).within(limit) ? 1 : 0;
      const double far = std::fmin(here.share, here.errors / 3);
      if (far <= worst) continue;
      worst = far;
      where =
          fmt::format("{} at n {}, s {:g}: {:.4g}, told {:.4g}", column.name, number(row.parameters, "n"),
                      number(row.parameters, "s"), number(row.measured, column.name), number(row.told, column.name));
    }
  return {
      sound == count ? Outcome::holds : Outcome::fails,
      fmt::format("{} of {} figures are within 2 % or 3 standard errors, {} within 2 % or {:.1f} (the limit for the "
                  "worst of so many) when told figures may be rounded; the furthest is {}",
                  within, count, sound, limit, where),
      {}};
}

Table table_of(std::span<const Row> rows) {
  Table table{"Measured, and the figure told below it", {"n, s"}, {}};
  for (const Column& column : columns()) table.header.emplace_back(column.heading);
  for (const Row& row : rows) {
    std::vector<std::string> measured{
        fmt::format("{}, {:g}", number(row.parameters, "n"), number(row.parameters, "s"))};
    std::vector<std::string> told{"  told"};
    for (const Column& column : columns()) {
      measured.push_back(fmt::format("{:.4g}", number(row.measured, column.name)));
      told.push_back(fmt::format("{:.4g}", number(row.told, column.name)));
    }
    table.cells.push_back(std::move(measured));
    table.cells.push_back(std::move(told));
  }
  return table;
}

report::Chart chart_of(std::span<const Row> rows) {
  report::Chart chart{.title = "Measured over told, every mean of table 1",
                      .says =
                          "Every mean lies in the band of 2 % around what was told, or its bar of 3 standard errors "
                          "reaches 1 (shares of "
                          "saturated rows stand in the table alone).",
                      .x = {.title = "n, s", .min = 0.5, .max = static_cast<double>(rows.size()) + 0.5},
                      .y = {.title = "measured / told"},
                      .marks = {{.at = 0.98, .to = 1.02, .label = "2 %"}, {.at = 1, .label = ""}}};
  for (std::size_t r = 0; r < rows.size(); ++r)
    chart.x.ticks.emplace_back(static_cast<double>(r + 1), fmt::format("{}, {:g}", number(rows[r].parameters, "n"),
                                                                       number(rows[r].parameters, "s")));
  for (std::size_t c = 0; c < columns().size(); ++c) {
    const Column& column = columns()[c];
    if (column.measured == &GaussianMeans::saturated) continue;  // so few that errors of 50 % would squeeze the rest
    report::Series series{.name = column.name, .style = report::Series::Style::points};
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double told = number(rows[r].told, column.name);
      if (told == 0) continue;
      // The figures of a row stand side by side.
      series.points.push_back({.x = static_cast<double>(r + 1) + 0.12 * (static_cast<double>(c) - 2.5),
                               .y = number(rows[r].measured, column.name) / told,
                               .label = column.name + " at " + chart.x.ticks[r].second,
                               .error = 3 * number(rows[r].measured, column.name + "_se") / told});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Exhibit exhibit(std::span<const Row> rows) { return {{table_of(rows)}, {chart_of(rows)}}; }

}  // namespace

const Experiment table1_gaussian{
    .name = "table1",
    .title = "Softmax of Gaussian logits",
    .question = "What does softmax make of n Gaussian logits of spread s?",
    .claim = "Table 1: entropy, largest weight, effective keys, gains, largest logit and saturated rows.",
    .run = run,
    .judge = judge,
    .exhibit = exhibit};

}  // namespace levelhead::lab
