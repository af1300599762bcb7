// `levelhead check --fresh`: untrained weights are judged by the spread of every head.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/made_capture.hpp"
#include "cli/text.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Finished check(const FreshCapture& capture, double scale, const Arguments& options) {
  const Folder folder;
  capture.write(folder.file("capture"), scale);
  Arguments arguments{"check", folder.file("capture")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run(arguments);
}

Json check_json(const FreshCapture& capture, double scale, Arguments options = {"--fresh"}) {
  options.insert(options.end(), {"--json", "-"});
  const Finished result = check(capture, scale, options);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.json();
}

// Chance moves the median of 16 heads over 128 tokens of 64 components by 0.4 %.
TEST(CheckFresh, JudgesUnitNormalsAndSuggestsTheirScale) {
  struct Expected {
    double scale;
    std::string verdict;
    Json mistake;
  };
  for (const auto& [scale, verdict, mistake] :
       {Expected{0.125, "level", nullptr}, Expected{1, "too_sharp", "1"}, Expected{1.0 / 64, "too_flat", "1/D"}}) {
    SCOPED_TRACE(scale);
    const Json json = check_json({.layers = 4}, scale);
    EXPECT_EQ(json.at("verdict").at("name"), verdict);
    EXPECT_EQ(json.at("verdict").at("likely_mistake"), mistake);
    EXPECT_NEAR(json.at("verdict").at("suggested_scale").get<double>() / 0.125, 1, 0.012);
    EXPECT_NEAR(json.at("verdict").at("spread").get<double>() / (8 * scale), 1, 0.012);
    for (const Json& layer : json.at("layers"))
      for (const Json& head : layer.at("heads")) {
        const double spread = head.at("logit_std_within");
        EXPECT_DOUBLE_EQ(head.at("suggested_scale").get<double>(), scale / spread);
        EXPECT_NEAR(head.at("expected_spread").get<double>() / spread, 1, 0.05);
      }
  }
}

TEST(CheckFresh, JsonMembers) {
  const Json verdict = check_json({}, 1).at("verdict");
  EXPECT_EQ(verdict.at("rule"), "fresh");
  EXPECT_EQ(verdict.at("limits"), Json({0.9, 1.1}));
  EXPECT_EQ(verdict.at("heads"), 8);
  EXPECT_EQ(verdict.at("heads_outside"), 8);
  EXPECT_TRUE(verdict.at("h75").is_number());
  EXPECT_THAT(verdict.at("reason").get<std::string>(), HasSubstr("8 of 8 heads"));

  const Json plain = check_json({}, 1, {});
  EXPECT_EQ(plain.at("verdict").at("rule"), "h75");
  EXPECT_FALSE(plain.at("layers")[0].at("heads")[0].contains("expected_spread"));
  EXPECT_FALSE(plain.at("layers")[0].at("heads")[0].contains("suggested_scale"));
}

TEST(CheckFresh, TrainedModelsAreNotLevel) {
  for (const std::string& file : {encoder, decoder}) {
    const Json json = run({"check", file, "--fresh", "--json", "-"}).json();
    EXPECT_EQ(json.at("verdict").at("name"), "too_sharp");
    EXPECT_GT(json.at("verdict").at("heads_outside"), 40);
    EXPECT_EQ(json.at("verdict").at("likely_mistake"), nullptr);
    EXPECT_EQ(run({"check", file, "--json", "-"}).json().at("verdict").at("name"), "level");
  }
}

TEST(CheckFresh, StrictGoesByTheSpread) {
  EXPECT_EQ(check({}, 0.125, {"--fresh", "--strict"}).status, 0);
  EXPECT_EQ(check({.layers = 5, .tokens = 256}, 0.125, {"--strict"}).status, 3) << "H75 calls fresh weights too flat";
  EXPECT_EQ(check({}, 1, {"--fresh", "--strict"}).status, 3);
  EXPECT_EQ(check({}, 1, {"--fresh", "--strict", "--scale", "0.125"}).status, 0);
}

TEST(CheckFresh, PartsAndFewKeysAreUndecidedAndBrokenComesFirst) {
  const Json part = check_json({}, 1, {"--fresh", "--layer", "1"});
  EXPECT_EQ(part.at("verdict").at("name"), "undecided");
  EXPECT_TRUE(part.at("verdict").at("suggested_scale").is_number());
  const Json few = check_json({.tokens = 15}, 1);
  EXPECT_EQ(few.at("verdict").at("name"), "undecided");
  EXPECT_THAT(few.at("verdict").at("reason").get<std::string>(), HasSubstr("15 keys"));
  EXPECT_EQ(check_json({.layers = 1, .heads = 1}, 0.125).at("verdict").at("name"), "level") << "one head is enough";

  const Folder folder;
  Tensor q(DType::f32, {1, 20, 4}), k(DType::f32, {1, 20, 4});
  q.set({0, 3, 1}, nan);
  write(folder.file("nan"), {{"layers.0.q", q}, {"layers.0.k", k}}, {{"scale", "0"}, {"causal", "true"}});
  const Json broken = run({"check", folder.file("nan"), "--fresh", "--json", "-"}).json();
  EXPECT_EQ(broken.at("verdict").at("name"), "broken");
  EXPECT_EQ(broken.at("verdict").at("spread"), nullptr);
  EXPECT_EQ(broken.at("layers")[0].at("heads")[0].at("expected_spread"), nullptr);
  EXPECT_THAT(run({"check", folder.file("nan"), "--fresh"}).out, HasSubstr("Verdict: broken"));
}

TEST(CheckFresh, NothingToSuggestForZeros) {
  const Folder folder;
  const Tensor zeros(DType::f32, {2, 20, 4});
  write(folder.file("zeros"), {{"layers.0.q", zeros}, {"layers.0.k", zeros}}, {{"scale", "0.5"}, {"causal", "true"}});
  const Json json = run({"check", folder.file("zeros"), "--fresh", "--json", "-"}).json();
  EXPECT_EQ(json.at("verdict").at("name"), "too_flat");
  EXPECT_EQ(json.at("verdict").at("suggested_scale"), nullptr);
  EXPECT_FALSE(json.at("layers")[0].at("heads")[0].contains("suggested_scale"));
  EXPECT_THAT(run({"check", folder.file("zeros"), "--fresh"}).out, HasSubstr("no scale gives such logits"));
  EXPECT_THAT(run({"check", folder.file("zeros"), "--fresh", "--scale", "0"}).out, HasSubstr("the scale is 0"));
}

TEST(CheckFresh, TextSaysTheSpreadTheScaleAndTheLimits) {
  const std::string text = unwrapped(check({}, 1, {"--fresh"}).out);
  for (const char* part : {"Verdict: too_sharp, as fresh weights", "Likely mistake: the scale is 1 ", "(should be 1)",
                           "From the components alone", "(1/sqrt(D) is 0.125)",
                           "Suggested scale, for a median of 1: 0.12", "--fresh --scale 0.12",
                           "8 are not within 10 % of 1", "H75 is not judged", "1/sqrt(D times tokens)", "a loss sweep"})
    EXPECT_THAT(text, HasSubstr(part)) << text;
  EXPECT_THAT(text, Not(HasSubstr("H75, the 75th")));
  EXPECT_THAT(text, Not(HasSubstr("No one scale")));
  EXPECT_THAT(unwrapped(check({}, 0.125, {"--fresh"}).out), HasSubstr("judge it by H75"));
  EXPECT_THAT(unwrapped(run({"check", decoder, "--fresh"}).out), HasSubstr("is the model untrained?"));
}

TEST(CheckFresh, TextFitsTheColumnsWithAndWithoutUtf8) {
  for (const char* columns : {"40", "80", "120"})
    for (const Arguments& more : {Arguments{}, Arguments{"--heads"}, Arguments{"--scale", "1"}}) {
      Arguments arguments{"check", decoder, "--fresh"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      for (const std::string& line : run(arguments, {{"COLUMNS", columns}}).lines())
        EXPECT_LT(characters(line), std::max(60UL, std::stoul(columns))) << line;  // 60 is the least it sets text for
    }
  const Finished ascii = run({"check", decoder, "--fresh", "--heads"}, {{"LC_ALL", "C"}});
  for (const char c : ascii.out) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << ascii.out;
  EXPECT_THAT(ascii.out, HasSubstr("#####"));
}

TEST(CheckFresh, ALineForEachLayerOrHead) {
  std::vector<std::string> layers, heads;
  for (const std::string& line : check({}, 0.125, {"--fresh"}).lines())
    if (line.starts_with("    0  ") || line.starts_with("    1  ")) layers.push_back(line);
  ASSERT_EQ(layers.size(), 2U);
  for (const std::string& line : layers) EXPECT_THAT(line, ::testing::ContainsRegex(" [01]\\.[0-9]+ +0\\.1[0-9]+$"));
  for (const std::string& line : check({}, 0.125, {"--fresh", "--heads"}).lines())
    if (line.starts_with("    0    ") || line.starts_with("    1    ")) heads.push_back(line);
  EXPECT_EQ(heads.size(), 8U);
}

}  // namespace
}  // namespace levelhead::test
