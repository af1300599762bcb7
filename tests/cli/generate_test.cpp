// The manual page and the completions of shells hold what the command takes, and work in the programs that read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/driver.hpp"

namespace levelhead::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

Words split(const std::string& text, char at) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, at);) words.push_back(word);
  return words;
}

struct Described {
  Arguments path;  // "lab", "run"
  Words options;   // "--json", the long ones

  std::string name() const {
    std::string text = "levelhead";
    for (const std::string& word : path) text += " " + word;
    return text;
  }
};

// What --help says of a command and of all below it.
void describe(const Arguments& path, std::vector<Described>& all) {
  Arguments arguments = path;
  arguments.push_back("--help");
  all.push_back({path, {}});
  bool commands = false;
  Words below;
  for (const std::string& line : run(arguments).lines()) {
    if (line.empty() || line[0] != ' ') commands = line == "Subcommands:";
    if (line.size() < 3 || line[2] == ' ' || line[0] != ' ') continue;
    const std::string word = split(line.substr(2), ' ').front();
    if (commands) below.push_back(word);
    if (word.find("--") != std::string::npos) all.back().options.push_back(word.substr(word.find("--")));
  }
  for (const std::string& command : below) {
    Arguments longer = path;
    longer.push_back(command);
    describe(longer, all);
  }
}

std::vector<Described> everything() {
  std::vector<Described> all;
  describe({}, all);
  return all;
}

std::string generated(const std::string& format) {
  const Finished result = run({"generate", format});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

// From the first `begin` up to the next `end`.
std::string section(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find(end, from + begin.size()) - from);
}

std::string replaced(std::string text, char from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, 1, to);
  return text;
}

bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// What a shell completes each line with, in a folder with two captures, a page, a text and a folder.
std::vector<Words> completed(const std::string& shell, const Words& lines) {
  const std::map<std::string, std::string> without_settings{{"bash", "--norc"}, {"zsh", "-f"}, {"fish", "--no-config"}};
  const Folder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
  };
  std::string typed;
  for (const std::string& line : lines) typed += line + "\n";
  write("script", generated(shell));
  write("typed", typed);
  std::filesystem::create_directory(folder.file("here"));
  for (const char* name : {"a.safetensors", "b.safetensors", "page.html", "notes.txt"})
    write("here/" + std::string(name), "");
  std::filesystem::create_directory(folder.file("here/sub"));
  const std::string command = "cd '" + folder.file("here") + "' && HOME='" + folder.file("") + "' timeout 100 " +
                              shell + " " + without_settings.at(shell) +
                              " '" LEVELHEAD_SOURCE_DIR "/tests/cli/shells/complete." + shell +
                              "' ../script <../typed >../out 2>../err";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream err(folder.file("err"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(err), {}), "");
  std::vector<Words> all;
  std::ifstream out(folder.file("out"));
  for (std::string line; std::getline(out, line);) all.push_back(split(line, ','));
  EXPECT_EQ(all.size(), lines.size());
  all.resize(lines.size());
  return all;
}

TEST(Generate, HelpIsUnderstoodByThisTest) {
  const std::vector<Described> all = everything();
  ASSERT_GE(all.size(), 9U);
  EXPECT_EQ(all[0].options, (Words{"--help", "--version"}));
  for (const Described& command : all) EXPECT_THAT(command.options, Contains("--help")) << command.name();
}

TEST(Generate, EveryOptionOfEveryCommandIsInEach) {
  const std::string man = generated("man"), bash = generated("bash"), zsh = generated("zsh"), fish = generated("fish");
  for (const Described& command : everything()) {
    const std::string name = command.name();
    const std::string in_man = command.path.empty() ? man : section(man, ".SS \"" + name + "\"\n", "\n.S");
    const std::string in_bash = section(bash, "    '" + name + "') ", ";;") + " ";
    const std::string in_zsh = section(zsh, "\n_" + replaced(name, ' ', "_") + "() {", "\n}");
    for (const std::string& option : command.options) {
      const bool general = option == "--help";  // said once
      EXPECT_THAT(general ? man : in_man, HasSubstr("\\fB" + replaced(option, '-', "\\-") + "\\fR")) << name;
      EXPECT_THAT(replaced(in_bash, '\'', " "), HasSubstr(" " + option + " ")) << name;
      EXPECT_TRUE(in_zsh.find(option + "[") != std::string::npos || in_zsh.find(option + "=[") != std::string::npos)
          << name << " " << option;
      bool in_fish = false;
      for (const std::string& line : split(fish, '\n'))
        in_fish = in_fish || (line.find("'__levelhead_at " + name + "'") != std::string::npos &&
                              line.find(" -l " + option.substr(2) + " ") != std::string::npos);
      EXPECT_TRUE(in_fish) << name << " " << option;
    }
  }
}

TEST(Generate, WrongUse) {
  EXPECT_EQ(run({"generate", "csh"}).err, "levelhead generate: FORMAT is 'csh' but must be one of man bash zsh fish\n");
  EXPECT_EQ(run({"generate", "csh"}).status, 2);
  EXPECT_EQ(run({"generate", "man"}, {}, "/dev/full").status, 1);
}

TEST(Generate, IsTheSameOnAnyScreen) {
  for (const char* format : {"man", "bash", "zsh", "fish"}) {
    const std::string here = generated(format);
    EXPECT_EQ(run({"generate", format}, {{"COLUMNS", "60"}, {"LC_ALL", "C"}}).out, here);
    EXPECT_THAT(here, Not(HasSubstr(LEVELHEAD_SOURCE_DIR)));
  }
}

TEST(Generate, ManualPageHasNoWarnings) {
  if (!is_installed("groff")) GTEST_SKIP() << "groff is not installed";
  const Folder folder;
  std::ofstream(folder.file("page")) << generated("man");
  const std::string command = "groff -ww -man -z '" + folder.file("page") + "' >'" + folder.file("out") + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream out(folder.file("out"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(out), {}), "");
}

// What all three shells have to know. Options are asked for with a dash, since only bash offers them without.
class Completion : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!is_installed(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  }
  std::vector<Words> complete(const Words& lines) { return completed(GetParam(), lines); }
};

TEST_P(Completion, OptionsOfEveryCommand) {
  const std::vector<Described> all = everything();
  Words lines;
  for (const Described& command : all) lines.push_back(command.name() + " --");
  const std::vector<Words> found = complete(lines);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_THAT(found[i], IsSupersetOf(all[i].options)) << lines[i];
}

TEST_P(Completion, Commands) {
  const std::vector<Words> found =
      complete({"levelhead ", "levelhead ke", "levelhead lab ", "levelhead lab a", "levelhead check lab "});
  EXPECT_THAT(found[0], IsSupersetOf({"attend", "check", "kernels", "lab", "generate"}));
  EXPECT_THAT(found[1], ElementsAre("kernels"));
  EXPECT_THAT(found[2], UnorderedElementsAre("list", "run", "all"));
  EXPECT_THAT(found[3], ElementsAre("all"));
  EXPECT_THAT(found[4], Not(Contains("run")));  // a file of that name
}

TEST_P(Completion, Values) {
  const std::vector<Words> found =
      complete({"levelhead attend --scale ", "levelhead attend --stats --qk-norm ", "levelhead attend --qk-norm r",
                "levelhead attend --kernel ref", "levelhead generate ", "levelhead lab run a1 tab",
                "levelhead check --threads ", "levelhead check --threads 2 --align bottom"});
  EXPECT_THAT(found[0], IsSupersetOf({"inv-sqrt-dim", "none", "inv-dim", "log-keys:", "ssmax", "yarn:"}));
  EXPECT_THAT(found[0], Not(Contains("a.safetensors")));
  EXPECT_THAT(found[1], UnorderedElementsAre("l2", "rms"));
  EXPECT_THAT(found[2], ElementsAre("rms"));
  EXPECT_THAT(found[3], ElementsAre("reference"));
  EXPECT_THAT(found[4], UnorderedElementsAre("man", "bash", "zsh", "fish"));
  EXPECT_THAT(found[5], ElementsAre("table1"));
  EXPECT_THAT(found[6], ElementsAre());
  EXPECT_THAT(found[7], ElementsAre("bottom-right"));
}

TEST_P(Completion, AValueBehindAFlagThatMayHaveAValue) {
  const std::vector<Words> found = complete({"levelhead check --causal t", "levelhead check --causal true --str"});
  EXPECT_THAT(found[0], Contains("true"));
  EXPECT_THAT(found[1], ElementsAre("--strict"));
}

TEST_P(Completion, Files) {
  const std::vector<Words> found =
      complete({"levelhead check a", "levelhead check --strict a.safetensors b", "levelhead check --report p",
                "levelhead check --json n", "levelhead check s", "levelhead check --report page.html --strict a"});
  EXPECT_THAT(found[0], Contains("a.safetensors"));
  EXPECT_THAT(found[1], Contains("b.safetensors"));
  EXPECT_THAT(found[2], Contains("page.html"));
  EXPECT_THAT(found[3], Contains("notes.txt"));
  EXPECT_THAT(found[4], Contains(::testing::StartsWith("sub")));
  EXPECT_THAT(found[5], Contains("a.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Shells, Completion, ::testing::Values("bash", "zsh", "fish"),
                         [](const auto& shell) { return std::string(shell.param); });

// Words that are offered are words that the command takes: both are written by hand, in two places.
TEST(Offered, WordsAreTaken) {
  const Words options{"--scale", "--qk-norm", "--align"};
  Words lines;
  for (const std::string& option : options) lines.push_back("levelhead attend " + option + " ");
  const std::vector<Words> found = completed("bash", lines);
  const Folder folder;
  const Tensor tokens(DType::f32, {1, 2, 4, 2});
  write(folder.file("in"), {{"q", tokens}, {"k", tokens}, {"v", tokens}});
  write(folder.file("in-ssmax"), {{"q", tokens}, {"k", tokens}, {"v", tokens}, {"ssmax_s", Tensor(DType::f32, {2})}});
  for (std::size_t i = 0; i < options.size(); ++i) {
    EXPECT_FALSE(found[i].empty()) << options[i];
    for (const std::string& word : found[i]) {
      const Finished result = run({"attend", "--input", folder.file(word == "ssmax" ? "in-ssmax" : "in"), "--output",
                                   folder.file("out"), options[i], word.ends_with(':') ? word + "2" : word});
      EXPECT_EQ(result.status, 0) << options[i] << " " << word << ": " << result.err;
    }
  }
}

TEST(Offered, KernelsAndExperimentsAreThoseThatThereAre) {
  Words experiments, kernel_names;
  for (const std::string& line : run({"lab", "list"}).lines()) experiments.push_back(split(line, ' ').front());
  for (const KernelInfo& kernel : kernels()) kernel_names.push_back(kernel.name);
  const std::vector<Words> found = completed("bash", {"levelhead lab run ", "levelhead attend --kernel "});
  EXPECT_EQ(found[0], experiments);
  EXPECT_EQ(found[1], kernel_names);
}

// Readline replaces only what stands behind the last = or :.
TEST(CompletionInBash, WordsThatReadlineSplits) {
  const std::vector<Words> found = completed(
      "bash", {"levelhead attend --scale=", "levelhead attend --qk-norm=r", "levelhead check --report=pa",
               "levelhead attend --scale yarn:", "levelhead attend --scale yarn:2 --qk-norm ", "levelhead attend ",
               "levelhead check ", "levelhead check --report ", "levelhead check --align=top-left --str"});
  EXPECT_THAT(found[0], IsSupersetOf({"inv-sqrt-dim", "yarn:"}));
  EXPECT_THAT(found[1], ElementsAre("rms"));
  EXPECT_THAT(found[2], ElementsAre("page.html"));
  EXPECT_THAT(found[3], ElementsAre());
  EXPECT_THAT(found[4], UnorderedElementsAre("l2", "rms"));
  EXPECT_THAT(found[5], IsSupersetOf({"--input", "--output"}));
  EXPECT_THAT(found[6], UnorderedElementsAre("a.safetensors", "b.safetensors", "sub"));
  EXPECT_THAT(found[7], UnorderedElementsAre("page.html", "sub"));
  EXPECT_THAT(found[8], ElementsAre("--strict"));
}

}  // namespace
}  // namespace levelhead::test
