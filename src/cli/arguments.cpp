#include "cli/arguments.hpp"

#include <algorithm>

namespace levelhead::cli {
namespace {

Window::Bound parse_bound(std::string_view window, std::string_view text) {
  if (text == "inf") return std::nullopt;
  const auto keys = parse_whole<std::int64_t>(text);
  if (!keys || *keys < 0) refuse("--window", window, "LEFT,RIGHT with counts >= 0 or inf");
  return *keys;
}

}  // namespace

std::vector<std::string> reversed_arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool is_boolean = argument == "true" || argument == "false";
    if (is_boolean && !arguments.empty() && arguments.back() == "--causal")
      arguments.back().append("=").append(argument);
    else
      arguments.emplace_back(argument);
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

Window parse_window(const std::optional<std::string>& text, bool causal, Align align) {
  if (!text) return causal ? Window::causal(align) : Window::all(align);
  const auto [left, right] = split(*text, ',');
  if (!right) refuse("--window", *text, "LEFT,RIGHT with counts >= 0 or inf");
  const Window::Bound left_bound = parse_bound(*text, left), right_bound = parse_bound(*text, *right);
  return Window::sliding(left_bound, causal ? Window::Bound(0) : right_bound, align);
}

}  // namespace levelhead::cli
