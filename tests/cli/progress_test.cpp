// What a long run says of itself: a thread of its own, where standard error is a terminal.
#include "cli/progress.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace levelhead::cli {
namespace {

/// Standard error goes to a new terminal for as long as this lives; so would what a sanitizer says, unless
/// TSAN_OPTIONS=log_path=FILE (its status is 66).
class Terminal {
 public:
  Terminal() : screen_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)), before_(dup(STDERR_FILENO)) {
    if (screen_ < 0 || grantpt(screen_) != 0 || unlockpt(screen_) != 0) return;
    const int side = open(ptsname(screen_), O_RDWR | O_NOCTTY);
    works_ = side >= 0 && dup2(side, STDERR_FILENO) >= 0;
    close(side);
  }
  ~Terminal() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool works() const { return works_; }
  std::string seen() const {
    std::string text(4096, '\0');
    const ssize_t n = read(screen_, text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return text;
  }

 private:
  int screen_, before_;
  bool works_ = false;
};

TEST(Progress, SaysWhatIsDoneNowAfterASecond) {
  const Terminal terminal;
  if (!terminal.works()) GTEST_SKIP() << "no terminal can be made here";
  {
    Progress progress("first");
    for (int n = 0; n < 1300; ++n) {
      progress.say("layer " + std::to_string(n % 10));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  const std::string seen = terminal.seen();
  EXPECT_THAT(seen, ::testing::HasSubstr("layer "));
  EXPECT_THAT(seen, ::testing::HasSubstr(", 1 s"));
  EXPECT_THAT(seen, ::testing::EndsWith("\r\x1b[K"));  // and takes it away
}

TEST(Progress, IsQuietWhenQuick) {
  const Terminal terminal;
  if (!terminal.works()) GTEST_SKIP() << "no terminal can be made here";
  { const Progress progress("quick"); }
  EXPECT_EQ(terminal.seen(), "");
}

}  // namespace
}  // namespace levelhead::cli
