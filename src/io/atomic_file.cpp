#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "io/file_error.hpp"

namespace levelhead {
namespace {

/// Temporary files that a signal handler may have to remove: plain memory, because a handler may neither lock nor
/// allocate. A slot is filled before its file is created and freed after it is gone.
struct Pending {
  enum State : int { unused, filling, live };
  std::atomic<int> state{unused};
  char path[PATH_MAX] = {};
};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<Pending, 16> pending;

int register_pending(const std::string& path) {
  for (std::size_t slot = 0; slot < pending.size(); ++slot) {
    int expected = Pending::unused;
    if (!pending[slot].state.compare_exchange_strong(expected, Pending::filling)) continue;
    std::memcpy(pending[slot].path, path.c_str(), path.size() + 1);
    pending[slot].state.store(Pending::live);
    return static_cast<int>(slot);
  }
  return -1;
}

/// N of /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N: the descriptor itself must be written, because opening
/// the file behind it again would start at its beginning.
std::optional<int> descriptor_of(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc{} && end == digits.data() + digits.size() && number >= 0) return number;
  }
  return std::nullopt;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// The path at the end of a chain of symbolic links; it need not exist.
std::string follow_links(std::string path) {
  constexpr int most_links = 40;  // as the kernel
  for (int links = 0; links < most_links && !descriptor_of(path); ++links) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length < 0) break;
    const std::string next(target.data(), static_cast<std::size_t>(length));
    path = next.starts_with('/') ? next : folder_of(path).append(next);
  }
  return path;
}

std::string temporary_name(const std::string& target) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    random = static_cast<std::uint64_t>(::getpid()) << 32;  // O_EXCL still rules out an accident
  }
  return folder_of(target) + fmt::format(".levelhead-{:016x}.tmp", random);
}

}  // namespace

void remove_pending_output() noexcept {
  for (const Pending& file : pending) {
    if (file.state.load() == Pending::live) ::unlink(file.path);
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  const std::string target = follow_links(path_);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail("can't be reached", errno);
  if (exists && S_ISDIR(status.st_mode)) fail("can't be written", EISDIR);
  if (descriptor_of(target) || (exists && !S_ISREG(status.st_mode))) {
    open_direct(target);
  } else {
    if (exists && ::access(target.c_str(), W_OK) != 0) fail("can't be replaced", errno);
    open_temporary(target);
    // The new file is as open to others as the old one was.
    if (exists && ::fchmod(fd_, status.st_mode & 07777) != 0) discard_and_fail("can't be given its permissions", errno);
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::open_direct(const std::string& target) {
  const auto descriptor = descriptor_of(target);
  fd_ = descriptor ? ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0) : ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd_ < 0) fail("can't be opened", errno);
}

void AtomicFile::open_temporary(const std::string& target) {
  target_ = target;
  temporary_ = temporary_name(target);
  if (temporary_.size() >= PATH_MAX) fail("can't be written", ENAMETOOLONG);
  slot_ = register_pending(temporary_);
  if (slot_ < 0) {
    throw FileError(
        fmt::format("{}: can't be written: {} outputs are open already", escaped(path_, 400), pending.size()));
  }
  constexpr mode_t everybody = 0666;  // less the umask
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, everybody);
  if (fd_ < 0) discard_and_fail("can't be created", errno);
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t chunk = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
    const ssize_t written = ::write(fd_, bytes.data(), chunk);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("can't be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) fail("can't be written", errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("can't be replaced", errno);
  temporary_.clear();
}

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  release_slot();
}

void AtomicFile::release_slot() noexcept {
  if (slot_ >= 0) pending[static_cast<std::size_t>(slot_)].state.store(Pending::unused);
  slot_ = -1;
}

void AtomicFile::fail(const char* doing, int error) const {
  throw FileError(fmt::format("{}: {}: {}", escaped(path_, 400), doing, std::strerror(error)));
}

void AtomicFile::discard_and_fail(const char* doing, int error) {
  discard();
  fail(doing, error);
}

void write_text_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace levelhead
