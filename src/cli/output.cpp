#include <fcntl.h>
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

extern "C" void on_end(int signal) {
  remove_pending_output();
  _exit(128 + signal);  // 130 for SIGINT, as a shell would say it
}

}  // namespace

void write_stdout(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw FileError(std::string("standard output can't be written: ") + std::strerror(errno));
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_end;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  // Whoever started us may have ignored it; then a reader that went away would look like an error.
  action.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &action, nullptr);
}

void hold_standard_streams() {
  // Read only, so that output meant for a closed stream is still an error.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) == -1) open("/dev/null", O_RDONLY);
}

}  // namespace levelhead::cli
