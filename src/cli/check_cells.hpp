// What the tables of `check` are filled with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "callers/measure.hpp"
#include "cli/shared.hpp"
#include "cli/terminal.hpp"

namespace levelhead::cli {

using Member = std::optional<double> HeadStatistics::*;

/// Mean over heads of one statistic; NaN when none has it.
double mean_of(const MeasuredLayer& layer, Member member);
/// NaN too where there is no such layer.
double mean_of(const MeasuredLayer* layer, Member member);

/// With so many decimals; "-" where there is nothing.
std::string number(double x, int decimals);
/// In 8 characters, so that columns hold.
std::string number(const std::optional<double>& x, int decimals);

Colour colour_of(std::string_view flag);

/// "0 2-5", or "all" of so many heads.
std::string numbers_text(const std::vector<std::int64_t>& numbers, std::size_t heads);

}  // namespace levelhead::cli
