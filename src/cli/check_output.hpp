// How a judged capture is shown.
#pragma once

#include <string>

#include "cli/json.hpp"
#include "cli/measure.hpp"
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

/// The verdict with H75, both limits and the distances, and what to do next.
std::string verdict_text(const Screen& screen, const Capture& capture, const Judged& judged);

/// What the columns and flags mean, and what H75 can't tell: printed once, under the verdicts.
std::string notes_text(const Screen& screen);

/// The object of --json.
Json check_json(const Capture& capture, const Judged& judged);

/// What the page of --report shows of a capture; measures it again at other scales.
report::CheckedCapture check_report(const Capture& capture, const Judged& judged, const Selection& selection,
                                    int threads);

}  // namespace levelhead::cli
