// The definition in numbers small enough to follow by hand, beside the library's forward.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "lab/moments.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

constexpr std::int64_t Nq = 2, Nk = 3, D = 4, Dv = 2;
// Components: stars, food, old times, numbers. A reader's question is a query, a book's label a key, what it says a
// value (of heat, of grain).
constexpr std::array<std::string_view, Nq> questions{"why do stars burn", "what did Rome eat"};
constexpr std::array<std::string_view, Nk> books{"Stars", "Bread", "Rome"};
constexpr std::array<double, Nq * D> q{2, 0, 1, 0, 0, 2, 2, 0};
constexpr std::array<double, Nk * D> k{3, 0, 0, 0, 0, 3, 1, 1, 0, 1, 3, 0};
constexpr std::array<double, Nk * Dv> v{9, 0, 4, 6, 1, 2};
// f64 of a dozen operations on numbers below 10: some ulp of 10, far below this.
constexpr double tolerance = 1e-13;

void emit_matrix(Lab& lab, std::string_view matrix, std::span<const std::string_view> names,
                 std::span<const double> values) {
  const std::size_t columns = values.size() / names.size();
  for (std::size_t r = 0; r < names.size(); ++r) {
    Row row{{{"part", "matrix"}, {"matrix", std::string(matrix)}, {"row", std::string(names[r])}}, {}, {}};
    for (std::size_t c = 0; c < columns; ++c) row.measured.push_back({fmt::format("c{}", c), values[r * columns + c]});
    lab.emit(std::move(row));
  }
}

struct Library {
  std::array<double, Nq * Dv> o{};
  std::array<double, Nq * Nk> p{};
};

Library ask_library(Context& context) {
  Library result;
  std::array<RowState, Nq> state{};
  const Inputs inputs{
      .q = view(q.data(), {1, 1, Nq, D}), .k = view(k.data(), {1, 1, Nk, D}), .v = view(v.data(), {1, 1, Nk, Dv})};
  forward(context, inputs, {}, {.o = view(result.o.data(), {1, 1, Nq, Dv}), .state = state});
  const std::array<RowIndex, Nq> rows{{{0, 0, 0}, {0, 0, 1}}};
  weights(context, inputs, {}, {.state = state}, rows, result.p);
  return result;
}

void run(Context& context, Lab& lab) {
  emit_matrix(lab, "Q", questions, q);
  emit_matrix(lab, "K", books, k);
  emit_matrix(lab, "V", books, v);
  const Library library = ask_library(context);
  for (std::size_t i = 0; i < Nq; ++i) {
    std::array<double, Nk> dot{}, power{};
    std::array<double, Dv> o{};
    double sum = 0;
    for (std::size_t j = 0; j < Nk; ++j) {
      for (std::size_t c = 0; c < D; ++c) dot[j] += q[i * D + c] * k[j * D + c];
      sum += power[j] = std::exp(dot[j] / std::sqrt(static_cast<double>(D)));
    }
    for (std::size_t j = 0; j < Nk; ++j) {
      const double p = power[j] / sum;
      for (std::size_t c = 0; c < Dv; ++c) o[c] += p * v[j * Dv + c];
      lab.emit({{{"part", "weight"}, {"query", std::string(questions[i])}, {"key", std::string(books[j])}},
                {{"dot", dot[j]},
                 {"scaled", dot[j] / std::sqrt(static_cast<double>(D))},
                 {"exponential", power[j]},
                 {"by_hand", p},
                 {"forward", library.p[i * Nk + j]}},
                {}});
    }
    for (std::size_t c = 0; c < Dv; ++c)
      lab.emit({{{"part", "output"}, {"query", std::string(questions[i])}, {"component", static_cast<std::int64_t>(c)}},
                {{"by_hand", o[c]}, {"forward", library.o[i * Dv + c]}},
                {}});
  }
}

Conclusion judge(std::span<const Row> rows) {
  double worst = 0;
  std::int64_t compared = 0;
  for (const Row& row : rows) {
    if (text(row.parameters, "part") == "matrix") continue;
    const double difference = std::fabs(number(row.measured, "by_hand") - number(row.measured, "forward"));
    worst = worse(worst, difference);
    ++compared;
  }
  if (compared == 0) return {Outcome::inconclusive, "nothing was compared", {}};
  return {
      worst <= tolerance ? Outcome::holds : Outcome::fails,
      fmt::format("{} weights and outputs worked by hand differ from the library's by at most {:.1e} (limit {:.0e})",
                  compared, worst, tolerance),
      {}};
}

Table matrix_table(std::span<const Row> rows, std::string_view matrix, std::string caption) {
  Table table{std::move(caption), {std::string(matrix)}, {}};
  for (const Row& row : of_part(rows, "matrix")) {
    if (text(row.parameters, "matrix") != matrix) continue;
    std::vector<std::string> cells{text(row.parameters, "row")};
    for (const Field& field : row.measured) cells.push_back(fmt::format("{:g}", number(row.measured, field.name)));
    while (table.header.size() < cells.size()) table.header.push_back(fmt::format("c{}", table.header.size() - 1));
    table.cells.push_back(std::move(cells));
  }
  return table;
}

Exhibit exhibit(std::span<const Row> rows) {
  Table steps{"Step by step: dot product, divided by sqrt(4), e to that, divided by the sum",
              {"question", "book", "dot", "scaled", "e^", "weight", "forward"},
              {}};
  for (const Row& row : of_part(rows, "weight"))
    steps.cells.push_back({text(row.parameters, "query"), text(row.parameters, "key"),
                           fmt::format("{:g}", number(row.measured, "dot")),
                           fmt::format("{:g}", number(row.measured, "scaled")),
                           fmt::format("{:.4g}", number(row.measured, "exponential")),
                           fmt::format("{:.4f}", number(row.measured, "by_hand")),
                           fmt::format("{:.4f}", number(row.measured, "forward"))});
  Table outputs{"Sum of weight x value", {"question", "component", "by hand", "forward"}, {}};
  for (const Row& row : of_part(rows, "output"))
    outputs.cells.push_back({text(row.parameters, "query"),
                             number(row.parameters, "component") == 0 ? "c0, heat" : "c1, grain",
                             fmt::format("{:.4f}", number(row.measured, "by_hand")),
                             fmt::format("{:.4f}", number(row.measured, "forward"))});
  return {{matrix_table(rows, "Q", "Questions asked in a library, over stars, food, old times, numbers"),
           matrix_table(rows, "K", "Labels of its books, over the same"),
           matrix_table(rows, "V", "What the books say, of heat and of grain"), std::move(steps), std::move(outputs)},
          {}};
}

}  // namespace

const Experiment a1_dot_products{
    .name = "a1",
    .title = "Attention, step by step",
    .question = "What does attention compute?",
    .claim = "Attention weights come from dot products of Q with every K, then softmax, then a weighted sum of V.",
    .run = run,
    .judge = judge,
    .exhibit = exhibit};

}  // namespace levelhead::lab
