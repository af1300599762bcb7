#include <fmt/format.h>

#include "cli/option_table.hpp"

namespace levelhead::cli {
namespace {

constexpr std::string_view bash_head = R"(# bash completion of levelhead, made by `levelhead generate bash`

)";

// Readline also splits words at = and :, and replaces only what stands behind the last of them.
constexpr std::string_view bash_walk = R"(
# Replies with those of $words, and of the files that match $files, that begin with $2. $1 stands before them; of the
# whole, $3 characters are not to be replaced.
_levelhead_offer() {
  local skip=$3 replies reply
  mapfile -t replies < <(compgen -W "$words" -- "$2")
  if [[ $files ]]; then
    compopt -o filenames -o default 2>/dev/null
    mapfile -t -O "${#replies[@]}" replies < <(compgen -f -X "!$files" -- "$2")
    if [[ $files != '*' ]]; then mapfile -t -O "${#replies[@]}" replies < <(compgen -d -- "$2"); fi
  elif [[ ${#replies[@]} == 1 && ${replies[0]} == *: ]]; then
    compopt -o nospace 2>/dev/null
  fi
  for reply in "${replies[@]}"; do
    reply=$1$reply
    COMPREPLY+=("${reply:skip}")
  done
}

_levelhead() {
  COMPREPLY=()
  local line=() word glue= path=levelhead option= commands options words files value
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [[ ${#line[@]} -gt 1 && ( $glue || $word == [=:]* ) ]]; then line[-1]+=$word; else line+=("$word"); fi
    if [[ $word == *[=:] ]]; then glue=1; else glue=; fi
  done
  local current=${line[-1]} last=${COMP_WORDS[COMP_CWORD]}
  unset 'line[-1]'
  if [[ $last == [=:]* ]]; then last=; fi
  local skip=$((${#current} - ${#last}))

  # Where we are, and which option waits for its value.
  value=
  for word in "${line[@]:1}"; do
    if [[ $value == needed ]]; then
      value= option=
    elif [[ $word == -* ]]; then
      option=$word
      _levelhead_option "$path $option"
    else
      value= option=
      _levelhead_command "$path"
      if [[ " $commands " == *" $word "* ]]; then path+=" $word"; fi
    fi
  done

  if [[ $value == needed ]]; then
    _levelhead_option "$path $option"
    _levelhead_offer '' "$current" $skip
  elif [[ $current == --*=* ]]; then
    _levelhead_option "$path ${current%%=*}"
    _levelhead_offer "${current%%=*}=" "${current#*=}" $skip
  else
    words=
    if [[ $option ]]; then _levelhead_option "$path $option"; fi
    local may_follow=$words
    _levelhead_command "$path"
    words="$may_follow $commands $words"
    if [[ $current == -* || ( ! ${words// /} && ! $files ) ]]; then words+=" $options"; fi
    _levelhead_offer '' "$current" $skip
  fi
}
complete -F _levelhead levelhead
)";

std::string bash_offer(const Offer& offer) {
  std::string text;
  if (!offer.words.empty()) text += fmt::format(" words='{}'", joined(offer.words));
  if (offer.files) text += fmt::format(" files='*{}'", offer.extension);
  return text;
}

std::string bash_command(const CommandRow& row) {
  std::string text = fmt::format("    '{}')", row.path);
  std::vector<std::string> options;
  for (const OptionRow& option : row.options) options.insert(options.end(), option.names.begin(), option.names.end());
  if (!row.commands.empty()) text += fmt::format(" commands='{}'", joined(row.commands));
  text += fmt::format(" options='{}'", joined(options));
  for (const OptionRow& positional : row.positionals) text += bash_offer(positional.offer);
  return text + " ;;\n";
}

// A flag without a value needs no line.
std::string bash_option(const CommandRow& row, const OptionRow& option) {
  if (option.type.empty()) return "";
  std::string patterns;
  for (const std::string& name : option.names)
    patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : " | ", row.path, name);
  return fmt::format("    {}){}{} ;;\n", patterns, option.takes_value ? " value=needed" : "", bash_offer(option.offer));
}

}  // namespace

std::string bash_completion(const OptionTable& table) {
  std::string commands, options;
  for (const CommandRow& row : table) {
    commands += bash_command(row);
    for (const OptionRow& option : row.options) options += bash_option(row, option);
  }
  return fmt::format(
      "{}# What a command takes.\n_levelhead_command() {{\n  commands= options= words= files=\n  case $1 in\n{}  esac\n"
      "}}\n\n# What an option takes.\n_levelhead_option() {{\n  value= words= files=\n  case $1 in\n{}  esac\n}}\n{}",
      bash_head, commands, options, bash_walk);
}

}  // namespace levelhead::cli
