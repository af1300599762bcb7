// What users write after an option of the command. All throw Error with the option and the text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "callers/words.hpp"
#include "cli/shared.hpp"

namespace levelhead::cli {

/// The arguments in the order CLI11 wants them (last first), `--causal true|false` joined into one.
std::vector<std::string> reversed_arguments(int argc, char** argv);

/// LEFT,RIGHT: counts of keys or `inf`; absent is no bound. With causal, right becomes 0.
Window parse_window(const std::optional<std::string>& text, bool causal, Align align);

}  // namespace levelhead::cli
