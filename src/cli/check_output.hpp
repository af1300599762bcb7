// How a judged capture is shown.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "callers/check_json.hpp"
#include "cli/shared.hpp"
#include "cli/terminal.hpp"
#include "report/check_page.hpp"

namespace levelhead::cli {

/// Which model, how many heads, which scale.
std::string header_text(const Screen& screen, const Capture& capture, const Judged& judged);

/// One line per layer: bars for the means over its heads of entropy_ratio and z, and the notable heads.
std::string layer_table(const Screen& screen, const Judged& judged);

/// One line per head.
std::string head_table(const Screen& screen, const Judged& judged);

/// One line per row of the one head that was asked for, in each layer that was.
std::string row_tables(const Screen& screen, const Capture& capture, const Judged& judged);

/// The same with Rule::fresh: spreads, the expected ones and suggested scales.
std::string fresh_layer_table(const Screen& screen, const Judged& judged);
std::string fresh_head_table(const Screen& screen, const Judged& judged);

/// H75, or with Rule::fresh the median spread.
std::optional<double> judged_number(const Judged& judged);

struct RulerMark {
  double at = 0;
  Verdict::Name verdict = Verdict::Name::undecided;
  std::string_view sign{};  ///< one character
};

/// Numbers between the limits of their rule, as on a spirit level: a line each.
std::string ruler_text(const Screen& screen, Rule rule, std::span<const RulerMark> marks);

/// In the colour of the verdict.
std::string verdict_name(const Screen& screen, const Judged& judged);

/// The verdict with its number, both limits and the distances, and what to do next.
std::string verdict_text(const Screen& screen, const Capture& capture, const Judged& judged);

/// What the columns and flags mean, and what the rule can't tell: printed once, under the verdicts.
std::string notes_text(const Screen& screen, Rule rule);

/// What the page of --report shows of a capture; with Rule::h75 measures it again at other scales.
report::CheckedCapture check_report(const Capture& capture, const Judged& judged, const Selection& selection,
                                    int threads);

}  // namespace levelhead::cli
