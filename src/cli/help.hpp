// Help that reads well in 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace levelhead::cli {

/// Options in one column, their descriptions wrapped in the next.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* app) const override;
};

/// At least 1, and no more than any machine has.
CLI::Validator thread_count();
/// Of key ranges.
CLI::Validator split_count();

}  // namespace levelhead::cli
