// What the verdicts by H75 and on fresh weights have in common.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "levelhead/verdict.hpp"

namespace levelhead {

inline constexpr const char* part_reason = "only some layers or heads were asked for, the rule needs all";

/// Three decimals.
std::string number_text(double x);

std::string counted(std::int64_t n, std::string_view one, std::string_view many);

/// "2 rows of 1 head hold a visible NaN", or nothing when there is none.
std::string nan_reason(std::span<const HeadStatistics> heads);

std::string few_keys_reason(std::int64_t n_max);

/// The first name whose number is not 1/sqrt(D).
std::optional<std::string> mistake_among(std::span<const NamedScale> scale_is);

}  // namespace levelhead
