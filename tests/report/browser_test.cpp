// The page in a real browser, as narrow as a phone: it draws itself without a fault, and its numbers are those of JSON.
#include "report/browser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "report/driven.hpp"

namespace levelhead::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class Browser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!browser()) GTEST_SKIP() << "there is no chromium: pages were not opened in a browser";
  }
};

void expect_faultless(const Seen& seen) {
  EXPECT_EQ(seen.console, "");
  EXPECT_EQ(seen.page.at("faults"), "");
  EXPECT_EQ(seen.page.at("drawn"), "true");
  EXPECT_EQ(seen.page.at("images"), 0);
  EXPECT_EQ(seen.page.at("title"), "levelhead check") << "only the page's own scripts set it";
}

/// Text of a cell against its number: two digits, and no more than half a step off.
void expect_reads(const std::string& text, double value) {
  const std::size_t dot = text.find('.');
  const int decimals = dot == std::string::npos ? 0 : static_cast<int>(text.size() - dot - 1);
  EXPECT_NEAR(std::stod(text), value, 0.5 * std::pow(10, -decimals) + 1e-12) << text;
}

void expect_map(const Json& cells, const Json& layers, const std::string& name) {
  std::size_t at = 0;
  for (const Json& layer : layers)
    for (const Json& head : layer.at("heads")) {
      ASSERT_LT(at, cells.size());
      const Json& cell = cells[at++];
      EXPECT_EQ(cell.at("layer"), layer.at("layer"));
      EXPECT_EQ(cell.at("head"), head.at("head"));
      ASSERT_TRUE(cell.at("value").is_number()) << name;
      EXPECT_EQ(cell.at("value").get<double>(), head.at(name).get<double>()) << name;
      expect_reads(cell.at("text"), head.at(name));
    }
  EXPECT_EQ(at, cells.size());
}

void expect_table(const Json& table, const Json& layers) {
  std::size_t row = 0;
  for (const Json& layer : layers)
    for (const Json& head : layer.at("heads")) {
      ASSERT_LT(row, table.at("rows").size());
      const Json& cells = table.at("rows")[row++];
      std::size_t column = 0;
      for (const Json& name : table.at("names")) {
        const Json& expected = name == "layer" ? layer.at("layer") : head.at(name.get<std::string>());
        EXPECT_EQ(cells[column++].get<double>(), expected.get<double>()) << name;
      }
      EXPECT_EQ(column + 1, head.size() + 1) << "every statistic has its column";
    }
  EXPECT_EQ(row, table.at("rows").size());
}

TEST_F(Browser, NumbersOfThePageAreThoseOfTheJson) {
  const Reported reported = report({});
  const Seen seen = look_at(reported.html);
  expect_faultless(seen);
  ASSERT_EQ(seen.page.at("panels").size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json &panel = seen.page.at("panels")[i], &json = reported.json[i];
    EXPECT_THAT(panel.at("heading"), StartsWith("Level: "));
    EXPECT_EQ(panel.at("h75").get<double>(), json.at("verdict").at("h75").get<double>());
    expect_reads(panel.at("h75_text"), json.at("verdict").at("h75"));
    EXPECT_THAT(panel.at("facts"), HasSubstr(json.at("model").get<std::string>()));
    ASSERT_EQ(panel.at("maps").size(), 7U);
    for (const auto& [name, cells] : panel.at("maps").items()) expect_map(cells, json.at("layers"), name);
    expect_table(panel.at("table"), json.at("layers"));
  }
}

TEST_F(Browser, FitsAPhoneAndDrawsEveryPicture) {
  const Seen seen = look_at(report({}).html);
  for (const Json& panel : seen.page.at("panels")) {
    EXPECT_LE(panel.at("width"), seen.page.at("room")) << "no scrolling to the side";
    ASSERT_EQ(panel.at("canvases").size(), 3U);
    for (const Json& canvas : panel.at("canvases")) {
      EXPECT_GT(canvas.at("drawn"), 1000);
      EXPECT_LE(canvas.at("width"), canvas.at("room"));
    }
    for (const Json& head : panel.at("attention")) {
      EXPECT_EQ(head.at("pressed"), "true");
      EXPECT_THAT(head.at("said"), HasSubstr("of its weight to"));
    }
  }
  EXPECT_NE(seen.page.at("theme"), seen.page.at("other_theme"));
  EXPECT_THAT(seen.page.at("tip"), StartsWith("entropy ratio "));
}

TEST_F(Browser, FreshWeightsShowTheSpread) {
  const Reported reported = report({"--fresh"});
  const Seen seen = look_at(reported.html);
  expect_faultless(seen);
  ASSERT_EQ(seen.page.at("panels").size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json &panel = seen.page.at("panels")[i], &json = reported.json[i];
    EXPECT_THAT(panel.at("heading"), StartsWith("Too sharp: "));
    EXPECT_EQ(panel.at("spread").get<double>(), json.at("verdict").at("spread").get<double>());
    EXPECT_TRUE(panel.at("h75").is_null()) << "it is not judged";
    ASSERT_EQ(panel.at("maps").size(), 9U);
    for (const auto& [name, cells] : panel.at("maps").items()) expect_map(cells, json.at("layers"), name);
    expect_table(panel.at("table"), json.at("layers"));
    EXPECT_LE(panel.at("width"), seen.page.at("room"));
  }
}

TEST_F(Browser, ComparesTwoCaptures) {
  const Folder folder;
  write_hostile(folder.file("a"));
  const Seen seen = look_at(report({"--compare", folder.file("a"), "embedded:minilm-l6-qkv.safetensors"}).html);
  expect_faultless(seen);
  ASSERT_EQ(seen.page.at("panels").size(), 3U);
  const Json& both = seen.page.at("panels")[0];
  EXPECT_THAT(both.at("heading"), StartsWith("A and B"));
  ASSERT_EQ(both.at("canvases").size(), 2U);
  for (const Json& canvas : both.at("canvases")) EXPECT_GT(canvas.at("drawn"), 1000);
  for (const Json& panel : seen.page.at("panels")) EXPECT_LE(panel.at("width"), seen.page.at("room"));
  EXPECT_THAT(seen.page.at("panels")[1].at("facts"), StartsWith(hostile));
}

TEST_F(Browser, HostileNamesAreShownAndDoNothing) {
  const Folder folder;
  write_hostile(folder.file("a"));
  write_hostile(folder.file("b<!--"));
  const Seen seen = look_at(report({folder.file("a"), folder.file("b<!--")}).html);
  expect_faultless(seen);
  for (const Json& panel : seen.page.at("panels")) {
    EXPECT_THAT(panel.at("facts"), StartsWith(hostile));
    EXPECT_EQ(panel.at("attention")[0].at("words")[7], hostile);
  }
}

TEST_F(Browser, BrokenAndTinyCapturesAreDrawn) {
  const Folder folder;
  write_broken(folder.file("broken"));
  const Sizes one{2, 1, 4};
  write(folder.file("tiny"), {{"layers.3.q", Tensor(DType::f32, one)}, {"layers.3.k", Tensor(DType::f32, one)}},
        {{"scale", "1"}, {"causal", "true"}});
  const Seen seen = look_at(report({folder.file("broken"), folder.file("tiny")}).html);
  expect_faultless(seen);
  EXPECT_THAT(seen.page.at("panels")[0].at("heading"), StartsWith("Broken: "));
  EXPECT_THAT(seen.page.at("panels")[1].at("heading"), StartsWith("Undecided: "));
  EXPECT_TRUE(seen.page.at("panels")[1].at("h75").is_null());
}

}  // namespace
}  // namespace levelhead::test
