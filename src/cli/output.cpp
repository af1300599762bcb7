#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/command.hpp"
#include "io/atomic_file.hpp"
#include "io/file_error.hpp"

namespace levelhead::cli {
namespace {

extern "C" void on_interrupt(int) {
  remove_pending_output();
  _exit(interrupted);
}

}  // namespace

void write_stdout(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw FileError(std::string("standard output can't be written: ") + std::strerror(errno));
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  // Whoever started us may have ignored it; then a reader that went away would look like an error.
  action.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace levelhead::cli
