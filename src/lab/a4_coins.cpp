// How far the heads of 512 coins stray, in trials and exactly.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "lab/random.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

constexpr std::int64_t coins = 512, middle = coins / 2;
constexpr std::int64_t trials_of_task = 20'000;
using Counts = std::array<std::int64_t, coins + 1>;

Counts toss(Lab& lab, std::int64_t tasks) {
  std::vector<Counts> parts(static_cast<std::size_t>(tasks));
  lab.parallel(tasks, [&](std::int64_t task) {
    Random random(lab.seed(), {4, static_cast<std::uint64_t>(task)});
    for (std::int64_t trial = 0; trial < trials_of_task; ++trial) {
      int heads = 0;
      for (std::int64_t word = 0; word < coins / 64; ++word) heads += std::popcount(random.bits());
      ++parts[static_cast<std::size_t>(task)][static_cast<std::size_t>(heads)];
    }
  });
  Counts all{};
  for (const Counts& part : parts)
    for (std::size_t heads = 0; heads < all.size(); ++heads) all[heads] += part[heads];
  return all;
}

// The least w with a share of at least 0.999 inside middle - w .. middle + w.
template <class Shares>
std::int64_t half_width(const Shares& shares, double total) {
  double inside = static_cast<double>(shares[middle]);
  std::int64_t w = 0;
  while (inside < 0.999 * total && w < middle) {
    ++w;
    inside += static_cast<double>(shares[static_cast<std::size_t>(middle - w)] +
                                  shares[static_cast<std::size_t>(middle + w)]);
  }
  return w;
}

// C(512, heads) / 2^512; the smallest, 2^-512, is well inside the doubles.
std::array<double, coins + 1> exact_shares() {
  std::array<double, coins + 1> shares{};
  shares[0] = std::ldexp(1.0, -static_cast<int>(coins));
  for (std::size_t heads = 0; heads < coins; ++heads)
    shares[heads + 1] = shares[heads] * static_cast<double>(coins - heads) / static_cast<double>(heads + 1);
  return shares;
}

void run(Context&, Lab& lab) {
  const std::int64_t tasks = lab.samples(200, 25);
  const Counts counts = toss(lab, tasks);
  const auto total = static_cast<double>(tasks * trials_of_task);
  double sum = 0, squares = 0;
  std::int64_t smallest = coins, largest = 0;
  for (std::int64_t heads = 0; heads <= coins; ++heads) {
    const auto count = static_cast<double>(counts[static_cast<std::size_t>(heads)]);
    const auto off = static_cast<double>(heads - middle);
    sum += count * off;
    squares += count * off * off;
    if (count > 0) smallest = std::min(smallest, heads), largest = heads;
  }
  const std::int64_t w = half_width(counts, total), exact = half_width(exact_shares(), 1);
  lab.emit({{{"coins", coins}, {"trials", tasks * trials_of_task}},
            {{"mean", static_cast<double>(middle) + sum / total},
             {"sd", std::sqrt(squares / total - (sum / total) * (sum / total))},
             {"low", middle - w},
             {"high", middle + w},
             {"exact_low", middle - exact},
             {"exact_high", middle + exact},
             {"smallest", smallest},
             {"largest", largest}},
            {{"low", std::int64_t{200}}, {"high", std::int64_t{350}}}});
}

// Told as the range that tosses fill: an end may be off by one standard deviation, as round numbers are.
Conclusion judge(std::span<const Row> rows) {
  if (rows.empty()) return {Outcome::inconclusive, "nothing was tossed", {}};
  const Row& row = rows.front();
  const double sd = number(row.measured, "sd");
  const auto off = [&](const char* end) { return std::fabs(number(row.told, end) - number(row.measured, end)) / sd; };
  const bool holds = off("low") <= 1 && off("high") <= 1;
  return {
      holds ? Outcome::holds : Outcome::fails,
      fmt::format("99.9 % of trials lie in {}..{} (exactly: {}..{}); the ends told, {} and {}, are {:.1f} and {:.1f} "
                  "standard deviations of {:.1f} away from these; {} trials gave {} at least and {} at most",
                  number(row.measured, "low"), number(row.measured, "high"), number(row.measured, "exact_low"),
                  number(row.measured, "exact_high"), number(row.told, "low"), number(row.told, "high"), off("low"),
                  off("high"), sd, number(row.parameters, "trials"), number(row.measured, "smallest"),
                  number(row.measured, "largest")),
      {}};
}

Exhibit exhibit(std::span<const Row> rows) {
  Table table{"Heads of 512 coins", {"", "from", "to"}, {}};
  for (const Row& row : rows) {
    const auto line = [&](std::string what, const Fields& fields, const char* low, const char* high) {
      table.cells.push_back(
          {std::move(what), fmt::format("{}", number(fields, low)), fmt::format("{}", number(fields, high))});
    };
    line("as told", row.told, "low", "high");
    line("99.9 % of trials", row.measured, "low", "high");
    line("99.9 % exactly", row.measured, "exact_low", "exact_high");
    line(fmt::format("all {} trials", number(row.parameters, "trials")), row.measured, "smallest", "largest");
  }
  return {{std::move(table)}};
}

}  // namespace

const Experiment a4_coins{.name = "a4",
                          .title = "512 coins",
                          .question = "How many heads do 512 coins give?",
                          .claim = "Tossing 512 coins gives 200 to 350 heads.",
                          .run = run,
                          .judge = judge,
                          .exhibit = exhibit};

}  // namespace levelhead::lab
