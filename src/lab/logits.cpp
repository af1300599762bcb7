#include "lab/logits.hpp"

#include <algorithm>

#include "lab/random.hpp"

namespace levelhead::lab {
namespace {

// bias [rows, n]: state [rows]
template <class T>
void attend(Context& context, std::int64_t rows, std::int64_t n, const T* bias, std::span<RowState> state) {
  static constexpr T zero = 0;
  const Inputs inputs{.q = view(&zero, {1, 1, rows, 1}, {0, 0, 0, 0}),
                      .k = view(&zero, {1, 1, n, 1}, {0, 0, 0, 0}),
                      .v = view(&zero, {1, 1, n, 0}, {0, 0, 0, 0}),
                      .bias = view(bias, {1, 1, rows, n})};
  Options options;
  options.statistics.level = StatisticsLevel::all;
  forward(context, inputs, options, {.state = state});
}

void push(GaussianMeans& means, const RowStatistics& row) {
  means.entropy.push(row.entropy);
  means.top1.push(row.top1);
  means.effective_keys.push(row.effective_keys);
  means.trace_gain.push(row.trace_gain);
  means.frobenius_gain.push(row.frobenius_gain);
  means.max.push(row.max);
  means.saturated.push(row.saturated ? 1 : 0);
}

}  // namespace

std::vector<double> softmax(Context& context, std::span<const double> logits) {
  const auto n = static_cast<std::int64_t>(logits.size());
  constexpr double zero = 0;
  const Inputs inputs{.q = view(&zero, {1, 1, 1, 1}),
                      .k = view(&zero, {1, 1, n, 1}, {0, 0, 0, 0}),
                      .v = view(&zero, {1, 1, n, 0}, {0, 0, 0, 0}),
                      .bias = view(logits.data(), {1, 1, 1, n})};
  RowState state;
  forward(context, inputs, {}, {.state = std::span(&state, 1)});
  std::vector<double> p(logits.size());
  const RowIndex row{};
  weights(context, inputs, {}, {.state = std::span(&state, 1)}, std::span(&row, 1), p);
  return p;
}

GaussianMeans gaussian_rows(Context& context, Lab& lab, std::uint64_t stream, std::int64_t n, double s,
                            std::int64_t rows) {
  const std::int64_t most = std::clamp<std::int64_t>((std::int64_t{1} << 20) / n, 1, rows);  // 4 MiB of logits
  std::vector<float> bias(static_cast<std::size_t>(most * n));
  std::vector<RowState> state(static_cast<std::size_t>(most));
  GaussianMeans means;
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t here = std::min(most, rows - first);
    lab.parallel(here, [&](std::int64_t i) {
      Random random(lab.seed(), {stream, static_cast<std::uint64_t>(first + i)});
      for (std::int64_t j = 0; j < n; ++j)
        bias[static_cast<std::size_t>(i * n + j)] = static_cast<float>(s * random.normal());
    });
    attend(context, here, n, bias.data(), std::span(state).first(static_cast<std::size_t>(here)));
    for (std::int64_t i = 0; i < here; ++i) push(means, row_statistics(state[static_cast<std::size_t>(i)], {}));
  }
  return means;
}

}  // namespace levelhead::lab
