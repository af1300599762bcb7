// The spread of dot products of d independent components of unit variance, over 4 kinds of components.
//
// One pair of long vectors gives the products of all its beginnings: d = 2, 4, 8, ... of the same pair. Numbers of
// different d are therefore not independent, which the limit on the worst of all does not need.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "lab/moments.hpp"
#include "lab/random.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

constexpr std::array<std::int64_t, 12> dims{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
constexpr std::size_t shallow = 8;  // of them up to 256, with 1e6 pairs; with 1e5 above
constexpr std::array rhos{0.1, 0.3, 0.6};
constexpr std::array<std::string_view, 4> kinds{"normal", "uniform", "+-1", "sparse"};
constexpr std::int64_t pairs_of_task = 500;

struct Sums {
  std::array<Moments, dims.size()> dot;
  std::array<std::array<Moments, dims.size()>, rhos.size()> correlated;

  Sums() {
    for (std::size_t r = 0; r < rhos.size(); ++r)
      for (std::size_t at = 0; at < dims.size(); ++at)
        correlated[r][at] = Moments(rhos[r] * static_cast<double>(dims[at]));
  }

  void add(const Sums& other) {
    for (std::size_t at = 0; at < dims.size(); ++at) {
      dot[at].add(other.dot[at]);
      for (std::size_t r = 0; r < rhos.size(); ++r) correlated[r][at].add(other.correlated[r][at]);
    }
  }
};

// With k = rho q + sqrt(1 - rho^2) z, q and z independent: <q, k> = rho <q, q> + sqrt(1 - rho^2) <q, z>.
void draw_normal(Random& random, std::size_t depth, Sums& sums) {
  double qq = 0, qz = 0;
  std::int64_t c = 0;
  for (std::size_t at = 0; at < depth; ++at) {
    for (; c < dims[at]; ++c) {
      const double q = random.normal(), z = random.normal();
      qq += q * q;
      qz += q * z;
    }
    sums.dot[at].push(qz);
    for (std::size_t r = 0; r < rhos.size(); ++r)
      sums.correlated[r][at].push(rhos[r] * qq + std::sqrt(1 - rhos[r] * rhos[r]) * qz);
  }
}

// draw(): one component.
template <class Draw>
void draw_components(Draw draw, std::size_t depth, Sums& sums) {
  double dot = 0;
  std::int64_t c = 0;
  for (std::size_t at = 0; at < depth; ++at) {
    for (; c < dims[at]; ++c) {
      const double q = draw(), k = draw();
      dot += q * k;
    }
    sums.dot[at].push(dot);
  }
}

// The product of two signs is one: the bits of one word, set for +1.
void draw_signs(Random& random, std::size_t depth, Sums& sums) {
  std::int64_t equal = 0;
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < depth; ++at) {
    const std::int64_t d = dims[at];
    if (d <= 64) {
      if (at == 0) word = ~(random.bits() ^ random.bits());
      equal = std::popcount(word & (~std::uint64_t{0} >> (64 - d)));
    } else {
      for (std::int64_t c = d / 2; c < d; c += 64) equal += std::popcount(~(random.bits() ^ random.bits()));
    }
    sums.dot[at].push(static_cast<double>(2 * equal - d));
  }
}

// 7 of 8 components are 0, the others +-sqrt(8): variance 1.
class Sparse {
 public:
  explicit Sparse(Random& random) : random_(random) {}
  double operator()() {
    static const double full = std::sqrt(8.0);
    static const std::array<double, 16> values{full, -full};
    if (left_ == 0) word_ = random_.bits(), left_ = 16;
    --left_;
    const double value = values[word_ & 15U];
    word_ >>= 4;
    return value;
  }

 private:
  Random& random_;
  std::uint64_t word_ = 0;
  int left_ = 0;
};

void draw_pair(std::size_t kind, Random& random, std::size_t depth, Sums& sums) {
  const double edge = std::sqrt(3.0);
  switch (kind) {
    case 0: return draw_normal(random, depth, sums);
    case 1: return draw_components([&] { return edge * (2 * random.uniform() - 1); }, depth, sums);
    case 2: return draw_signs(random, depth, sums);
    default: return draw_components(Sparse(random), depth, sums);
  }
}

// Parts are added in the order of their tasks, so threads change no bit; few are alive at a time.
Sums measure(Lab& lab, std::size_t kind) {
  const std::int64_t tasks = lab.samples(1'000'000 / pairs_of_task, 2), deep = lab.samples(100'000 / pairs_of_task);
  constexpr std::int64_t batch = 100;
  Sums all;
  for (std::int64_t first = 0; first < tasks; first += batch) {
    const std::int64_t here = std::min(batch, tasks - first);
    std::vector<Sums> parts(static_cast<std::size_t>(here));
    lab.parallel(here, [&](std::int64_t t) {
      Random random(lab.seed(), {2, kind, static_cast<std::uint64_t>(first + t)});
      const std::size_t depth = first + t < deep ? dims.size() : shallow;
      for (std::int64_t pair = 0; pair < pairs_of_task; ++pair)
        draw_pair(kind, random, depth, parts[static_cast<std::size_t>(t)]);
    });
    for (const Sums& part : parts) all.add(part);
  }
  return all;
}

void run(Context&, Lab& lab) {
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    lab.say(fmt::format("a2: products of {} components", kinds[kind]));
    const Sums sums = measure(lab, kind);
    for (std::size_t at = 0; at < dims.size(); ++at) {
      const auto d = static_cast<double>(dims[at]);
      const Moments& m = sums.dot[at];
      lab.emit(
          {{{"part", "components"}, {"components", std::string(kinds[kind])}, {"d", dims[at]}, {"pairs", m.count()}},
           {{"variance_over_d", m.variance() / d}, {"standard_error", m.variance_error() / d}, {"sd", m.sd()}},
           {}});
    }
    if (kind != 0) continue;
    for (std::size_t r = 0; r < rhos.size(); ++r)
      for (std::size_t at = 0; at < dims.size(); ++at) {
        const auto d = static_cast<double>(dims[at]);
        const Moments& m = sums.correlated[r][at];
        lab.emit({{{"part", "correlation"}, {"rho", rhos[r]}, {"d", dims[at]}, {"pairs", m.count()}},
                  {{"mean_over_d", m.mean() / d}, {"standard_error", m.mean_error() / d}, {"sd", m.sd()}},
                  {}});
      }
  }
}

double distance(const Row& row) {
  if (text(row.parameters, "part") == "components")
    return (number(row.measured, "variance_over_d") - 1) / number(row.measured, "standard_error");
  return (number(row.measured, "mean_over_d") - number(row.parameters, "rho")) / number(row.measured, "standard_error");
}

Conclusion judge(std::span<const Row> rows) {
  double worst_variance = 0, worst_mean = 0;
  std::int64_t beyond = 0, count = 0;
  for (const Row& row : rows) {
    double& worst = text(row.parameters, "part") == "components" ? worst_variance : worst_mean;
    const double far = std::fabs(distance(row));
    worst = worse(worst, far);
    if (!(far <= 3)) ++beyond;
    ++count;
  }
  if (count == 0) return {Outcome::inconclusive, "nothing was measured", {}};
  const double limit = worst_of(count);
  const bool holds = worst_variance <= limit && worst_mean <= limit;
  return {
      holds ? Outcome::holds : Outcome::fails,
      fmt::format("Var/d is at most {:.1f} standard errors from 1, and with correlation rho the mean over d at most "
                  "{:.1f} from rho; {} of {} numbers are beyond 3 (limit for the worst of so many: {:.1f})",
                  worst_variance, worst_mean, beyond, count, limit),
      {}};
}

const Row* at(std::span<const Row> rows, std::int64_t d, std::string_view name, const Value& value) {
  for (const Row& row : rows)
    for (const Field& field : row.parameters)
      if (field.name == name && field.value == value && number(row.parameters, "d") == static_cast<double>(d))
        return &row;
  return nullptr;
}

std::string cell(const Row* row, std::string_view name) {
  return row == nullptr ? "" : fmt::format("{:.4f} ({:+.1f})", number(row->measured, name), distance(*row));
}

Table variance_table(std::span<const Row> rows) {
  Table table{"Var/d of q.k, and its distance from 1 in standard errors", {"d", "pairs"}, {}};
  for (const std::string_view kind : kinds) table.header.emplace_back(kind);
  for (const std::int64_t d : dims) {
    const Row* first = at(rows, d, "components", std::string(kinds[0]));
    table.cells.push_back({fmt::format("{}", d), first ? fmt::format("{}", number(first->parameters, "pairs")) : ""});
    for (const std::string_view kind : kinds)
      table.cells.back().push_back(cell(at(rows, d, "components", std::string(kind)), "variance_over_d"));
  }
  return table;
}

Table correlation_table(std::span<const Row> rows) {
  Table table{"Mean of q.k over d where q and k correlate, and its distance from rho", {"d", "pairs"}, {}};
  for (const double rho : rhos) table.header.push_back(fmt::format("rho {}", rho));
  for (const std::int64_t d : dims) {
    const Row* first = at(rows, d, "rho", rhos[0]);
    table.cells.push_back({fmt::format("{}", d), first ? fmt::format("{}", number(first->parameters, "pairs")) : ""});
    for (const double rho : rhos) table.cells.back().push_back(cell(at(rows, d, "rho", rho), "mean_over_d"));
  }
  return table;
}

report::Chart variance_chart(std::span<const Row> rows) {
  report::Chart chart{
      .title = "Var(q.k) / d against d",
      .says = "Whatever the components, Var/d stays at 1 within some bars of one standard error: the variance is d.",
      .x = {.title = "d, components of q and k", .log = true},
      .y = {.title = "Var(q.k) / d"},
      .marks = {{.at = 1, .label = "expected: 1"}}};
  for (const std::int64_t d : dims) chart.x.ticks.emplace_back(static_cast<double>(d), std::to_string(d));
  double reach = 0;  // of the longest bar
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    report::Series series{.name = std::string(kinds[kind]), .style = report::Series::Style::points};
    for (const Row& row : of_part(rows, "components")) {
      if (text(row.parameters, "components") != kinds[kind]) continue;
      // The kinds stand side by side at each d.
      const double beside = std::exp2((static_cast<double>(kind) - 1.5) * 0.15);
      series.points.push_back({.x = number(row.parameters, "d") * beside,
                               .y = number(row.measured, "variance_over_d"),
                               .label = fmt::format("{}, d {}", kinds[kind], number(row.parameters, "d")),
                               .error = number(row.measured, "standard_error")});
    }
    for (const report::Point& point : series.points)
      reach = std::fmax(reach, std::fabs(point.y - 1) + point.error.value_or(0));
    chart.series.push_back(std::move(series));
  }
  chart.y.min = 1 - 1.05 * reach;
  chart.y.max = 1 + 1.05 * reach;
  return chart;
}

Exhibit exhibit(std::span<const Row> rows) {
  return {{variance_table(rows), correlation_table(rows)}, {variance_chart(rows)}};
}

}  // namespace

const Experiment a2_variance{
    .name = "a2",
    .title = "The dot product grows with the dimension",
    .question = "How far do dot products of d components spread?",
    .claim = "The dot product grows with the dimension; its variance is d_k for independent unit components.",
    .run = run,
    .judge = judge,
    .exhibit = exhibit};

}  // namespace levelhead::lab
