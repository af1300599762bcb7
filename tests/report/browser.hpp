// Opens a page in a headless Chromium and uses it, as probe.js says.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace levelhead::test {

/// The browser's path; nothing where none is installed.
std::optional<std::string> browser();

struct Seen {
  nlohmann::json page;  ///< what probe.js saw
  std::string console;  ///< lines of the browser's console
};

/// html: the whole file.
Seen look_at(const std::string& html);

}  // namespace levelhead::test
