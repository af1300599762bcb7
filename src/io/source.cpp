#include "io/source.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/file_error.hpp"

namespace levelhead {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Source::Source(const std::string& path) : path_(path) {
  // Not blocking, because opening a pipe that nobody writes to would wait for ever.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) throw FileError(fmt::format("{}: can't be opened: {}", escaped(path, 400), std::strerror(errno)));
  struct stat status {};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    throw FileError(
        fmt::format("{}: is {}, but only a regular file can be read", escaped(path, 400), kind_of(status.st_mode)));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  changed_seconds_ = status.st_mtim.tv_sec;
  changed_nanoseconds_ = status.st_mtim.tv_nsec;
}

Source::~Source() {
  if (fd_ >= 0) ::close(fd_);
}

bool Source::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset > size_ || into.size() > size_ - offset) return false;
  if (fd_ < 0) {
    std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return true;
  }
  while (!into.empty()) {
    const std::size_t chunk = std::min<std::size_t>(into.size(), std::size_t{1} << 30);
    const ssize_t got = ::pread(fd_, into.data(), chunk, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw FileError(
          fmt::format("{}: can't be read at byte {}: {}", escaped(path_, 400), offset, std::strerror(errno)));
    }
    if (got == 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

bool Source::unchanged() const noexcept {
  if (fd_ < 0) return true;
  struct stat status {};
  return ::fstat(fd_, &status) == 0 && static_cast<std::uint64_t>(status.st_size) == size_ &&
         status.st_mtim.tv_sec == changed_seconds_ && status.st_mtim.tv_nsec == changed_nanoseconds_;
}

}  // namespace levelhead
