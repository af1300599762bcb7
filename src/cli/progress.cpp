#include "cli/progress.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace levelhead::cli {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::say(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::show() {
  std::unique_lock lock(mutex_);
  int seconds = 0;
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return end_; }))
    std::fprintf(stderr, "\r\x1b[K%s, %d s", what_.c_str(), ++seconds);
  if (seconds > 0) std::fputs("\r\x1b[K", stderr);
}

}  // namespace levelhead::cli
