// What grows 8 times from d_k 64 to 512, and what does not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lab/moments.hpp"
#include "lab/random.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

constexpr std::array<std::int64_t, 4> dims{64, 128, 256, 512};
constexpr std::int64_t keys = 1000;  // a range is the largest minus the smallest of so many products
constexpr double told = 8;

struct Spread {
  Moments product, range;
};

Spread measure(Lab& lab, std::int64_t d) {
  std::vector<Spread> parts(static_cast<std::size_t>(lab.samples(200, 4)));
  lab.parallel(static_cast<std::int64_t>(parts.size()), [&](std::int64_t task) {
    Random random(lab.seed(), {3, static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(task)});
    double low = std::numeric_limits<double>::infinity(), high = -low;
    Spread& part = parts[static_cast<std::size_t>(task)];
    for (std::int64_t j = 0; j < keys; ++j) {
      double dot = 0;
      for (std::int64_t c = 0; c < d; ++c) {
        const double q = random.normal(), k = random.normal();
        dot += q * k;
      }
      part.product.push(dot);
      low = std::min(low, dot);
      high = std::max(high, dot);
    }
    part.range.push(high - low);
  });
  Spread all;
  for (const Spread& part : parts) {
    all.product.add(part.product);
    all.range.add(part.range);
  }
  return all;
}

void run(Context&, Lab& lab) {
  for (const std::int64_t d : dims) {
    lab.say(fmt::format("a3: products of {} components", d));
    const Spread spread = measure(lab, d);
    lab.emit({{{"d", d}, {"products", spread.product.count()}, {"keys", keys}},
              {{"variance", spread.product.variance()},
               {"variance_se", spread.product.variance_error()},
               {"sd", spread.product.sd()},
               {"sd_se", spread.product.sd_error()},
               {"range", spread.range.mean()},
               {"range_se", spread.range.mean_error()}},
              {}});
  }
}

Measured measured(const Row& row, const std::string& name) {
  return {number(row.measured, name), number(row.measured, name + "_se")};
}

bool is_told(Measured grown) { return std::fabs(grown.value - told) <= 3 * grown.error; }

Conclusion judge(std::span<const Row> rows) {
  const auto row_of = [rows](std::int64_t d) {
    return std::find_if(rows.begin(), rows.end(),
                        [d](const Row& row) { return number(row.parameters, "d") == static_cast<double>(d); });
  };
  const auto from = row_of(64), to = row_of(512);
  if (from == rows.end() || to == rows.end()) return {Outcome::inconclusive, "64 and 512 were not both measured", {}};
  const auto grown = [&](const char* name) { return ratio(measured(*to, name), measured(*from, name)); };
  const Measured variance = grown("variance"), sd = grown("sd"), range = grown("range");
  return {is_told(sd) && is_told(range) ? Outcome::holds : Outcome::fails,
          fmt::format("from 64 to 512 the standard deviation grows {:.2f} times and the range of {} products {:.2f} "
                      "times, told {:g}; the variance grows {:.2f} +- {:.2f} times{}",
                      sd.value, number(from->parameters, "keys"), range.value, told, variance.value, variance.error,
                      is_told(variance) ? ", and that is the 8" : ""),
          {}};
}

Table growth_table(std::span<const Row> rows) {
  Table table{"Growth from the first row, in brackets",
              {"d_k", "variance", "standard deviation", fmt::format("range of {}", keys)},
              {}};
  for (const Row& row : rows) {
    table.cells.push_back({fmt::format("{}", number(row.parameters, "d"))});
    for (const char* name : {"variance", "sd", "range"})
      table.cells.back().push_back(fmt::format("{:.4g} ({:.2f})", number(row.measured, name),
                                               number(row.measured, name) / number(rows.front().measured, name)));
  }
  return table;
}

report::Chart growth_chart(std::span<const Row> rows) {
  using Style = report::Series::Style;
  report::Chart chart{
      .title = "Spread of q.k against d_k",
      .says =
          "Standard deviation and range grow with sqrt(d_k), far below the line of the claim; only the variance "
          "follows it.",
      .x = {.title = "d_k, components of q and k", .min = 55.0, .max = 600.0, .log = true},
      .y = {.title = "times the value at d_k 64", .log = true},
      .series = {{.name = "variance", .style = Style::points},
                 {.name = "standard deviation", .style = Style::points},
                 {.name = fmt::format("range of {} products", keys), .style = Style::points},
                 {.name = "sqrt(d_k / 64)", .style = Style::line},
                 {.name = "as told: d_k / 64", .style = Style::dashed}}};
  for (const int times : {1, 2, 4, 8}) chart.y.ticks.emplace_back(times, std::to_string(times));
  for (const Row& row : rows) {
    const double d = number(row.parameters, "d"), factor = d / number(rows.front().parameters, "d");
    chart.x.ticks.emplace_back(d, fmt::format("{}", d));
    std::size_t at = 0;
    for (const char* what : {"variance", "sd", "range"}) {
      const std::string name = what;
      const double first = number(rows.front().measured, name);
      chart.series[at++].points.push_back(
          {.x = d, .y = number(row.measured, name) / first, .error = number(row.measured, name + "_se") / first});
    }
    chart.series[3].points.push_back({.x = d, .y = std::sqrt(factor)});
    chart.series[4].points.push_back({.x = d, .y = factor});
  }
  return chart;
}

Exhibit exhibit(std::span<const Row> rows) { return {{growth_table(rows)}, {growth_chart(rows)}}; }

}  // namespace

const Experiment a3_range{.name = "a3",
                          .title = "From d_k 64 to 512",
                          .question = "How much wider do dot products spread at d_k 512 than at 64?",
                          .claim = "From d_k 64 to 512 the range grows 8 times.",
                          .run = run,
                          .judge = judge,
                          .exhibit = exhibit};

}  // namespace levelhead::lab
