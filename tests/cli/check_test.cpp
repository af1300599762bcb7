// `levelhead check` on the two captures: verdicts, options, text, JSON, statuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/driver.hpp"
#include "cli/text.hpp"

namespace levelhead::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string encoder_file = capture_path("minilm-l6-qkv.safetensors");
const std::string decoder_file = capture_path("smollm2-135m-qkv.safetensors");

struct Judged {
  std::string file, scale, verdict;
  double h75;
  std::string likely_mistake;
};

void PrintTo(const Judged& x, std::ostream* out) {
  *out << x.file << " at " << (x.scale.empty() ? "its own" : x.scale);
}

class Verdicts : public ::testing::TestWithParam<Judged> {};

// The figures of docs/numbers.md, to the digits it gives.
TEST_P(Verdicts, OfTheCapturesAtRightAndWrongScales) {
  const auto& [file, scale, name, h75, likely_mistake] = GetParam();
  const Json json = scale.empty() ? check_json({file}) : check_json({file, "--scale", scale});
  const Json& verdict = json.at("verdict");
  EXPECT_EQ(verdict.at("name"), name);
  EXPECT_NEAR(verdict.at("h75"), h75, 0.0005);
  EXPECT_EQ(verdict.at("limits"), Json({0.48, 0.90}));
  EXPECT_EQ(verdict.at("likely_mistake"), likely_mistake.empty() ? Json(nullptr) : Json(likely_mistake));
  if (!scale.empty()) {
    EXPECT_EQ(json.at("scale"), std::stod(scale));
  }
}

INSTANTIATE_TEST_SUITE_P(Encoder, Verdicts,
                         ::testing::Values(Judged{encoder_file, "", "level", .745, ""},
                                           Judged{encoder_file, "1", "too_sharp", .097, "1"},
                                           Judged{encoder_file, "0.28867513", "too_sharp", .462, "1/sqrt(heads)"},
                                           Judged{encoder_file, "0.03125", "too_flat", .995, "1/D"},
                                           Judged{encoder_file, "0.05103104", "too_flat", .986, "1/sqrt(d_model)"}));
INSTANTIATE_TEST_SUITE_P(Decoder, Verdicts,
                         ::testing::Values(Judged{decoder_file, "", "level", .621, ""},
                                           Judged{decoder_file, "1", "too_sharp", .071, "1"},
                                           Judged{decoder_file, ".33333333", "too_sharp", .235, "1/sqrt(heads)"},
                                           Judged{decoder_file, ".015625", "too_flat", .995, "1/D"},
                                           Judged{decoder_file, ".04166667", "too_flat", .959, "1/sqrt(d_model)"}));

TEST(Check, JsonMembers) {
  const Json json = check_json({encoder_file});
  EXPECT_EQ(json.at("file"), encoder_file);
  EXPECT_EQ(json.at("model"), "sentence-transformers/all-MiniLM-L6-v2");
  EXPECT_EQ(json.at("scale"), 0.17677669529663687);
  EXPECT_EQ(json.at("scale_is"), Json({"1/sqrt(D)", "1/sqrt(Dv)"}));
  EXPECT_EQ(json.at("layers")[5].at("layer"), 5);
  EXPECT_EQ(json.at("layers")[5].at("heads")[11].at("head"), 11);
}

TEST(Check, WithoutFileJudgesBothCaptures) {
  const Finished result = run({"check", "--json", "-", "--strict"});
  EXPECT_EQ(result.status, 0);
  const auto lines = result.lines();
  ASSERT_EQ(lines.size(), 2U);
  const Json first = Json::parse(lines[0]), second = Json::parse(lines[1]);
  EXPECT_THAT(first.at("file").get<std::string>(), HasSubstr("minilm-l6-qkv"));
  EXPECT_EQ(first.at("layers"), check_json({encoder_file}).at("layers"));
  EXPECT_THAT(second.at("file").get<std::string>(), HasSubstr("smollm2-135m-qkv"));
  EXPECT_EQ(second.at("layers"), check_json({decoder_file}).at("layers"));
}

TEST(Check, SameBitsForAnyNumberOfThreads) {
  EXPECT_EQ(check_json({decoder_file, "--threads", "1"}), check_json({decoder_file, "--threads", "5"}));
}

TEST(Check, StrictIsStatusThreeUnlessLevel) {
  EXPECT_EQ(run({"check", encoder_file, "--strict"}).status, 0);
  EXPECT_EQ(run({"check", encoder_file, decoder_file, "--scale", "1", "--strict"}).status, 3);
  EXPECT_EQ(run({"check", encoder_file, "--scale", "1"}).status, 0);
  EXPECT_EQ(run({"check", encoder_file, "--layer", "0", "--strict"}).status, 3);
}

TEST(Check, PartsAreUndecidedAndStillMeasured) {
  const Json layer = check_json({encoder_file, "--layer", "3"});
  EXPECT_EQ(layer.at("verdict").at("name"), "undecided");
  EXPECT_TRUE(layer.at("verdict").at("h75").is_number());
  ASSERT_EQ(layer.at("layers").size(), 1U);
  EXPECT_EQ(layer.at("layers")[0].at("layer"), 3);
  EXPECT_EQ(layer.at("layers")[0], check_json({encoder_file}).at("layers")[3]);

  const Json head = check_json({encoder_file, "--head", "2", "--scale", "1"});
  EXPECT_EQ(head.at("verdict").at("name"), "undecided");
  EXPECT_EQ(head.at("verdict").at("likely_mistake"), nullptr);
  for (const Json& one : head.at("layers")) {
    ASSERT_EQ(one.at("heads").size(), 1U);
    EXPECT_EQ(one.at("heads")[0].at("head"), 2);
  }
}

TEST(Check, JsonFileComesBesideTheText) {
  const Folder folder;
  const Finished result = run({"check", encoder_file, decoder_file, "--json", folder.file("out.jsonl")});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Verdict: level"));
  std::ifstream file(folder.file("out.jsonl"));
  std::string line;
  std::vector<std::string> files;
  while (std::getline(file, line)) files.push_back(Json::parse(line).at("file"));
  EXPECT_THAT(files, ElementsAre(encoder_file, decoder_file));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"out.jsonl"});
}

TEST(Check, TextSaysTheVerdictItsNumbersAndItsLimits) {
  const std::string text = unwrapped(run({"check", decoder_file, "--scale", "1"}).out);
  for (const char* part :
       {"HuggingFaceTB/SmolLM2-135M-Instruct", "10 of 30 layers, 9 heads (3 for keys), 128 tokens, D 64, causal",
        "scale 1 (asked for; the capture was made with 0.125)", "Verdict: too_sharp, from 10 of 30 layers",
        "Likely mistake: the scale is 1 ", "0.071", "0.409 below 0.48", "0.829 below 0.90", "Evidence, never proof",
        "factors of 2 are often missed", "A loss sweep over the scale is better evidence", "--scale 0.125"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(run({"check", encoder_file}).out, Not(HasSubstr("Likely mistake")));
}

TEST(Check, TextFitsTheColumns) {
  for (const char* columns : {"60", "80", "120"})
    for (const Arguments& more :
         {Arguments{}, Arguments{"--heads"}, Arguments{"--scale", "1"}, Arguments{"--layer", "3", "--head", "0"}}) {
      Arguments arguments{"check", decoder_file};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Finished result = run(arguments, {{"COLUMNS", columns}});
      for (const std::string& line : result.lines())
        if (line.find("/data/") == std::string::npos) {
          EXPECT_LT(characters(line), std::max(80UL, std::stoul(columns))) << line;
        }
    }
}

TEST(Check, PlainTextWithoutUtf8AndWithoutTerminal) {
  const Finished result =
      run({"check", encoder_file, "--layer", "0", "--head", "1"}, {{"LC_ALL", "C"}, {"TERM", "xterm"}});
  for (const char c : result.out) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << result.out;
  EXPECT_THAT(result.out, HasSubstr("####"));
  EXPECT_THAT(run({"check", encoder_file}).out, HasSubstr("███"));
  EXPECT_THAT(run({"check", encoder_file}).out, Not(HasSubstr("\x1b")));
}

TEST(Check, HeadsAndRows) {
  const Finished heads = run({"check", decoder_file, "--heads"});
  std::size_t lines = 0;
  for (const std::string& line : heads.lines()) lines += line.starts_with("   24 ") || line.starts_with("    0 ");
  EXPECT_EQ(lines, 18U);  // two of the ten layers, 9 heads each
  EXPECT_THAT(heads.out, HasSubstr("frozen"));

  const Finished rows = run({"check", decoder_file, "--layer", "12", "--head", "2"});
  EXPECT_THAT(rows.out, HasSubstr("layer 12, head 2"));
  EXPECT_THAT(rows.out, ::testing::ContainsRegex("  127  [^\n]* 128  "));
  EXPECT_THAT(rows.out, ::testing::ContainsRegex("\n    7   Michael +8 "));
}

// In `attend` and `kernels` --json takes no value, so a capture is soon given where the JSON belongs.
TEST(Check, JsonNeverReplacesACapture) {
  const Folder folder;
  const std::string capture = folder.file("capture");
  std::filesystem::copy_file(std::string(LEVELHEAD_SOURCE_DIR) + "/data/minilm-l6-qkv.safetensors", capture);
  const auto size = std::filesystem::file_size(capture);
  for (const Arguments& arguments :
       {Arguments{"check", "--json", capture}, Arguments{"check", capture, "--json", capture}}) {
    const Finished result = run(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::filesystem::file_size(capture), size);
  }
  EXPECT_EQ(run({"check", capture, "--json", folder.file("json")}).status, 0);
  EXPECT_EQ(run({"check", capture, "--json", folder.file("json")}).status, 0) << "JSON may be replaced by JSON";
}

TEST(Check, WrongUseIsStatusTwo) {
  const std::vector<std::pair<Arguments, std::string>> all{{{"--scale", "x"}, "'x'"},
                                                           {{"--scale", "inf"}, "'inf'"},
                                                           {{"--causal=perhaps"}, "perhaps"},
                                                           {{"--layer", "7"}, "no layer 7, only 0, 1, 2, 3, 4, 5"},
                                                           {{"--layer", "x"}, "--layer"},
                                                           {{"--layer", "-1"}, "--layer"},
                                                           {{"--head", "12"}, "no head 12, only 0 to 11"},
                                                           {{"--align", "up"}, "'up'"},
                                                           {{"--threads", "0"}, "--threads"},
                                                           {{"--report", "-"}, "--report"},
                                                           {{""}, "FILE is given an empty name"},
                                                           {{"--fresh=perhaps"}, "--fresh"},
                                                           {{"--compare"}, "--compare"}};
  for (const auto& [options, sentence] : all) {
    SCOPED_TRACE(sentence);
    Arguments arguments{"check", encoder_file};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Finished result = run(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(sentence));
  }
}

// A file of some hundred bytes that names more rows than any memory holds.
TEST(Check, MoreRowsThanAnyMemoryAreStatusOne) {
  const Folder folder;
  constexpr std::int64_t rows = std::int64_t{1} << 57;
  const Tensor empty(DType::f32, {0});
  write(folder.file("x"), {{"layers.0.q", empty, {1, rows, 0}}, {"layers.0.k", empty, {1, 1, 0}}},
        {{"scale", "1"}, {"causal", "false"}});
  const Finished result = run({"check", folder.file("x")});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "levelhead check: out of memory: the tensors of this call are larger than any memory\n");
}

TEST(Check, FailuresAreStatusOne) {
  const Folder folder;
  EXPECT_EQ(run({"check", folder.file("none")}).status, 1);
  EXPECT_EQ(run({"check", encoder_file, "--json", folder.file("none/x")}).status, 1);
  EXPECT_EQ(run({"check", encoder_file, "--json", "/dev/full"}).status, 1);
  for (const Arguments& arguments :
       {Arguments{"check", encoder_file}, Arguments{"check", encoder_file, "--json", "-"}}) {
    const Finished full = run(arguments, {}, "/dev/full");
    EXPECT_EQ(full.status, 1);
    EXPECT_THAT(full.err, HasSubstr("standard output"));
  }
}

}  // namespace
}  // namespace levelhead::test
