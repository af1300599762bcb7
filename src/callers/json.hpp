// The parts of JSON output that commands share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "levelhead/attention.hpp"
#include "levelhead/verdict.hpp"

namespace levelhead::callers {

using Json = nlohmann::ordered_json;

/// {head, the statistics by name, flags}: NaN and infinities are null, absent statistics left out.
Json to_json(std::int64_t number, const HeadStatistics& head);

/// {kernel, reason, threads, seconds, flops, workspace_bytes}.
Json to_json(const RunInfo& info, double seconds);

/// One line. Names of a file that are no UTF-8 lose their bad bytes.
std::string to_line(const Json& json);

}  // namespace levelhead::callers
