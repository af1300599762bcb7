#include <algorithm>
#include <array>
#include <clocale>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "cli/arguments.hpp"
#include "cli/command.hpp"
#include "cli/help.hpp"
#include "io/file_error.hpp"
#include "levelhead/levelhead.hpp"

namespace levelhead::cli {
namespace {

/// One line on stderr that says what and where.
int fail(Status status, std::string_view where, std::string_view message) {
  std::string line = "levelhead";
  if (!where.empty()) line.append(" ").append(where);
  line.append(": ").append(message);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';  // names from outside stay on one line
  line += "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  return status;
}

int run(const Command& command) {
  const std::string where = command.app->get_name();
  try {
    return command.run();
  } catch (const Error& error) {
    return fail(wrong_use, where, error.what());
  } catch (const std::bad_alloc&) {
    return fail(failed, where, "out of memory: the tensors of this call do not fit");
  } catch (const std::length_error&) {
    return fail(failed, where, "out of memory: the tensors of this call are larger than any memory");
  } catch (const std::exception& error) {
    return fail(failed, where, error.what());
  }
}

/// Help and version are data; anything else that parsing ends with is wrong use.
int finish_parsing(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& asked = chosen.empty() ? app : *chosen.front();
  try {
    if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
      write_stdout(app.help());
      return done;
    }
    if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
      write_stdout(std::string(error.what()) + "\n");
      return done;
    }
  } catch (const FileError& unwritable) {
    return fail(failed, "", unwritable.what());
  }
  const std::string where = chosen.empty() ? "" : asked.get_name();
  const std::string help = chosen.empty() ? "levelhead --help" : "levelhead " + where + " --help";
  return fail(wrong_use, where, escaped(error.what(), 200) + " (see " + help + ")");
}

int run(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");  // numbers stay as in C
  hold_standard_streams();
  handle_signals();
  CLI::App app("Exact attention for CPUs that puts a level on every head.", "levelhead");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "levelhead " + std::string(version));
  app.require_subcommand(1);
  const std::array commands{add_attend(app), add_check(app), add_kernels(app), add_lab(app), add_generate(app)};
  const auto named = [&](const Command& command) { return argc > 1 && command.app->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), named))
    return fail(wrong_use, "", "there is no command '" + escaped(argv[1], 200) + "' (see levelhead --help)");
  try {
    app.parse(reversed_arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    return finish_parsing(app, error);
  }
  for (const Command& command : commands)
    if (command.app->parsed()) return run(command);
  return wrong_use;
}

}  // namespace
}  // namespace levelhead::cli

int main(int argc, char** argv) {
  try {
    return levelhead::cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "levelhead: %s\n", error.what());
    return levelhead::cli::failed;
  }
}
