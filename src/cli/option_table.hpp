// What the command takes, as data, and the texts made from it: the manual page and the completions of shells.
//
// It is read from the parser itself, so an option that parses is also documented and completed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace levelhead::cli {

/// What may stand for a value.
struct Offer {
  std::vector<std::string> words;  ///< one that ends in a colon goes on with a number
  bool files = false;
  std::string extension;  ///< of files: ".html"; empty for any
};

struct OptionRow {
  std::vector<std::string> names;  ///< "-h", "--help"; of a positional its one name, "FILE"
  std::string type;                ///< the value as help names it: "N", "[BOOL]"; empty for a plain flag
  std::string description;
  Offer offer;
  bool takes_value = false;  ///< false for flags, also for those that may be given a value, "[BOOL]"
  bool required = false, repeats = false;
};

struct CommandRow {
  std::string path;  ///< "levelhead lab run"
  std::string description;
  std::vector<OptionRow> options, positionals;
  std::vector<std::string> commands;  ///< names of its subcommands

  std::string_view name() const { return std::string_view(path).substr(path.rfind(' ') + 1); }
};

/// The command first, each subcommand behind its parent.
using OptionTable = std::vector<CommandRow>;

/// The row of a subcommand. There has to be one.
const CommandRow& subcommand(const OptionTable& table, const CommandRow& parent, std::string_view name);

/// levelhead(1), for man.
std::string man_page(const OptionTable& table);
/// Scripts for share/bash-completion/completions, share/zsh/site-functions and share/fish/vendor_completions.d.
std::string bash_completion(const OptionTable& table);
std::string zsh_completion(const OptionTable& table);
std::string fish_completion(const OptionTable& table);

/// Words with a space between.
std::string joined(const std::vector<std::string>& words);

/// text with `escape` in front of each of the characters `special`.
std::string escaping(std::string_view text, std::string_view special, std::string_view escape = "\\");

}  // namespace levelhead::cli
