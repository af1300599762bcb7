// Where softmax of Gaussian logits turns from an average into a choice: a grid of spreads and numbers of keys.
//
// For n independent logits of deviation s the sum of e^logit is near its mean n e^(s^2/2) as long as many keys carry
// it, and the entropy then is ln n - s^2/2. From s = sqrt(2 ln n) on (the random energy model) the largest ones carry
// it alone: the row is frozen. The formula is tested up to half of that, the choice from twice of it on; between them
// n keys are too few for a sharp border.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "lab/logits.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

struct Keys {
  std::int64_t n, rows;
};
constexpr std::array<Keys, 3> sizes{{{128, 4000}, {1024, 2000}, {8192, 500}}};
constexpr std::array spreads{0.125, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0};
constexpr double formula_tolerance = 0.02;  // of ln n

double freezing(double n) { return std::sqrt(2 * std::log(n)); }

void run(Context& context, Lab& lab) {
  for (const Keys& size : sizes)
    for (std::size_t at = 0; at < spreads.size(); ++at) {
      const double s = spreads[at];
      lab.say(fmt::format("a7: {} keys, spread {}", size.n, s));
      const std::uint64_t stream = 700 + static_cast<std::uint64_t>(size.n) * 100 + at;
      const GaussianMeans means = gaussian_rows(context, lab, stream, size.n, s, lab.samples(size.rows, 10));
      const auto n = static_cast<double>(size.n);
      lab.emit({{{"n", size.n}, {"s", s}, {"rows", means.entropy.count()}},
                {{"s_over_freezing", s / freezing(n)},
                 {"entropy", means.entropy.mean()},
                 {"entropy_se", means.entropy.mean_error()},
                 {"entropy_formula", std::log(n) - s * s / 2},
                 {"top1", means.top1.mean()},
                 {"top1_se", means.top1.mean_error()},
                 {"effective_keys", means.effective_keys.mean()},
                 {"saturated", means.saturated.mean()}},
                {}});
    }
}

std::vector<Row> of_size(std::span<const Row> rows, std::int64_t n) {
  std::vector<Row> chosen;
  for (const Row& row : rows)
    if (number(row.parameters, "n") == static_cast<double>(n)) chosen.push_back(row);
  return chosen;
}

/// The spread at which the mean largest weight passes one half, linear between neighbours.
std::optional<double> half_point(std::span<const Row> rows) {
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const double before = number(rows[r - 1].measured, "top1"), after = number(rows[r].measured, "top1");
    if (before > 0.5 || after <= 0.5) continue;
    const double low = number(rows[r - 1].parameters, "s"), high = number(rows[r].parameters, "s");
    return low + (high - low) * (0.5 - before) / (after - before);
  }
  return std::nullopt;
}

struct Grid {
  double worst_formula = 0;  // of ln n, up to half the freezing spread
  double top1_below = 0;     // the largest there
  double top1_above = 1;     // the smallest from twice the freezing spread on
  std::int64_t cells_below = 0, cells_above = 0;
};

Grid read_grid(std::span<const Row> rows) {
  Grid grid;
  for (const Row& row : rows) {
    const double z = number(row.measured, "s_over_freezing"), top1 = number(row.measured, "top1");
    if (z <= 0.5) {
      const double off = std::fabs(number(row.measured, "entropy") - number(row.measured, "entropy_formula")) /
                         std::log(number(row.parameters, "n"));
      grid.worst_formula = worse(grid.worst_formula, off);
      grid.top1_below = worse(grid.top1_below, top1);
      ++grid.cells_below;
    }
    if (z >= 2) {
      grid.top1_above = -worse(-grid.top1_above, -top1);
      ++grid.cells_above;
    }
  }
  return grid;
}

std::string half_points(std::span<const Row> rows) {
  std::string list;
  for (const Keys& size : sizes)
    if (const auto half = half_point(of_size(rows, size.n)))
      list += fmt::format("{}{:.1f} at n {}", list.empty() ? "" : ", ", *half, size.n);
  return list.empty() ? "at no spread measured" : "from a spread of " + list;
}

Conclusion judge(std::span<const Row> rows) {
  const Grid grid = read_grid(rows);
  if (grid.cells_below == 0 || grid.cells_above == 0)
    return {Outcome::inconclusive, "the grid lacks one side of the freezing spread", {}};
  if (std::isnan(grid.worst_formula + grid.top1_below + grid.top1_above))
    return {Outcome::inconclusive, "a number of the grid is NaN", {}};
  const std::string winner = "one key takes more than half " + half_points(rows);
  if (grid.top1_above <= 0.5)
    return {
        Outcome::fails, fmt::format("even at twice sqrt(2 ln n) the largest weight is {:.2f}", grid.top1_above), {}};
  if (grid.top1_below > 0.5) return {Outcome::holds, winner + ", and so it does at every spread measured", {}};
  const bool formula = grid.worst_formula <= formula_tolerance;
  return {Outcome::depends,
          fmt::format("{}; up to half of sqrt(2 ln n) no key gets more than {:.2f} and the entropy {} ln n - s^2/2 "
                      "(off by {:.1f} % of ln n at most), from twice of it on the largest weight is {:.2f} or more",
                      winner, grid.top1_below, formula ? "is" : "is not", 100 * grid.worst_formula, grid.top1_above),
          "the spread over sqrt(2 ln n), n the number of keys"};
}

Table entropy_table(std::span<const Row> rows) {
  Table table{"Entropy in nats (ln n - s^2/2 in brackets) and mean largest weight", {"s"}, {}};
  for (const Keys& size : sizes) table.header.push_back(fmt::format("n {}", size.n)), table.header.emplace_back("top1");
  for (std::size_t at = 0; at < spreads.size(); ++at) {
    table.cells.push_back({fmt::format("{:g}", spreads[at])});
    for (const Keys& size : sizes)
      for (const Row& row : of_size(rows, size.n)) {
        if (number(row.parameters, "s") != spreads[at]) continue;
        const double formula = number(row.measured, "entropy_formula");
        table.cells.back().push_back(fmt::format("{:.2f} ({})", number(row.measured, "entropy"),
                                                 formula >= 0 ? fmt::format("{:.2f}", formula) : "-"));
        table.cells.back().push_back(fmt::format("{:.3f}", number(row.measured, "top1")));
      }
    table.cells.back().resize(table.header.size());
  }
  return table;
}

Table freezing_table(std::span<const Row> rows) {
  Table table{"Where it turns", {"n", "sqrt(2 ln n)", "top1 passes 1/2 at s", "rows over .99 at s 16"}, {}};
  for (const Keys& size : sizes) {
    const std::vector<Row> here = of_size(rows, size.n);
    if (here.empty()) continue;
    const auto half = half_point(here);
    table.cells.push_back({fmt::format("{}", size.n), fmt::format("{:.2f}", freezing(static_cast<double>(size.n))),
                           half ? fmt::format("{:.2f}", *half) : "-",
                           fmt::format("{:.0f} %", 100 * number(here.back().measured, "saturated"))});
  }
  return table;
}

report::Chart entropy_chart(std::span<const Row> rows) {
  using Style = report::Series::Style;
  report::Chart chart{
      .title = "Entropy against the spread of the logits",
      .says =
          "Entropy falls as ln n - s^2/2 at first, leaves it on the way to the freezing line s = sqrt(2 ln n), and "
          "beyond it few keys share the weight.",
      .x = {.title = "s, standard deviation of the logits", .log = true},
      .y = {.title = "entropy, nats", .min = 0.0},
      .marks = {{.axis = report::Mark::Across::x,
                 .at = freezing(static_cast<double>(sizes.front().n)),
                 .to = freezing(static_cast<double>(sizes.back().n)),
                 .label = fmt::format("freezing, from n {} to {}", sizes.front().n, sizes.back().n)}}};
  for (const double s : {0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0})
    chart.x.ticks.emplace_back(s, fmt::format("{}", s));
  for (const Keys& size : sizes) {
    report::Series series{.name = fmt::format("n {}", size.n), .style = Style::points};
    for (const Row& row : of_size(rows, size.n))
      series.points.push_back({.x = number(row.parameters, "s"),
                               .y = number(row.measured, "entropy"),
                               .error = number(row.measured, "entropy_se")});
    chart.series.push_back(std::move(series));
  }
  for (const Keys& size : sizes) {
    const auto n = static_cast<double>(size.n);
    report::Series series{.name = fmt::format("ln {} - s^2/2", size.n), .style = Style::dashed};
    for (int step = 0; step <= 40; ++step) {
      const double s = 0.125 * std::pow(freezing(n) / 0.125, step / 40.0);
      series.points.push_back({.x = s, .y = std::log(n) - s * s / 2});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

report::Chart winner_chart(std::span<const Row> rows) {
  report::Chart chart{
      .title = "The largest weight against the spread over the freezing spread",
      .says = "One key takes more than half of the weight only beyond the freezing line.",
      .x = {.title = "s / sqrt(2 ln n)", .log = true},
      .y = {.title = "mean largest weight", .min = 0.0, .max = 1.0},
      .marks = {{.axis = report::Mark::Across::x, .at = 1, .label = "freezing"}, {.at = 0.5, .label = "half"}}};
  for (const double z : {0.03, 0.1, 0.3, 1.0, 3.0}) chart.x.ticks.emplace_back(z, fmt::format("{}", z));
  for (const Keys& size : sizes) {
    report::Series series{.name = fmt::format("n {}", size.n)};
    for (const Row& row : of_size(rows, size.n))
      series.points.push_back({.x = number(row.measured, "s_over_freezing"),
                               .y = number(row.measured, "top1"),
                               .error = number(row.measured, "top1_se")});
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Exhibit exhibit(std::span<const Row> rows) {
  return {{entropy_table(rows), freezing_table(rows)}, {entropy_chart(rows), winner_chart(rows)}};
}

}  // namespace

const Experiment a7_winner{.name = "a7",
                           .title = "When one winner takes all",
                           .question = "How far must logits spread before softmax picks one key?",
                           .claim = "With a big spread, one winner takes all.",
                           .run = run,
                           .judge = judge,
                           .exhibit = exhibit};

}  // namespace levelhead::lab
