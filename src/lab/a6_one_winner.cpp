// Softmax of 1, 2, 100: how near to 0, 0, 1.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "lab/logits.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

constexpr std::array<const char*, 3> names{"p1", "p2", "p3"};
constexpr double limit = 1e-42;  // e^-98 = 2.7e-43

void run(Context& context, Lab& lab) {
  const std::vector<double> p = softmax(context, std::array{1.0, 2.0, 100.0});
  lab.emit(
      {{{"scores", "1 2 100"}}, {{"p1", p[0]}, {"p2", p[1]}, {"p3", p[2]}}, {{"p1", 0.0}, {"p2", 0.0}, {"p3", 1.0}}});
}

Conclusion judge(std::span<const Row> rows) {
  if (rows.empty()) return {Outcome::inconclusive, "nothing was measured", {}};
  double worst = 0;
  for (const char* name : names) {
    const double off = std::fabs(number(rows.front().told, name) - number(rows.front().measured, name));
    worst = worse(worst, off);
  }
  return {worst <= limit ? Outcome::holds : Outcome::fails,
          fmt::format("no weight is further than {:.1e} from the one told (limit {:.0e})", worst, limit),
          {}};
}

Exhibit exhibit(std::span<const Row> rows) {
  Table table{"Softmax of 1, 2, 100", {"", "first", "second", "third"}, {}};
  for (const Row& row : rows)
    for (const Fields* p : {&row.told, &row.measured})
      table.cells.push_back({p == &row.told ? "as told" : "measured", fmt::format("{:.3g}", number(*p, "p1")),
                             fmt::format("{:.3g}", number(*p, "p2")), fmt::format("{:.3g}", number(*p, "p3"))});
  return {{std::move(table)}};
}

}  // namespace

const Experiment a6_one_winner{.name = "a6",
                               .title = "Softmax of 1, 2, 100",
                               .question = "Does one far larger score leave the others nothing?",
                               .claim = "Softmax(1, 2, 100) is 0, 0, 1.",
                               .run = run,
                               .judge = judge,
                               .exhibit = exhibit};

}  // namespace levelhead::lab
