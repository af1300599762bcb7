// What is written reads back as it was, byte for byte the same each time, and a failure changes nothing on disk.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>

#include "io/safetensors.hpp"
#include "io/safetensors_header.hpp"
#include "io/scratch_folder.hpp"

namespace levelhead {
namespace {

using test::read_file;
using test::ScratchFolder;
using test::write_file;

using Fields = std::vector<std::pair<std::string, std::string>>;

/// Owns the bytes of tensors to write: 1, 2, 3 ... (0 and 1 for BOOL).
class Tensors {
 public:
  Tensors& add(std::string name, DType dtype, std::vector<std::int64_t> shape) {
    Tensor& tensor = owned_.emplace_back(dtype, std::move(shape));
    for (std::size_t i = 0; std::byte & b : tensor.bytes()) {
      ++i;
      b = static_cast<std::byte>(dtype == DType::boolean ? i % 2 : i % 251);
    }
    named_.push_back({std::move(name), dtype, tensor.shape(), tensor.bytes()});
    return *this;
  }
  std::span<const NamedTensor> all() const { return named_; }
  NamedTensor& operator[](std::size_t i) { return named_[i]; }

 private:
  std::vector<Tensor> owned_;
  std::vector<NamedTensor> named_;
};

Tensors every_kind() {
  Tensors tensors;
  for (const DType dtype :
       {DType::boolean, DType::u8, DType::f16, DType::bf16, DType::i32, DType::f32, DType::i64, DType::f64}) {
    tensors.add(std::string(name_of(dtype)), dtype, {3, 1, 5});
  }
  tensors.add("", DType::f32, {})
      .add("no elements", DType::f64, {2, 0, 3})
      .add("注意力 \"é\"\n\\", DType::f32, {7})
      .add("eight dimensions", DType::u8, {1, 2, 1, 2, 1, 2, 1, 1});
  return tensors;
}

TEST(SafetensorsWriter, EveryTypeAndShapeComesBack) {
  const ScratchFolder folder;
  const std::string path = folder / "x.safetensors";
  const Tensors tensors = every_kind();
  const Fields metadata{{"scale", "0.125"}, {"a \"quoted\" key", "é\n"}, {"", ""}};
  write_safetensors(path, tensors.all(), metadata);

  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(file.name(), path);
  ASSERT_EQ(file.tensors().size(), tensors.all().size());
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const NamedTensor& written = tensors.all()[i];
    const TensorEntry& entry = file.tensors()[i];
    EXPECT_EQ(entry.name, written.name);
    const Tensor read = file.read(entry);
    EXPECT_EQ(read.dtype(), written.dtype);
    EXPECT_EQ(read.shape(), written.shape);
    EXPECT_TRUE(std::equal(read.bytes().begin(), read.bytes().end(), written.bytes.begin(), written.bytes.end()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read.bytes().data()) % 64, 0U);
  }
  EXPECT_EQ(file.metadata().size(), metadata.size());
  for (const auto& [key, value] : metadata) EXPECT_EQ(file.metadata().find(key), value);
}

TEST(SafetensorsWriter, EveryTensorIsAlignedInTheFile) {
  const ScratchFolder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, every_kind().all());
  std::uint64_t header = 0;
  std::memcpy(&header, read_file(path).data(), 8);
  EXPECT_EQ(header % 8, 0U);
  const auto file = SafetensorsFile::open(path);
  for (const TensorEntry& entry : file.tensors()) EXPECT_EQ(entry.begin % size_of(entry.dtype), 0U) << entry.name;
}

TEST(SafetensorsWriter, BytesAreAsTheFormatSays) {
  const ScratchFolder folder;
  const std::string path = folder / "x.safetensors";
  Tensors tensors;
  tensors.add("flag", DType::boolean, {1}).add("x", DType::f16, {2});
  const Fields metadata{{"b", "1"}, {"a", "2"}};
  write_safetensors(path, tensors.all(), metadata);
  const std::string header =
      R"({"__metadata__":{"b":"1","a":"2"},"flag":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]},)"
      R"("x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string prefix{static_cast<char>(padded.size()), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(read_file(path), prefix + padded + "\1\2\3\4\1");
}

TEST(SafetensorsWriter, InMemoryTheBytesAreThoseOfTheFile) {
  const ScratchFolder folder;
  const std::string path = folder / "x.safetensors";
  const Tensors tensors = every_kind();
  const Fields metadata{{"scale", "0.125"}};
  write_safetensors(path, tensors.all(), metadata);
  const std::vector<std::byte> bytes = safetensors_bytes(tensors.all(), metadata, "mine");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), read_file(path));
  try {
    safetensors_bytes(tensors.all(), Fields{{"a", "1"}, {"a", "2"}}, "mine");
    FAIL() << "a name twice passed";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "mine: metadata \"a\" is given twice");
  }
}

TEST(SafetensorsWriter, NothingAtAllIsAFileToo) {
  const ScratchFolder folder;
  write_safetensors(folder / "x", {});
  EXPECT_TRUE(SafetensorsFile::open(folder / "x").tensors().empty());
}

TEST(SafetensorsWriter, WrongUseIsNamedAndWritesNothing) {
  const ScratchFolder folder;
  const auto message = [&](const Tensors& tensors, const Fields& metadata = {}) -> std::string {
    try {
      write_safetensors(folder / "x", tensors.all(), metadata);
    } catch (const FileError& error) {
      return error.what();
    }
    return "written";
  };
  const auto tensor = [](std::string name) {
    Tensors tensors;
    tensors.add(std::move(name), DType::f32, {2, 3});
    return tensors;
  };
  EXPECT_THAT(message(tensor("a").add("a", DType::f32, {})),
              testing::HasSubstr("\"a\" can't be written: its name is taken"));
  EXPECT_THAT(message(tensor("__metadata__")), testing::HasSubstr("its name is taken"));
  EXPECT_THAT(message(tensor("\xFF")), testing::HasSubstr("\"\\xff\" can't be written because it is not valid UTF-8"));
  EXPECT_THAT(message(tensor("a"), {{"k", "\xFF"}}), testing::HasSubstr("not valid UTF-8"));
  EXPECT_THAT(message(tensor("a"), {{"k", "1"}, {"k", "2"}}), testing::HasSubstr("metadata \"k\" is given twice"));
  Tensors wrong = tensor("a");
  wrong[0].shape = {2, 4};
  EXPECT_THAT(message(wrong), testing::HasSubstr("shape [2, 4] of type f32 takes 32 bytes but 24 are given"));
  Tensors negative = tensor("a");
  negative[0].shape = {-2, -3};
  EXPECT_THAT(message(negative), testing::HasSubstr("negative size"));
  Tensors wrapping = tensor("a");
  wrapping[0].shape = {(std::int64_t{1} << 62) + 6};
  EXPECT_THAT(message(wrapping), testing::HasSubstr("overflows"));
  Tensors deep = tensor("a");
  deep[0].shape = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_THAT(message(deep), testing::HasSubstr("more than 8 dimensions"));
  EXPECT_EQ(folder.listing(), "");
}

/// Lets this process write at most so many bytes to a file while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST(SafetensorsWriter, ADiskThatFillsUpLeavesTheOldFile) {
  const ScratchFolder folder;
  write_file(folder / "x", "old");
  Tensors tensors;
  tensors.add("a", DType::f32, {10'000});
  {
    const FileSizeLimit limit(1000);
    EXPECT_THROW(write_safetensors(folder / "x", tensors.all()), FileError);
  }
  EXPECT_EQ(read_file(folder / "x"), "old");
  EXPECT_EQ(folder.listing(), "x");
}

TEST(SafetensorsWriter, AHeaderBeyondTheFormatsLimitIsAnError) {
  const ScratchFolder folder;
  const Fields metadata{{"k", std::string(max_header_bytes, 'x')}};
  try {
    write_safetensors(folder / "x", {}, metadata);
    FAIL() << "written";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("its header would take 100000032 bytes, more than the 100000000 that "
                                                 "safetensors allows"));
  }
  EXPECT_EQ(folder.listing(), "");
}

// As large as a disk may be, without its bytes: it is no more than an error where memory ends.
TEST(SafetensorsReader, ATensorThatDoesNotFitTheMemoryIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "this sanitizer ends the process where operator new would throw";
#endif
  const ScratchFolder folder;
  const std::string path = folder / "x", size = std::to_string(std::uint64_t{4} << 30);
  const std::string header = R"({"a":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[0,)" + size + "]}}";
  const std::uint64_t length = header.size();
  write_file(path, std::string(reinterpret_cast<const char*>(&length), 8) + header);
  std::filesystem::resize_file(path, 8 + length + (std::uint64_t{4} << 30));
  const auto file = SafetensorsFile::open(path);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little{rlim_t{2} << 30, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  std::string said;
  try {
    file.read(file.tensors()[0]);
  } catch (const FileError& error) {
    said = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(said, testing::HasSubstr("tensor \"a\": its 4294967296 bytes do not fit the memory"));
}

TEST(SafetensorsReader, AFileThatShrinksIsAnError) {
  const ScratchFolder folder;
  const std::string path = folder / "x";
  write_safetensors(path, Tensors().add("a", DType::f32, {1000}).all());
  const auto file = SafetensorsFile::open(path);
  EXPECT_NO_THROW(file.read(file.tensors()[0]));
  std::filesystem::resize_file(path, 100);
  EXPECT_THROW(file.read(file.tensors()[0]), FileError);
}

TEST(SafetensorsReader, AFileThatChangesIsAnError) {
  const ScratchFolder folder;
  const std::string path = folder / "x";
  write_safetensors(path, Tensors().add("a", DType::f32, {1000}).all());
  const auto file = SafetensorsFile::open(path);
  const timespec times[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  try {
    file.read(file.tensors()[0]);
    FAIL() << "the change was not seen";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("\"a\": the file changed"));
  }
}

TEST(SafetensorsReader, AFileReplacedByTheWriterStaysReadable) {
  const ScratchFolder folder;
  const std::string path = folder / "x";
  write_safetensors(path, Tensors().add("a", DType::f32, {1000}).all());
  const auto file = SafetensorsFile::open(path);
  write_safetensors(path, Tensors().add("b", DType::f32, {1}).all());
  EXPECT_EQ(file.read(file.tensors()[0]).bytes().size(), 4000U);
}

TEST(SafetensorsReader, WhatIsNoRegularFileIsAnError) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto message = [](const std::string& path) -> std::string {
    try {
      SafetensorsFile::open(path);
    } catch (const FileError& error) {
      return error.what();
    }
    return "opened";
  };
  EXPECT_THAT(message(folder / "pipe"), testing::HasSubstr("is a pipe, but only a regular file can be read"));
  EXPECT_THAT(message(folder / "."), testing::HasSubstr("is a folder"));
  EXPECT_THAT(message("/dev/null"), testing::HasSubstr("is a device"));
  EXPECT_THAT(message(folder / "none\x1b"), testing::HasSubstr("none\\x1b: can't be opened: No such file"));
}

TEST(Tensor, ViewsAreDense) {
  Tensor tensor(DType::f32, {2, 0, 3});
  EXPECT_EQ(tensor.view().rank, 3);
  EXPECT_NE(tensor.view().data, nullptr);
  Tensor full(DType::f16, {2, 5, 3});
  EXPECT_EQ(full.mutable_view().strides[0], 15);
  EXPECT_EQ(full.mutable_view().strides[1], 3);
  EXPECT_EQ(full.view().strides[2], 1);
  EXPECT_EQ(Tensor(DType::f64, {}).view().rank, 0);
  EXPECT_EQ(Tensor(DType::f64, {}).bytes().size(), 8U);
  EXPECT_ANY_THROW(Tensor(DType::u8, {1, 1, 1, 1, 1}).view());
  EXPECT_ANY_THROW(Tensor(DType::u8, {-1}));
  EXPECT_ANY_THROW(Tensor(DType::f64, {std::int64_t{1} << 61}));
}

}  // namespace
}  // namespace levelhead
