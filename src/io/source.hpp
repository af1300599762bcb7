// Where a reader's bytes come from: a regular file, through pread, or memory that the caller owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace levelhead {

/// Never maps a file: one that shrinks under a map kills the process, one that shrinks under pread is an error.
class Source {
 public:
  /// Throws FileError if path is no readable regular file.
  explicit Source(const std::string& path);
  explicit Source(std::span<const std::byte> memory) : memory_(memory), size_(memory.size()) {}
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::uint64_t size() const noexcept { return size_; }

  /// Fills into from offset; false if the bytes are not there (any more). Throws FileError if reading fails.
  bool read(std::uint64_t offset, std::span<std::byte> into) const;

  /// Whether the file still has the size and the time of change it was opened with.
  bool unchanged() const noexcept;

 private:
  std::span<const std::byte> memory_;
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t changed_seconds_ = 0, changed_nanoseconds_ = 0;
};

}  // namespace levelhead
