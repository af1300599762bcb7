#include <fmt/format.h>

#include "cli/option_table.hpp"

namespace levelhead::cli {
namespace {

constexpr std::string_view zsh_head = R"(#compdef levelhead
# zsh completion of levelhead, made by `levelhead generate zsh`

# Words of which one that ends in a colon goes on.
_levelhead_words() {
  local -a whole open
  whole=("${(@)argv:#*:}") open=("${(@M)argv:#*:}")
  compadd -a whole
  compadd -S '' -a open
}
)";

constexpr std::string_view zsh_tail = R"(
if [[ ${funcstack[1]} == _levelhead ]]; then
  _levelhead "$@"
else
  compdef _levelhead levelhead
fi
)";

// One word of the script.
std::string zsh_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string zsh_function(const CommandRow& row) {
  std::string name = "_" + row.path;
  for (char& c : name)
    if (c == ' ') c = '_';
  return name;
}

// What _arguments does for a value: ":message:action".
std::string zsh_value(std::string_view message, const Offer& offer) {
  std::string action = " ";
  if (!offer.words.empty()) action = " _levelhead_words " + escaping(joined(offer.words), ":");
  if (offer.files) action = offer.extension.empty() ? "_files" : fmt::format("_files -g \"*{}\"", offer.extension);
  return fmt::format(":{}:{}", escaping(message, ":"), action);
}

std::string zsh_option(const OptionRow& option) {
  std::string text;
  const std::string others = option.names.size() > 1 ? fmt::format("({})", joined(option.names)) : "";
  for (const std::string& name : option.names) {
    std::string line = others + name;
    if (!option.type.empty() && name.starts_with("--")) line += "=";
    line += fmt::format("[{}]", escaping(option.description, "[]\\"));
    if (!option.type.empty()) line += (option.takes_value ? "" : ":") + zsh_value(option.type, option.offer);
    text += " \\\n    " + zsh_quoted(line);
  }
  return text;
}

std::string zsh_positionals(const CommandRow& row) {
  std::string text;
  for (const OptionRow& positional : row.positionals)
    text += " \\\n    " +
            zsh_quoted((positional.repeats ? "*" : "") + zsh_value(positional.names.front(), positional.offer));
  return text;
}

std::string zsh_subcommands(const OptionTable& table, const CommandRow& row) {
  std::string list, calls;
  for (const std::string& name : row.commands) {
    const CommandRow& below = subcommand(table, row, name);
    list += "        " + zsh_quoted(name + ":" + below.description) + "\n";
    calls += fmt::format("        {}) {} ;;\n", name, zsh_function(below));
  }
  return fmt::format(
      " \\\n    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command)\n"
      "      local -a commands=(\n{}      )\n      _describe command commands\n      ;;\n"
      "    argument)\n      case ${{line[1]}} in\n{}      esac\n      ;;\n  esac\n",
      list, calls);
}

std::string zsh_command(const OptionTable& table, const CommandRow& row) {
  std::string text = "\n" + zsh_function(row) + "() {\n";
  if (!row.commands.empty()) text += "  local curcontext=$curcontext state line\n  typeset -A opt_args\n";
  text += row.commands.empty() ? "  _arguments" : "  _arguments -C";
  for (const OptionRow& option : row.options) text += zsh_option(option);
  text += zsh_positionals(row);
  return text + (row.commands.empty() ? "\n" : zsh_subcommands(table, row)) + "}\n";
}

}  // namespace

std::string zsh_completion(const OptionTable& table) {
  std::string text(zsh_head);
  for (const CommandRow& row : table) text += zsh_command(table, row);
  return text.append(zsh_tail);
}

}  // namespace levelhead::cli
