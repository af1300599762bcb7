// `levelhead generate`: the option table, read from the parser, and what is made of it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "cli/command.hpp"
#include "cli/option_table.hpp"
#include "io/file_error.hpp"
#include "lab/registry.hpp"
#include "levelhead/levelhead.hpp"

namespace levelhead::cli {
namespace {

struct Format {
  std::string_view name;
  std::string (*write)(const OptionTable&);
};
constexpr std::array<Format, 4> formats{
    {{"man", man_page}, {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};

template <class List, class Name>
std::vector<std::string> names_of(const List& list, const Name& name) {
  std::vector<std::string> names;
  names.reserve(list.size());
  for (const auto& one : list) names.emplace_back(name(one));
  return names;
}

// The words for a value, by what help calls it. Counts and numbers have none.
std::vector<std::string> words_for(std::string_view type) {
  if (type == "BOOL") return {"true", "false"};
  if (type == "RULE") return {"top-left", "bottom-right"};
  if (type == "KIND") return {"l2", "rms"};
  if (type == "POLICY") return {"inv-sqrt-dim", "none", "inv-dim", "inv-dim:", "log-keys:", "ssmax", "yarn:"};
  if (type == "FORMAT") return names_of(formats, [](const Format& format) { return format.name; });
  if (type == "KERNEL") return names_of(kernels(), [](const KernelInfo& kernel) { return kernel.name; });
  if (type == "EXPERIMENT")
    return names_of(lab::experiments(), [](const lab::Experiment* experiment) { return experiment->name; });
  return {};
}

// "[BOOL]", "FILE", "FILE.html"
Offer offer_for(std::string_view type) {
  if (type.starts_with('[') && type.ends_with(']')) type = type.substr(1, type.size() - 2);
  Offer offer;
  offer.words = words_for(type);
  offer.files = type == "FILE" || type.starts_with("FILE.");
  if (offer.files) offer.extension = type.substr(4);
  return offer;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  if (option.get_positional()) row.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  row.type = option.get_type_name();
  row.description = option.get_description();
  row.offer = offer_for(row.type);
  row.takes_value = option.get_items_expected_max() > 0;
  row.required = option.get_required();
  row.repeats = option.get_items_expected_max() > 1;
  return row;
}

void add_rows(const CLI::App& app, const std::string& path, OptionTable& table) {
  CommandRow row{path, app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())  // without a group it is hidden
      (option->get_positional() ? row.positionals : row.options).push_back(row_of(*option));
  const auto below = app.get_subcommands({});
  for (const CLI::App* each : below) row.commands.push_back(each->get_name());
  table.push_back(std::move(row));
  for (const CLI::App* each : below) add_rows(*each, path + " " + each->get_name(), table);
}

int run(const CLI::App& app, const std::string& name) {
  const auto format =
      std::find_if(formats.begin(), formats.end(), [&](const Format& each) { return each.name == name; });
  if (format == formats.end())
    throw Error("FORMAT is '" + escaped(name) + "' but must be one of " + joined(words_for("FORMAT")));
  OptionTable table;
  add_rows(app, app.get_name(), table);
  write_stdout(format->write(table));
  return done;
}

}  // namespace

const CommandRow& subcommand(const OptionTable& table, const CommandRow& parent, std::string_view name) {
  const std::string path = parent.path + " " + std::string(name);
  return *std::find_if(table.begin(), table.end(), [&](const CommandRow& row) { return row.path == path; });
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string escaping(std::string_view text, std::string_view special, std::string_view escape) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += escape;
    result += c;
  }
  return result;
}

Command add_generate(CLI::App& app) {
  auto format = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("generate", "The manual page, and what shells complete, from these options");
  command->add_option("FORMAT", *format, "man, bash, zsh or fish")->required()->type_name("FORMAT");
  return {command, [format, &app] { return run(app, *format); }};
}

}  // namespace levelhead::cli
