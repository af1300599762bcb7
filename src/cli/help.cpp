#include "cli/help.hpp"

#include "cli/terminal.hpp"

namespace levelhead::cli {
namespace {

constexpr std::size_t column = 24;

std::string entry(const std::string& names, const std::string& description) {
  Screen screen;
  const std::string indent(column, ' ');
  const std::string lead = padded("  " + names, column);
  if (lead.size() <= column) return wrapped(screen, description, lead, indent);
  return "  " + names + "\n" + wrapped(screen, description, indent, indent);
}

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string type = option->get_type_name().empty() ? "" : " " + option->get_type_name();
  return entry(is_positional ? option->get_name(true) : option->get_name(false, true) + type,
               option->get_description());
}

std::string HelpFormatter::make_subcommand(const CLI::App* app) const {
  return entry(app->get_name(), app->get_description());
}

CLI::Validator thread_count() { return CLI::Range(1, 4096).description(""); }
CLI::Validator split_count() { return CLI::Range(std::int64_t{1}, std::int64_t{1} << 60).description(""); }

}  // namespace levelhead::cli
