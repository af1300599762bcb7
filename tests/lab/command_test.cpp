// `levelhead lab` as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/driver.hpp"

namespace levelhead::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::vector<Json> parsed(std::istream&& stream) {
  std::vector<Json> objects;
  std::string line;
  while (std::getline(stream, line)) {
    EXPECT_FALSE(stream.eof()) << "the last line has no end";
    objects.push_back(Json::parse(line));
  }
  return objects;
}

TEST(LabCommand, Help) {
  for (const Arguments& arguments :
       {Arguments{"lab", "--help"}, Arguments{"lab", "run", "--help"}, Arguments{"lab", "all", "--help"}}) {
    const Finished result = run(arguments);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, HasSubstr("Usage: levelhead lab"));
    for (const std::string& line : result.lines()) EXPECT_LT(line.size(), 80U) << line;
  }
}

TEST(LabCommand, List) {
  const Finished result = run({"lab", "list"});
  EXPECT_EQ(result.status, 0);
  for (const char* name : {"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a11", "a14", "table1"})
    EXPECT_THAT("\n" + result.out, HasSubstr("\n" + std::string(name) + " "));
  EXPECT_EQ(result.lines().size(), 10U);
  EXPECT_EQ(run({"lab", "list"}, {}, "/dev/full").status, 1);
}

TEST(LabCommand, WrongUse) {
  for (const Arguments& arguments :
       {Arguments{"lab"}, Arguments{"lab", "run"}, Arguments{"lab", "frobnicate"}, Arguments{"lab", "all", "a1"},
        Arguments{"lab", "run", "a1", "--seed", "x"}, Arguments{"lab", "run", "a1", "--threads", "0"},
        Arguments{"lab", "run", "a1", "a9000"}, Arguments{"lab", "run", "a\n9"}}) {
    const Finished result = run(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_THAT(run({"lab", "run", "a9000"}).err, HasSubstr("'a9000', only a1, a2, a3"));
}

TEST(LabCommand, TextFitsTheColumns) {
  const Finished result = run({"lab", "all", "--quick"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  for (const std::string& line : result.lines()) EXPECT_LT(line.size(), 80U) << line;
  for (const char* words : {"Told: Softmax(60, 65, 70)", "4.51e-05", "Verdict: holds:", "Verdict: fails:"})
    EXPECT_THAT(result.out, HasSubstr(words));
  EXPECT_THAT(result.lines().back(), StartsWith("table1  holds"));
}

TEST(LabCommand, JsonLines) {
  const Finished result = run({"lab", "run", "a6", "a5", "--json", "-", "--seed", "5"});
  EXPECT_EQ(result.status, 0);
  const std::vector<Json> objects = parsed(std::istringstream(result.out));
  ASSERT_EQ(objects.size(), 5U);
  EXPECT_EQ(objects[0].at("experiment"), "a6");
  EXPECT_EQ(objects[1].at("verdict"), "holds");
  EXPECT_EQ(objects[2].at("experiment"), "a5");
  EXPECT_EQ(objects[2].at("told").at("p1"), 0.25);
  EXPECT_NEAR(objects[2].at("measured").at("p3").get<double>(), 0.9933, 1e-4);
  EXPECT_EQ(objects[4].at("verdict"), "fails");
  for (const Json& object : objects) EXPECT_EQ(object.at("seed"), 5);

  const Folder folder;
  const Finished both = run({"lab", "run", "a6", "--json", folder.file("x.jsonl")});
  EXPECT_EQ(both.status, 0);
  EXPECT_THAT(both.out, HasSubstr("Verdict: holds"));
  EXPECT_EQ(parsed(std::ifstream(folder.file("x.jsonl"))).size(), 2U);
}

TEST(LabCommand, Page) {
  const Folder folder;
  const Finished result = run({"lab", "run", "a5", "a6", "--page", folder.file("x.html")});
  EXPECT_EQ(result.status, 0);
  std::ostringstream page;
  page << std::ifstream(folder.file("x.html")).rdbuf();
  EXPECT_THAT(page.str(), HasSubstr("<!doctype html>"));
  EXPECT_THAT(page.str(), HasSubstr("a5: Softmax of 60, 65, 70"));
}

TEST(LabCommand, OutputThatCannotBeWritten) {
  EXPECT_EQ(run({"lab", "run", "a6", "--page", "/no/such/folder/x.html"}).status, 1);
  EXPECT_EQ(run({"lab", "run", "a6"}, {}, "/dev/full").status, 1);
  EXPECT_EQ(run({"lab", "run", "a6", "--json", "-"}, {}, "/dev/full").status, 1);
  EXPECT_EQ(run({"lab", "run", "a6", "--json", "/no/such/folder/x.jsonl"}).status, 1);
}

TEST(LabCommand, InterruptedItLeavesWholeLines) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Folder folder;
    const std::string path = folder.file("x.jsonl");
    const pid_t process = start({"lab", "all", "--json", path, "--page", folder.file("x.html")});
    while (!std::filesystem::exists(path) || std::filesystem::file_size(path) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kill(process, signal);
    EXPECT_EQ(wait_for(process), 128 + signal);
    const std::vector<Json> objects = parsed(std::ifstream(path));
    ASSERT_FALSE(objects.empty());
    EXPECT_FALSE(objects.back().value("experiment", "") == "table1" && objects.back().contains("verdict"))
        << "it ran to its end";
    EXPECT_EQ(folder.names(), std::vector<std::string>{"x.jsonl"});  // no page, no temporary file
  }
}

}  // namespace
}  // namespace levelhead::test
