// What `levelhead attend` refuses, with which status and sentence; and how it ends when it can't go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/attend_case.hpp"

namespace levelhead::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Shape small{1, 2, 1, 4, 4, 4, 3};

struct Refused {
  std::vector<FileTensor> more;  // replace or join q, k, v
  Arguments options;
  std::string sentence;
};

Finished attend(const std::vector<FileTensor>& more, const Arguments& options, const Folder& folder) {
  std::vector<FileTensor> tensors = tensors_of(Case::random(DType::f32, small, 1));
  for (const FileTensor& tensor : more) {
    std::erase_if(tensors, [&](const FileTensor& t) { return t.name == tensor.name; });
    tensors.push_back(tensor);
  }
  write(folder.file("in"), tensors);
  Arguments arguments{"attend", "--input", folder.file("in"), "--output", folder.file("out")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run(arguments);
}

void expect_one_line(const Finished& result, int status) {
  EXPECT_EQ(result.status, status);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, ::testing::StartsWith("levelhead attend: "));
}

Tensor ones(Sizes sizes, DType type = DType::f32) { return Tensor(type, std::move(sizes)).fill(1); }

// The input would be lost; by whatever name, links included.
TEST(AttendRefuses, AnOutputThatIsTheInput) {
  Folder folder;
  attend({}, {}, folder);
  std::filesystem::create_symlink(folder.file("in"), folder.file("link"));
  std::filesystem::create_hard_link(folder.file("in"), folder.file("hard"));
  for (const char* name : {"in", "link", "hard"}) {
    const Finished result = run({"attend", "--input", folder.file("in"), "--output", folder.file(name)});
    expect_one_line(result, 2);
    EXPECT_THAT(result.err, HasSubstr("is the input"));
  }
  EXPECT_EQ(run({"attend", "--input", folder.file("in"), "--output", folder.file("out")}).status, 0);
}

TEST(AttendRefuses, AnInputWithoutName) {
  const Finished result = run({"attend", "--input", "", "--output", "x"});
  expect_one_line(result, 2);
  EXPECT_THAT(result.err, HasSubstr("--input is given an empty name"));
}

TEST(AttendRefuses, RanksThatDiffer) {
  Folder folder;
  expect_one_line(attend({{"q", ones({2, 4, 4})}}, {}, folder), 2);
}

TEST(AttendRefuses, WrongUseWithASentenceAndStatusTwo) {
  const std::vector<Refused> all{
      {{{"values", ones({1})}}, {}, "'values'"},
      {{{"qk_gain", ones({2})}}, {}, "qk_gain is given but --qk-norm is not"},
      {{{"ssmax_s", ones({2})}}, {}, "ssmax_s is given but --scale ssmax is not"},
      {{{"ssmax_s", ones({2})}}, {"--scale", "none"}, "ssmax_s is given but --scale ssmax is not"},
      {{{"ssmax_s", ones({2})}, {"scale", ones({2})}}, {"--scale", "ssmax"}, "both"},
      {{}, {"--scale", "ssmax"}, "needs the tensor ssmax_s"},
      {{}, {"--qk-norm", "l2", "--scale", "none"}, "--qk-norm and --scale"},
      {{{"scale", ones({2})}}, {"--qk-norm", "l2"}, "--qk-norm and the tensor scale"},
      {{}, {"--qk-norm", "l3"}, "'l3'"},
      {{}, {"--scale", "sqrt"}, "'sqrt'"},
      {{}, {"--scale", ""}, "''"},
      {{}, {"--scale", "nan"}, "'nan'"},
      {{}, {"--scale", "inf"}, "'inf'"},
      {{}, {"--scale", "1x"}, "'1x'"},
      {{}, {"--scale", "log-keys"}, "log-keys:N0"},
      {{}, {"--scale", "log-keys:1"}, "n0"},
      {{}, {"--scale", "inv-dim:"}, "inv-dim:BASE"},
      {{}, {"--scale", "yarn"}, "yarn:FACTOR"},
      {{}, {"--scale", "yarn:2,"}, "yarn:FACTOR"},
      {{{"scale", ones({2, 4})}}, {}, "scale"},
      {{}, {"--softcap", ""}, "--softcap is ''"},
      {{}, {"--softcap", "0x10"}, "--softcap is '0x10'"},
      {{}, {"--softcap", "1e-400"}, "--softcap is '1e-400'"},
      {{}, {"--kernel", ""}, "--kernel is given an empty name"},
      {{}, {"--window", "3"}, "LEFT,RIGHT"},
      {{}, {"--window", "-1,2"}, "'-1,2'"},
      {{}, {"--window", "1,2,3"}, "'1,2,3'"},
      {{}, {"--align", "left"}, "'left'"},
      {{}, {"--align", "1.5"}, "'1.5'"},
      {{}, {"--softcap", "-1"}, "softcap"},
      {{}, {"--softcap", "nan"}, "softcap"},
      {{}, {"--softcap", "x"}, "--softcap"},
      {{}, {"--kernel", "fastest"}, "there is no kernel 'fastest'"},
      {{}, {"--threads", "0"}, "--threads"},
      {{}, {"--threads", "-1"}, "--threads"},
      {{}, {"--threads", "two"}, "--threads"},
      {{}, {"--splits", "0"}, "--splits"},
      {{}, {"--splits", "-1"}, "--splits"},
      {{}, {"--splits", "two"}, "--splits"},
      {{},
       {"--splits", "2", "--kernel", "reference"},
       "kernel 'reference' does not split keys, but 2 splits are asked for; kernels whose name ends in -decode or "
       "-split do"},
      {{}, {"more"}, "more"},
      {{{"k", ones({1, 1, 5, 4})}}, {}, "k [1, 1, 5, 4]"},
      {{{"k", ones({1, 1, 4, 4}, DType::f64)}}, {}, "f64"},
      {{{"q", ones({1, 3, 4, 4})}, {"k", ones({1, 2, 4, 4})}, {"v", ones({1, 2, 4, 3})}}, {}, "multiple"},
      {{{"k", ones({1, 1, 6, 4})}, {"v", ones({1, 1, 6, 3})}}, {"--causal"}, "align"},
      {{{"mask", ones({4, 4}, DType::u8)}}, {}, "mask"},
      {{{"mask", ones({3, 4}, DType::boolean)}}, {}, "mask"},
      {{{"scale", ones({3})}}, {}, "[3]"},
      {{{"dout", ones({1, 2, 4, 4})}}, {}, "dout"},
      {{{"dlse", ones({1, 2, 5})}}, {}, "dlse"},
      {{{"q", ones({1, 2, 4, 4}), {1, 1, 2, 4, 4}}}, {}, "q has 5 axes"}};
  for (const auto& [more, options, sentence] : all) {
    SCOPED_TRACE(sentence + ::testing::PrintToString(options));
    const Folder folder;
    const Finished result = attend(more, options, folder);
    expect_one_line(result, 2);
    EXPECT_THAT(result.err, HasSubstr(sentence));
    EXPECT_EQ(folder.names(), std::vector<std::string>{"in"});
  }
}

TEST(AttendRefuses, MissingTensor) {
  const Folder folder;
  write(folder.file("in"), {{"q", ones({1, 2, 4, 4})}, {"v", ones({1, 1, 4, 3})}});
  const Finished result = run({"attend", "--input", folder.file("in"), "--output", folder.file("out")});
  expect_one_line(result, 2);
  EXPECT_THAT(result.err, HasSubstr("no tensor k"));
}

TEST(AttendRefuses, MissingOptions) {
  expect_one_line(run({"attend"}), 2);
  expect_one_line(run({"attend", "--input", "x"}), 2);
  expect_one_line(run({"attend", "--output", "x"}), 2);
}

TEST(AttendRefuses, NamesOfAFileStayOnOneLine) {
  const Folder folder;
  for (const Finished& result :
       {attend({{"a\n\x1b[31mb", ones({1})}}, {}, folder), attend({}, {"--kernel", "a\n\x1b[31mb"}, folder)}) {
    expect_one_line(result, 2);
    EXPECT_THAT(result.err, Not(HasSubstr("\x1b")));
  }
}

TEST(AttendFails, WithStatusOneWhenAFileIsTheMatter) {
  const Folder folder;
  write(folder.file("in"), tensors_of(Case::random(DType::f32, small, 1)));
  std::ofstream(folder.file("broken")) << "not safetensors";
  std::filesystem::create_directory(folder.file("folder"));
  const auto attend_files = [&](const std::string& in, const std::string& out) {
    const Finished result = run({"attend", "--input", in, "--output", out});
    expect_one_line(result, 1);
    return result.err;
  };
  EXPECT_THAT(attend_files(folder.file("none"), folder.file("out")), HasSubstr("none"));
  EXPECT_THAT(attend_files(folder.file("broken"), folder.file("out")), HasSubstr("broken"));
  EXPECT_THAT(attend_files(folder.file("folder"), folder.file("out")), HasSubstr("folder"));
  EXPECT_THAT(attend_files(folder.file("in"), folder.file("none/out")), HasSubstr("none"));
  EXPECT_THAT(attend_files(folder.file("in"), folder.file("folder")), HasSubstr("is a folder"));
  EXPECT_THAT(attend_files(folder.file("in"), "/dev/full"), HasSubstr("/dev/full"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"broken", "folder", "in"}));
}

TEST(AttendFails, WhenStandardOutputIsFull) {
  const Folder folder;
  write(folder.file("in"), tensors_of(Case::random(DType::f32, small, 1)));
  for (const char* json : {"--json", "--stats"}) {
    const Finished result =
        run({"attend", "--input", folder.file("in"), "--output", folder.file("out"), json}, {}, "/dev/full");
    expect_one_line(result, 1);
    EXPECT_THAT(result.err, HasSubstr("standard output"));
  }
}

// D = 0: q of 2^38 rows is no bytes in the file, and its o no memory has.
TEST(AttendFails, OutOfMemoryWithASentence) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "this sanitizer ends the process where operator new would throw";
#endif
  const Folder folder;
  constexpr std::int64_t rows = std::int64_t{1} << 38;
  const Finished result = attend({{"q", Tensor(DType::f32, {1, 1, rows, 0})},
                                  {"k", Tensor(DType::f32, {1, 1, 1, 0})},
                                  {"v", Tensor(DType::f32, {1, 1, 1, 64})}},
                                 {}, folder);
  expect_one_line(result, 1);
  EXPECT_THAT(result.err, HasSubstr("out of memory"));
}

class AttendInterrupted : public ::testing::TestWithParam<int> {};

TEST_P(AttendInterrupted, LeavesNoFile) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "this sanitizer holds signals back until the next system call, which is minutes away";
#endif
  const Folder folder;
  const Case c = Case::random(DType::f32, {1, 1, 1, 16384, 16384, 64, 64}, 1);  // minutes with the reference
  write(folder.file("in"), tensors_of(c));
  const pid_t process = start({"attend", "--input", folder.file("in"), "--output", folder.file("out"), "--kernel",
                               "reference", "--threads", "1"});
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  ASSERT_EQ(kill(process, GetParam()), 0);
  EXPECT_EQ(wait_for(process), 128 + GetParam());
  EXPECT_EQ(folder.names(), std::vector<std::string>{"in"});
}

INSTANTIATE_TEST_SUITE_P(Signals, AttendInterrupted, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& param) { return param.param == SIGINT ? "interrupt" : "terminate"; });

}  // namespace
}  // namespace levelhead::test
