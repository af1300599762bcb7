// What all subcommands share: help, version, statuses, kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/driver.hpp"
#include "levelhead/version.hpp"

namespace levelhead::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Command, HelpIsDataAndFitsTheColumns) {
  for (const Arguments& arguments :
       {Arguments{"--help"}, Arguments{"-h"}, Arguments{"attend", "--help"}, Arguments{"check", "--help"},
        Arguments{"kernels", "--help"}, Arguments{"lab", "run", "--help"}, Arguments{"generate", "--help"}}) {
    const Finished result = run(arguments);
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Usage: levelhead"));
    for (const std::string& line : result.lines()) EXPECT_LT(line.size(), 80U) << line;
  }
  EXPECT_EQ(run({"--help"}, {}, "/dev/full").status, 1);
}

TEST(Command, Version) {
  const Finished result = run({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "levelhead " + std::string(version) + "\n");
}

TEST(Command, WrongUse) {
  for (const Arguments& arguments : {Arguments{}, Arguments{"--frobnicate"}, Arguments{"chekc"},
                                     Arguments{"kernels", "x"}, Arguments{"kernels", "--kernel", "x"},
                                     Arguments{"check", "--json"}, Arguments{"a\nb"}, Arguments{"generate"}}) {
    const Finished result = run(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("--help"));
  }
}

TEST(Command, AnUnknownCommandIsNamed) {
  EXPECT_EQ(run({"chekc", "--json"}).err, "levelhead: there is no command 'chekc' (see levelhead --help)\n");
}

TEST(Command, EndsSilentlyWithoutReader) {
  const Finished result = run_without_reader({"check"});
  EXPECT_EQ(result.status, 128 + SIGPIPE);
  EXPECT_EQ(result.err, "");
}

TEST(Command, KernelsAsJson) {
  const Finished result = run({"kernels", "--json"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.lines().size(), 1U);
  const auto json = result.json();
  EXPECT_TRUE(json.at("cpu").is_string());
  const std::vector<KernelInfo> all = kernels();
  ASSERT_EQ(json.at("kernels").size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& kernel = json.at("kernels")[i];
    EXPECT_EQ(kernel.at("name"), all[i].name);
    EXPECT_EQ(kernel.at("available"), all[i].available);
    EXPECT_EQ(kernel.at("why"), all[i].why);
    EXPECT_EQ(kernel.at("types").size(), all[i].types.size());
    for (const auto& type : kernel.at("types")) EXPECT_THAT(type, AnyOf("f64", "f32", "bf16", "f16"));
  }
}

TEST(Command, KernelsAsText) {
  const Finished result = run({"kernels"});
  EXPECT_EQ(result.status, 0);
  for (const KernelInfo& kernel : kernels()) EXPECT_THAT(result.out, HasSubstr("\n" + kernel.name + " "));
  EXPECT_EQ(run({"kernels"}, {}, "/dev/full").status, 1);
}

}  // namespace
}  // namespace levelhead::test
