// The subcommands and what they share: how they are added, how they end, how they write.
#pragma once

#include <functional>
#include <string_view>

namespace CLI {
class App;  // its header takes seconds to compile: only files that add options include it
}

namespace levelhead::cli {

/// 0 done, 1 failed, 2 wrong use, 3 judged but not level (--strict), 130 interrupted.
enum Status : int { done = 0, failed = 1, wrong_use = 2, not_level = 3, interrupted = 130 };

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< called when its subcommand was given; throws Error, FileError
};

Command add_attend(CLI::App& app);
Command add_check(CLI::App& app);
Command add_generate(CLI::App& app);
Command add_kernels(CLI::App& app);
Command add_lab(CLI::App& app);

/// Data for the user or the next program. Throws FileError when it can't be written.
void write_stdout(std::string_view text);

/// Ends on SIGINT in status 130 (on SIGTERM, SIGHUP likewise) without leaving a temporary file, and silently when a
/// reader goes away.
void handle_signals();

/// Keeps files from being opened as a standard stream that was closed: text would be written into them.
void hold_standard_streams();

}  // namespace levelhead::cli
