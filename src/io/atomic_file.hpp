// Output files that are there whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace levelhead {

/// Writes to a temporary file beside the target and renames it over the target on commit; destroyed before, it leaves
/// the target as it was. A symbolic link keeps pointing where it did: its target is replaced. What can't be replaced
/// (a pipe, a device, /dev/stdout) is written directly. Throws FileError.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// The one moment the target changes. Nothing can be written after it.
  void commit();

 private:
  void open_direct(const std::string& target);
  void open_temporary(const std::string& target);
  void discard() noexcept;
  void release_slot() noexcept;
  [[noreturn]] void fail(const char* doing, int error) const;
  [[noreturn]] void discard_and_fail(const char* doing, int error);  // for the constructor, which no destructor follows

  std::string path_;       // as the caller wrote it, for errors
  std::string target_;     // what rename replaces; empty when written directly
  std::string temporary_;  // empty when written directly
  int fd_ = -1;
  int slot_ = -1;  // in the list of pending files
};

/// The whole text as one file.
void write_text_file(const std::string& path, std::string_view text);

/// Removes the temporary files of every AtomicFile that is not committed. Calls nothing but unlink, so a signal handler
/// may call it before it ends the process.
void remove_pending_output() noexcept;

}  // namespace levelhead
