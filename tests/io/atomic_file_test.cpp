#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <memory>
#include <vector>

#include "io/file_error.hpp"
#include "io/scratch_folder.hpp"

namespace levelhead {
namespace {

using test::read_file;
using test::ScratchFolder;
using test::write_file;

std::string message_of(const std::string& path) {
  try {
    write_text_file(path, "new");
  } catch (const FileError& error) {
    return error.what();
  }
  return "written";
}

TEST(AtomicFile, AppearsWholeAtCommit) {
  const ScratchFolder folder;
  write_file(folder / "x", "old");
  AtomicFile file(folder / "x");
  file.write("new ");
  file.write("text");
  EXPECT_EQ(read_file(folder / "x"), "old");
  file.commit();
  EXPECT_EQ(read_file(folder / "x"), "new text");
  EXPECT_EQ(folder.listing(), "x");
}

TEST(AtomicFile, WithoutCommitLeavesTheOldFileAndNothingElse) {
  const ScratchFolder folder;
  write_file(folder / "x", "old");
  {
    AtomicFile file(folder / "x"), other(folder / "y");
    file.write("new");
    other.write("new");
  }
  EXPECT_EQ(read_file(folder / "x"), "old");
  EXPECT_EQ(folder.listing(), "x");
}

TEST(AtomicFile, KeepsPermissionsAndObeysTheUmask) {
  const ScratchFolder folder;
  write_file(folder / "old", "old");
  ASSERT_EQ(::chmod((folder / "old").c_str(), 0606), 0);
  const mode_t before = ::umask(027);
  write_text_file(folder / "old", "new");
  write_text_file(folder / "new", "new");
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "old").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0606U);
  ASSERT_EQ(::stat((folder / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST(AtomicFile, ReplacesTheTargetOfALinkNotTheLink) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "deep");
  write_file(folder / "deep/target", "old");
  std::filesystem::create_symlink("deep/target", folder / "link");
  std::filesystem::create_symlink("link", folder / "link to link");
  std::filesystem::create_symlink("deep/nothing yet", folder / "dangling");
  write_text_file(folder / "link to link", "new");
  write_text_file(folder / "dangling", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link to link"));
  EXPECT_EQ(read_file(folder / "deep/target"), "new");
  EXPECT_EQ(read_file(folder / "deep/nothing yet"), "new");
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT(message_of(folder / "loop"), testing::HasSubstr("loop: can't be"));
}

enum class Device : unsigned { null = 3, full = 7 };  // minor numbers of the memory devices

/// A device to write to; empty if none is safe here. Root gets one of its own in the folder: under root, a fault in the
/// code under test would replace the system's.
std::string device(const ScratchFolder& folder, Device which) {
  const std::string name = which == Device::null ? "null" : "full";
  if (::geteuid() != 0) return "/dev/" + name;
  const std::string path = folder / name;
  if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, static_cast<unsigned>(which))) != 0) return "";
  const int fd = ::open(path.c_str(), O_WRONLY);  // refused where devices are off for the folder
  if (fd < 0) return "";
  ::close(fd);
  return path;
}

TEST(AtomicFile, WritesToADeviceAndLeavesItOne) {
  const ScratchFolder folder;
  const std::string path = device(folder, Device::null);
  if (path.empty()) GTEST_SKIP() << "no device can be made here";
  write_text_file(path, "gone");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST(AtomicFile, ADeviceThatIsFullIsAnError) {
  const ScratchFolder folder;
  const std::string path = device(folder, Device::full);
  if (path.empty()) GTEST_SKIP() << "no device can be made here";
  EXPECT_EQ(message_of(path), path + ": can't be written: No space left on device");
}

TEST(AtomicFile, WritesToAPipe) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_text_file(folder / "pipe", "through");
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_EQ(folder.listing(), "pipe");
}

TEST(AtomicFile, WritesADescriptorWhereItStands) {
  const ScratchFolder folder;
  const int fd = ::open((folder / "log").c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(::write(fd, "before ", 7), 7);
  for (const char* name : {"/dev/fd/", "/proc/self/fd/"}) write_text_file(name + std::to_string(fd), "new ");
  ASSERT_EQ(::write(fd, "after", 5), 5);
  ::close(fd);
  EXPECT_EQ(read_file(folder / "log"), "before new new after");
  EXPECT_THAT(message_of("/dev/fd/" + std::to_string(fd)), testing::HasSubstr("Bad file descriptor"));
}

TEST(AtomicFile, FailuresAreSentences) {
  const ScratchFolder folder;
  write_file(folder / "file", "");
  EXPECT_EQ(message_of(folder / "none/x"), folder / "none/x" + ": can't be created: No such file or directory");
  EXPECT_EQ(message_of(folder / "."), folder / "." + ": can't be written: Is a directory");
  EXPECT_EQ(message_of(folder / "file/x"), folder / "file/x" + ": can't be reached: Not a directory");
  EXPECT_THAT(message_of(folder / std::string(300, 'x')), testing::HasSubstr("File name too long"));
  EXPECT_THAT(message_of(""), testing::HasSubstr("No such file"));
  if (::geteuid() != 0) {  // nothing is read-only for root
    ASSERT_EQ(::chmod((folder / "file").c_str(), 0400), 0);
    EXPECT_THAT(message_of(folder / "file"), testing::HasSubstr("can't be replaced: Permission denied"));
  }
  EXPECT_EQ(folder.listing(), "file");
}

// A path that can be written, but not its temporary neighbour, whose name is longer.
TEST(AtomicFile, APathTooLongForItsTemporaryFile) {
  const ScratchFolder folder;
  std::string path = folder / "";
  while (path.size() < PATH_MAX - 8) path += "./";
  path += "x";
  EXPECT_THAT(message_of(path), testing::HasSubstr("can't be written: File name too long"));
  EXPECT_EQ(folder.listing(), "");
}

TEST(AtomicFile, SixteenMayBeOpen) {
  const ScratchFolder folder;
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (int i = 0; i < 16; ++i) files.push_back(std::make_unique<AtomicFile>(folder / std::to_string(i)));
  EXPECT_THAT(message_of(folder / "x"), testing::HasSubstr("16 outputs are open already"));
  files.pop_back();
  EXPECT_EQ(message_of(folder / "x"), "written");
}

TEST(AtomicFile, RemovedUnderneathFailsAtCommit) {
  const ScratchFolder folder;
  AtomicFile file(folder / "x");
  file.write("new");
  remove_pending_output();
  EXPECT_EQ(folder.listing(), "");
  EXPECT_THROW(file.commit(), FileError);
}

extern "C" void remove_and_leave(int) {
  remove_pending_output();
  ::_exit(130);
}

TEST(AtomicFile, AnInterruptLeavesNoHalfWrittenFile) {
  const ScratchFolder folder;
  write_file(folder / "x", "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGINT, remove_and_leave);
    AtomicFile done(folder / "done"), file(folder / "x"), other(folder / "y");
    done.write("whole");
    done.commit();
    file.write("half");
    std::raise(SIGINT);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(folder.listing(), "done x");
  EXPECT_EQ(read_file(folder / "x"), "old");
  EXPECT_EQ(read_file(folder / "done"), "whole");
}

}  // namespace
}  // namespace levelhead
