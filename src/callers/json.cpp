#include "callers/json.hpp"

#include <optional>

namespace levelhead::callers {
namespace {

// nlohmann writes non-finite numbers as null by itself.
struct Members {
  Json& json;
  void operator()(std::string_view name, std::int64_t x) const { json[std::string(name)] = x; }
  void operator()(std::string_view name, const std::optional<double>& x) const {
    if (x) json[std::string(name)] = *x;
  }
};

}  // namespace

Json to_json(std::int64_t number, const HeadStatistics& head) {
  Json json{{"head", number}};
  for_each_head_statistic(head, Members{json});
  json["flags"] = flags(head);
  return json;
}

Json to_json(const RunInfo& info, double seconds) {
  return {{"kernel", info.kernel}, {"reason", info.reason}, {"threads", info.threads},
          {"seconds", seconds},    {"flops", info.flops},   {"workspace_bytes", info.workspace_bytes}};
}

std::string to_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace levelhead::callers
