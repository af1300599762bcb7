// What the page of `check` shows beyond the JSON: H75 at other scales, and the weights of the heads that stand out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "callers/pass.hpp"
#include "cli/check_cells.hpp"
#include "cli/check_output.hpp"
#include "cli/check_words.hpp"
#include "cli/progress.hpp"

namespace levelhead::cli {
namespace {

constexpr int steps_per_octave = 4, octaves = 2;  // of the sweep, on either side of the scale in use
constexpr std::int64_t largest_picture = 128;     // rows and keys

const CapturedLayer& layer_of(const Capture& capture, std::int64_t number) {
  return *std::find_if(capture.layers.begin(), capture.layers.end(),
                       [number](const CapturedLayer& layer) { return layer.number == number; });
}

/// Appends the heads asked for, pooled from the states of a pass.
void pool_heads(const LayerPass& pass, const Selection& selection, std::vector<HeadStatistics>& heads) {
  for (std::int64_t h = 0; h < pass.Hq; ++h) {
    if (selection.head && *selection.head != h) continue;
    HeadPool pool;
    for (auto row = static_cast<std::size_t>(h * pass.Nq); row < static_cast<std::size_t>((h + 1) * pass.Nq); ++row)
      pool.add(pass.state[row], std::nullopt, !pass.nan_output.empty() && pass.nan_output[row]);
    heads.push_back(pool.finish());
  }
}

std::vector<report::SweepPoint> sweep(const Capture& capture, const Judged& judged, const Selection& selection,
                                      Context& context) {
  std::vector<report::SweepPoint> points;
  for (int step = -steps_per_octave * octaves; step <= steps_per_octave * octaves; ++step)
    points.push_back({std::exp2(static_cast<double>(step) / steps_per_octave), std::nullopt});
  std::vector<std::vector<HeadStatistics>> heads(points.size());
  Progress progress("sweeping the scale");
  for (const MeasuredLayer& measured : judged.layers) {
    progress.say("sweeping the scale, layer " + std::to_string(measured.number));
    LayerPass pass(capture, layer_of(capture, measured.number));
    pass.options.statistics.level = StatisticsLevel::entropy;
    for (std::size_t i = 0; i < points.size(); ++i) {
      pass.options.scale = Constant{capture.scale * points[i].multiplier};
      pass.run(context);
      pool_heads(pass, selection, heads[i]);
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) points[i].h75 = judge(heads[i]).h75;
  return points;
}

/// The scale in use, and what it might be measured against.
std::vector<report::Mark> sweep_marks(const Capture& capture, const Judged& judged) {
  std::vector<report::Mark> marks{
      {.axis = report::Mark::Across::x, .at = 1, .label = fmt::format("in use: {:.4g}", capture.scale)}};
  const double plain = judged.D > 0 ? 1 / std::sqrt(static_cast<double>(judged.D)) : 1;
  const auto add = [&](double scale, std::string label) {
    const double multiple = scale / capture.scale;
    if (multiple >= 0.25 && multiple <= 4 && std::abs(multiple - 1) > 1e-3)
      marks.push_back({.axis = report::Mark::Across::x, .at = multiple, .label = std::move(label)});
  };
  if (capture.own_scale && std::abs(*capture.own_scale / plain - 1) > 1e-3)
    add(*capture.own_scale, "the capture's own");
  add(plain, "1/sqrt(D)");
  return marks;
}

struct Candidate {
  std::int64_t layer = 0;
  const MeasuredHead* head = nullptr;
  std::string why;
};

/// The head with the smallest or the largest of one statistic; null when no head has it.
Candidate extreme(const Judged& judged, Member member, bool largest) {
  Candidate best;
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads) {
      const auto& x = head.statistics.*member;
      if (!x || std::isnan(*x)) continue;
      const auto& so_far = best.head != nullptr ? best.head->statistics.*member : x;
      if (best.head == nullptr || (largest ? *x > *so_far : *x < *so_far)) best = {layer.number, &head, ""};
    }
  return best;
}

/// The head in the middle of the entropy ratios, to compare the others with.
Candidate typical(const Judged& judged) {
  std::vector<Candidate> all;
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads)
      if (!std::isnan(head.statistics.entropy_ratio.value_or(std::nan("")))) all.push_back({layer.number, &head, ""});
  if (all.size() < 3) return {};
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end(), [](const Candidate& a, const Candidate& b) {
    return *a.head->statistics.entropy_ratio < *b.head->statistics.entropy_ratio;
  });
  middle->why = fmt::format("to compare with, the middle of all: [entropy ratio](entropy_ratio) {:.3f}",
                            *middle->head->statistics.entropy_ratio);
  return *middle;
}

std::vector<Candidate> extreme_heads(const Judged& judged) {
  struct Kind {
    Member member;
    bool largest;
    std::string_view why;
  };
  constexpr std::array kinds{
      Kind{&HeadStatistics::entropy_ratio, false, "sharpest: [entropy ratio](entropy_ratio) {:.3f}"},
      Kind{&HeadStatistics::entropy_ratio, true, "flattest: [entropy ratio](entropy_ratio) {:.3f}"},
      Kind{&HeadStatistics::z, true, "widest spread: [z](z) {:.2f}"},
      Kind{&HeadStatistics::first_key_mass, true, "most on the first key: {:.3f}"},
      Kind{&HeadStatistics::adjacent_mass, true, "most [local](local): {:.3f} on the own and the previous key"},
  };
  std::vector<Candidate> chosen;
  for (const auto& [member, largest, why] : kinds) {
    Candidate candidate = extreme(judged, member, largest);
    if (candidate.head == nullptr) continue;
    candidate.why = fmt::format(fmt::runtime(why), *(candidate.head->statistics.*member));
    const auto same = std::find_if(chosen.begin(), chosen.end(),
                                   [&](const Candidate& other) { return other.head == candidate.head; });
    if (same == chosen.end())
      chosen.push_back(std::move(candidate));
    else
      same->why += "; " + candidate.why;
  }
  const Candidate middle = typical(judged);
  const bool there =
      std::any_of(chosen.begin(), chosen.end(), [&](const Candidate& c) { return c.head == middle.head; });
  if (middle.head != nullptr && !there) chosen.push_back(middle);
  return chosen;
}

/// Weights of the head's first rows and keys, a row at a time.
std::vector<std::uint8_t> picture(LayerPass& pass, Context& context, std::int64_t head, std::int64_t rows,
                                  std::int64_t keys) {
  std::vector<std::uint8_t> bytes;
  std::vector<double> row(static_cast<std::size_t>(pass.k.shape()[1]));
  for (std::int64_t i = 0; i < rows; ++i) {
    const RowIndex index{0, head, i};
    weights(context, pass.inputs, pass.options, {pass.state}, {&index, 1}, row);
    for (std::int64_t j = 0; j < keys; ++j) {
      const double p = row[static_cast<std::size_t>(j)];
      bytes.push_back(p > 0 ? static_cast<std::uint8_t>(std::lround(255 * std::sqrt(std::min(p, 1.0)))) : 0);  // NaN: 0
    }
  }
  return bytes;
}

report::AttentionPictures pictures(const Capture& capture, const Judged& judged, Context& context) {
  const std::vector<Candidate> chosen = extreme_heads(judged);
  report::AttentionPictures all;
  all.all_rows = judged.Nq;
  all.all_keys = judged.Nk;
  for (const Candidate& candidate : chosen) {
    LayerPass pass(capture, layer_of(capture, candidate.layer));
    if (pass.Nq != judged.Nq || pass.k.shape()[1] != judged.Nk) continue;  // one size for all
    pass.run(context);
    all.rows = std::min(judged.Nq, largest_picture);
    all.keys = std::min(judged.Nk, largest_picture);
    all.heads.push_back({candidate.layer, candidate.head->number, candidate.why,
                         picture(pass, context, candidate.head->number, all.rows, all.keys)});
  }
  const auto named = static_cast<std::ptrdiff_t>(std::min<std::size_t>(capture.tokens.size(), largest_picture));
  all.row_names.assign(capture.tokens.begin(), capture.tokens.begin() + named);
  if (judged.Nq == judged.Nk) all.key_names = all.row_names;
  return all;
}

}  // namespace

report::CheckedCapture check_report(const Capture& capture, const Judged& judged, const Selection& selection,
                                    int threads) {
  Context context(threads);
  report::CheckedCapture checked{.check = check_json(capture, judged)};
  checked.facts = facts_text(capture, judged);
  checked.scale = scale_text(capture, judged);
  checked.evidence = evidence_text(judged);
  checked.next = next_text(capture, judged);
  checked.from = from_text(capture);
  for (const MeasuredLayer& layer : judged.layers)
    for (const MeasuredHead& head : layer.heads) checked.n_max.push_back(head.statistics.n_max);
  if (!judged.fresh) {  // of fresh weights the spread is judged, and that goes with the scale
    checked.sweep = sweep(capture, judged, selection, context);
    checked.sweep_marks = sweep_marks(capture, judged);
  }
  checked.pictures = pictures(capture, judged, context);
  return checked;
}

}  // namespace levelhead::cli
