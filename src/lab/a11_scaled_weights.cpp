// Two scores at d_k = 512, without and with the divisor: q and k of 512 components, the divisor the library's own.
#include <fmt/format.h>

#include <cmath>

#include "lab/moments.hpp"
#include "lab/registry.hpp"

namespace levelhead::lab {
namespace {

constexpr std::int64_t D = 512;
constexpr double first_score = 20, other_score = 5;
constexpr double half_a_digit = 0.005;  // of figures told to two places

// Components along one axis: <q, k> is the score exactly. Weights of the first key and of each other one.
std::pair<double, double> attend(Context& context, const Scale& scale, std::int64_t others) {
  std::vector<double> q(D), k(static_cast<std::size_t>((others + 1) * D)), p(static_cast<std::size_t>(others + 1));
  q[0] = 1;
  for (std::int64_t j = 0; j <= others; ++j) k[static_cast<std::size_t>(j * D)] = j == 0 ? first_score : other_score;
  const Inputs inputs{.q = view(q.data(), {1, 1, 1, D}),
                      .k = view(k.data(), {1, 1, others + 1, D}),
                      .v = view(k.data(), {1, 1, others + 1, 0})};
  Options options;
  options.scale = scale;
  RowState state;
  forward(context, inputs, options, {.state = std::span(&state, 1)});
  const RowIndex row{};
  weights(context, inputs, options, {.state = std::span(&state, 1)}, std::span(&row, 1), p);
  return {p[0], p[1]};
}

void run(Context& context, Lab& lab) {
  const auto emit = [&](std::string divisor, const Scale& scale, std::int64_t others, Fields told) {
    const auto [first, other] = attend(context, scale, others);
    lab.emit({{{"d", D}, {"scores", "20 5"}, {"divisor", std::move(divisor)}, {"other_keys", others}},
              {{"first", first}, {"other", other}},
              std::move(told)});
  };
  emit("1", Constant{1}, 1, {{"first", 1.0}, {"other", 0.0}});
  emit("sqrt(512)", InvSqrtDim{}, 1, {{"first", 0.71}, {"other", 0.29}});
  emit("sqrt(512)", InvSqrtDim{}, 9, {});
}

double off(const Row& row) {
  return worse(std::fabs(number(row.told, "first") - number(row.measured, "first")),
               std::fabs(number(row.told, "other") - number(row.measured, "other")));
}

Conclusion judge(std::span<const Row> rows) {
  double worst = 0, least = 1, most = 0;
  std::int64_t told = 0;
  std::string list;
  for (const Row& row : rows) {
    const double first = number(row.measured, "first");
    const bool scaled = text(row.parameters, "divisor") != "1";
    const double others = number(row.parameters, "other_keys");
    list += fmt::format("{}{:.3f} (divisor {}, {} other {})", list.empty() ? "" : ", ", first,
                        text(row.parameters, "divisor"), others, others == 1 ? "key" : "keys");
    if (scaled) least = std::fmin(least, first), most = std::fmax(most, first);
    if (row.told.empty()) continue;
    ++told;
    worst = worse(worst, off(row));
  }
  if (told == 0) return {Outcome::inconclusive, "nothing was told", {}};
  const std::string reason = fmt::format("the first weight is {}; a figure told is {:.3f} off", list, worst);
  if (!(worst <= half_a_digit)) return {Outcome::fails, reason, {}};
  if (most - least > 2 * half_a_digit) return {Outcome::depends, reason, "the number of other keys"};
  return {Outcome::holds, reason, {}};
}

report::Bars bars_of(std::span<const Row> rows) {
  report::Bars bars{.title = "Weight of the key with score 20",
                    .says = "Scaled, the first of two keys gets less than told, and among ten keys far less.",
                    .y = {.title = "weight", .min = 0.0, .max = 1.0},
                    .series = {{.name = "as told"}, {.name = "measured"}}};
  for (const Row& row : rows) {
    const double others = number(row.parameters, "other_keys");
    bars.labels.push_back(fmt::format("divided by {}, {} other {}", text(row.parameters, "divisor"), others,
                                      others == 1 ? "key" : "keys"));
    bars.series[0].values.push_back(row.told.empty() ? std::nan("") : number(row.told, "first"));
    bars.series[1].values.push_back(number(row.measured, "first"));
  }
  return bars;
}

Exhibit exhibit(std::span<const Row> rows) {
  Table table{
      "Weights of scores 20 and 5 at d_k 512", {"divided by", "other keys", "first", "told", "each other", "told"}, {}};
  for (const Row& row : rows) {
    const bool told = !row.told.empty();
    table.cells.push_back({text(row.parameters, "divisor"), fmt::format("{}", number(row.parameters, "other_keys")),
                           fmt::format("{:.3f}", number(row.measured, "first")),
                           told ? fmt::format("{:.2f}", number(row.told, "first")) : "-",
                           fmt::format("{:.3g}", number(row.measured, "other")),
                           told ? fmt::format("{:.2f}", number(row.told, "other")) : "-"});
  }
  return {{std::move(table)}, {}, {bars_of(rows)}};
}

}  // namespace

const Experiment a11_scaled_weights{.name = "a11",
                                    .title = "Scores 20 and 5 at d_k 512",
                                    .question = "What does dividing by sqrt(512) make of scores 20 and 5?",
                                    .claim = "Unscaled the weights are 1 and 0; scaled they are .71 and .29.",
                                    .run = run,
                                    .judge = judge,
                                    .exhibit = exhibit};

}  // namespace levelhead::lab
