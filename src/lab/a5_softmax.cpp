// Softmax of 60, 65, 70: as told, and as it is.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "lab/logits.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

constexpr std::array scores{60.0, 65.0, 70.0};
constexpr std::array told{0.25, 0.30, 0.35};
constexpr double half_a_digit = 0.005;  // of figures told to two places
constexpr std::array<const char*, 3> names{"p1", "p2", "p3"};

void run(Context& context, Lab& lab) {
  for (const double divisor : {1.0, 100.0}) {
    std::array<double, 3> logits{};
    for (std::size_t j = 0; j < logits.size(); ++j) logits[j] = scores[j] / divisor;
    const std::vector<double> p = softmax(context, logits);
    Row row{{{"scores", "60 65 70"}, {"divided_by", divisor}}, {}, {}};
    for (std::size_t j = 0; j < p.size(); ++j) row.measured.push_back({names[j], p[j]});
    if (divisor == 1)
      for (std::size_t j = 0; j < p.size(); ++j) row.told.push_back({names[j], told[j]});
    lab.emit(std::move(row));
  }
}

double sum_of(const Fields& fields) {
  double sum = 0;
  for (const char* name : names) sum += number(fields, name);
  return sum;
}

std::string listed(const Fields& fields) {
  return fmt::format("{:.2g}, {:.3g}, {:.4g}", number(fields, "p1"), number(fields, "p2"), number(fields, "p3"));
}

Conclusion judge(std::span<const Row> rows) {
  double worst = 0;
  const Row* compared = nullptr;
  for (const Row& row : rows) {
    if (row.told.empty()) continue;
    compared = &row;
    for (const char* name : names) worst = worse(worst, std::fabs(number(row.told, name) - number(row.measured, name)));
  }
  if (compared == nullptr) return {Outcome::inconclusive, "nothing was told", {}};
  const bool holds = worst <= half_a_digit && std::fabs(sum_of(compared->told) - 1) <= 3 * half_a_digit;
  return {holds ? Outcome::holds : Outcome::fails,
          fmt::format("it is {}; a figure told is {:.2f} off, and the three told sum to {:.2f}",
                      listed(compared->measured), worst, sum_of(compared->told)),
          {}};
}

report::Bars bars_of(std::span<const Row> rows) {
  report::Bars bars{.title = "Weights of 60, 65 and 70",
                    .says = "The weights told are nearly equal; the third key takes all but a hundredth.",
                    .labels = {"60", "65", "70"},
                    .y = {.title = "weight", .min = 0.0, .max = 1.0}};
  const auto add = [&bars](std::string name, const Fields& p) {
    bars.series.push_back({std::move(name), {number(p, "p1"), number(p, "p2"), number(p, "p3")}});
  };
  for (const Row& row : rows) {
    if (!row.told.empty()) add("as told", row.told);
    const double divisor = number(row.parameters, "divided_by");
    add(divisor == 1 ? "measured" : fmt::format("measured, of the scores divided by {}", divisor), row.measured);
  }
  return bars;
}

Exhibit exhibit(std::span<const Row> rows) {
  Table table{"Softmax", {"of", "first", "second", "third", "sum"}, {}};
  const auto line = [&table](std::string what, const Fields& p) {
    table.cells.push_back({std::move(what), fmt::format("{:.3g}", number(p, "p1")),
                           fmt::format("{:.3g}", number(p, "p2")), fmt::format("{:.4g}", number(p, "p3")),
                           fmt::format("{:.2f}", sum_of(p))});
  };
  for (const Row& row : rows) {
    const std::string what = text(row.parameters, "scores");
    if (!row.told.empty()) line(what + ", as told", row.told);
    const double divisor = number(row.parameters, "divided_by");
    line(divisor == 1 ? what + ", measured" : fmt::format("{}, divided by {}", what, divisor), row.measured);
  }
  return {{std::move(table)}, {}, {bars_of(rows)}};
}

}  // namespace

const Experiment a5_softmax{.name = "a5",
                            .title = "Softmax of 60, 65, 70",
                            .question = "What does softmax make of three large scores that are close together?",
                            .claim = "Softmax(60, 65, 70) is about .25, .30, .35.",
                            .run = run,
                            .judge = judge,
                            .exhibit = exhibit};

}  // namespace levelhead::lab
