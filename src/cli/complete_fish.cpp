#include <fmt/format.h>

#include "cli/option_table.hpp"

namespace levelhead::cli {
namespace {

// No option before a subcommand takes a value, so every word that names one is one.
constexpr std::string_view fish_walk = R"(
# Whether the command line up to here has chosen exactly this command.
function __levelhead_at
    set -l path levelhead
    for word in (commandline -opc)[2..-1]
        if contains -- "$path $word" $__levelhead_commands
            set path "$path $word"
        end
    end
    test "$path" = "$argv"
end

# Whether the word before is this one.
function __levelhead_after
    test (commandline -opc)[-1] = $argv[1]
end

complete -c levelhead -f
)";

std::string fish_quoted(std::string_view text) { return "'" + escaping(text, "'\\") + "'"; }

std::string fish_at(const CommandRow& row) { return fish_quoted("__levelhead_at " + row.path); }

std::string fish_value(const Offer& offer) {
  if (!offer.words.empty()) return " -a " + fish_quoted(joined(offer.words));
  if (!offer.files) return "";
  if (offer.extension.empty()) return " -F";
  return fmt::format(" -k -a '(__fish_complete_suffix {})'", offer.extension);
}

std::string fish_option(const CommandRow& row, const OptionRow& option) {
  std::string text = "complete -c levelhead -n " + fish_at(row);
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.takes_value) text += option.offer.files ? " -r" : " -x";
  text += fish_value(option.offer) + " -d " + fish_quoted(option.description) + "\n";
  if (option.takes_value || option.type.empty()) return text;
  // A flag that may be given a value, as --flag=value or as the next word.
  for (const std::string& name : option.names)
    text += fmt::format("complete -c levelhead -n '__levelhead_at {}; and __levelhead_after {}'{}\n", row.path, name,
                        fish_value(option.offer));
  return text;
}

std::string fish_command(const OptionTable& table, const CommandRow& row) {
  std::string text = "\n";
  for (const std::string& name : row.commands)
    text += fmt::format("complete -c levelhead -n {} -a {} -d {}\n", fish_at(row), name,
                        fish_quoted(subcommand(table, row, name).description));
  for (const OptionRow& option : row.options) text += fish_option(row, option);
  for (const OptionRow& positional : row.positionals)
    text += fmt::format("complete -c levelhead -n {}{} -d {}\n", fish_at(row), fish_value(positional.offer),
                        fish_quoted(positional.names.front()));
  return text;
}

}  // namespace

std::string fish_completion(const OptionTable& table) {
  std::string text = "# fish completion of levelhead, made by `levelhead generate fish`\n\nset -g __levelhead_commands";
  for (const CommandRow& row : table) text += " " + fish_quoted(row.path);
  text.append("\n").append(fish_walk);
  for (const CommandRow& row : table) text += fish_command(table, row);
  return text;
}

}  // namespace levelhead::cli
