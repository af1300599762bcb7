// `levelhead check --report`: the page holds what --json says, whatever strangers wrote, in a bounded size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "levelhead/verdict.hpp"
#include "report/definitions.hpp"
#include "report/driven.hpp"

namespace levelhead::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

TEST(CheckPage, HoldsTheJsonOfTheSameRun) {
  const Reported reported = report({});
  ASSERT_EQ(reported.json.size(), 2U);
  EXPECT_EQ(reported.data().at("data"), Json(reported.json));
  EXPECT_LT(reported.html.size(), 1'500'000U);
}

TEST(CheckPage, FreshWeightsHaveNoSweep) {
  const Reported reported = report({"--fresh"});
  EXPECT_EQ(reported.data().at("data"), Json(reported.json));
  EXPECT_EQ(reported.block(0, "chart").at("x").at("title"), "expected spread");
  EXPECT_EQ(reported.block(0, "chart").at("series")[0].at("points").size(), 72U);
  EXPECT_EQ(reported.block(0, "head_map").at("quantities")[0].at("name"), "logit_std_within");
  EXPECT_THAT(reported.block(0, "verdict").at("limits").get<std::string>(), HasSubstr("For untrained weights"));
  EXPECT_THAT(reported.html, Not(HasSubstr("multiple of the scale in use")));
}

TEST(CheckPage, ComparedCapturesComeAfterWhatDiffers) {
  const Folder folder;
  write_hostile(folder.file("a"));
  write_hostile(folder.file("b"));
  const Reported reported = report({"--compare", folder.file("a"), folder.file("b")});
  ASSERT_EQ(reported.json.size(), 1U);
  EXPECT_EQ(reported.data().at("data"), reported.json[0].at("captures"));
  const Json tabs = reported.data().at("tabs");
  ASSERT_EQ(tabs.size(), 3U);
  EXPECT_EQ(tabs[0].at("title"), "A and B");
  EXPECT_THAT(tabs[1].at("title").get<std::string>(), ::testing::StartsWith("A: "));
  EXPECT_THAT(tabs[2].at("title").get<std::string>(), ::testing::StartsWith("B: "));
  const Json sides = reported.block(0, "table");
  EXPECT_EQ(sides.at("rows")[0], Json({"model", hostile, hostile}));
  EXPECT_THAT(tabs[0].dump(), HasSubstr("figures are identical"));
  EXPECT_THAT(tabs[0].dump(), HasSubstr("Evidence, never proof"));
  EXPECT_EQ(reported.block(1, "verdict").at("file"), folder.file("a"));
}

TEST(CheckPage, TextAndJsonAreAsWithoutIt) {
  const Folder folder;
  const Finished with = run({"check", "--report", folder.file("page.html")}), without = run({"check"});
  EXPECT_EQ(with.status, 0);
  EXPECT_EQ(with.out, without.out + "Page:   " + folder.file("page.html") + " (open it in a browser)\n");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"page.html"});
}

TEST(CheckPage, SweepAtOneIsTheVerdictAndAtOthersWhatTheyAsk) {
  const Reported reported = report({capture_path("minilm-l6-qkv.safetensors")});
  const Json points = reported.block(0, "chart").at("series")[0].at("points");
  ASSERT_EQ(points.size(), 17U);
  EXPECT_EQ(points[0].at("x"), 0.25);
  EXPECT_EQ(points[16].at("x"), 4);
  for (const std::size_t i : {0U, 5U, 8U, 16U}) {
    const std::string scale = Json(0.17677669529663687 * points[i].at("x").get<double>()).dump();
    const Finished asked = run({"check", capture_path("minilm-l6-qkv.safetensors"), "--scale", scale, "--json", "-"});
    EXPECT_EQ(points[i].at("y"), asked.json().at("verdict").at("h75")) << "at " << scale;
  }
}

TEST(CheckPage, PicturesAreTheWeightsInEightBits) {
  const Reported reported = report({capture_path("smollm2-135m-qkv.safetensors")});
  const Json block = reported.block(0, "attention");
  ASSERT_EQ(block.at("rows"), 128);
  ASSERT_EQ(block.at("keys"), 128);
  EXPECT_EQ(block.at("row_names")[3], " first");
  ASSERT_GE(block.at("heads").size(), 3U);
  for (const Json& head : block.at("heads")) {
    const std::vector<unsigned> bytes = from_base64(head.at("weights"));
    ASSERT_EQ(bytes.size(), 128U * 128U);
    for (std::size_t i = 0; i < 128; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 128; ++j) {
        const double p = std::pow(bytes[i * 128 + j] / 255.0, 2);
        sum += p;
        if (j > i) {
          EXPECT_EQ(p, 0) << "a hidden key";
        }
      }
      // Rounding sqrt(p) by half a step moves p by sqrt(p)/255, so a row of n keys by at most sqrt(n)/255, and a bit.
      EXPECT_NEAR(sum, 1, std::sqrt(static_cast<double>(i + 1)) / 255 + 0.001);
    }
  }
}

TEST(CheckPage, EveryStatisticFlagAndVerdictIsDefined) {
  const Json known = report::definitions_json();
  for_each_head_statistic(HeadStatistics(), [&](std::string_view name, const auto&) {
    EXPECT_TRUE(known.contains(std::string(name))) << name;
  });
  for (const char* name : {"flat", "frozen", "sink", "local", "nan", "empty", "broken", "undecided", "too_sharp",
                           "too_flat", "level", "h75", "expected_spread", "suggested_scale"})
    EXPECT_TRUE(known.contains(name)) << name;
}

TEST(CheckPage, EveryMarkedTermIsDefined) {
  for (const Arguments& arguments : {Arguments{}, Arguments{"--fresh"}, Arguments{"--compare"}}) {
    const Json page = report(arguments).data();
    const std::string text = page.at("tabs").dump();
    std::size_t marks = 0;
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1), ++marks) {
      const std::string term = text.substr(at + 2, text.find(')', at) - at - 2);
      EXPECT_TRUE(page.at("definitions").contains(term)) << term;
    }
    EXPECT_GT(marks, 10U);
  }
}

TEST(CheckPage, HostileNamesStayText) {
  const Folder folder;
  write_hostile(folder.file("<img src=x>&.safetensors"));
  const Reported reported = report({folder.file("<img src=x>&.safetensors")});
  EXPECT_THAT(reported.html, Not(HasSubstr("<img")));
  EXPECT_EQ(reported.data().at("data")[0].at("model"), hostile);
  EXPECT_EQ(reported.block(0, "attention").at("row_names")[1], hostile);
}

TEST(CheckPage, BrokenEmptyAndTinyCaptures) {
  const Folder folder;
  const std::string path = folder.file("capture");
  for (const Sizes& sizes : {Sizes{2, 1, 4}, Sizes{2, 0, 4}, Sizes{1, 3, 0}, Sizes{0, 3, 4}}) {
    write(path, {{"layers.0.q", Tensor(DType::f32, sizes)}, {"layers.0.k", Tensor(DType::f32, sizes)}},
          {{"scale", "0"}, {"causal", "true"}});
    EXPECT_EQ(report({path}).json.at(0).at("verdict").at("name"), "undecided");
  }
  write_broken(path);
  const Reported broken = report({path});
  EXPECT_EQ(broken.json.at(0).at("verdict").at("name"), "broken");
  EXPECT_EQ(from_base64(broken.block(0, "attention").at("heads")[0].at("weights")).size(), 20U * 20U);
}

TEST(CheckPage, NeedsAPlaceToBeWrittenTo) {
  for (const Arguments& arguments : {Arguments{"--report", "-"}, Arguments{"--report", ""},
                                     Arguments{"--report", "/tmp/same", "--json", "/tmp/same"}}) {
    Arguments all{"check"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished result = run(all);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "") << "nothing is measured first";
  }
  const Finished result = run({"check", "--report", "/no/such/folder/page.html"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
}

TEST(CheckPage, ReplacesNothingButAPage) {
  const Folder folder;
  const std::string capture = folder.file("capture");
  write_broken(capture);
  const auto size = std::filesystem::file_size(capture);
  EXPECT_EQ(run({"check", "--report", capture}).status, 2);
  EXPECT_EQ(run({"check", capture, "--report", capture}).status, 2);
  EXPECT_EQ(std::filesystem::file_size(capture), size);
  for (int times = 0; times < 2; ++times)
    EXPECT_EQ(run({"check", capture, "--report", folder.file("p.html")}).status, 0);
}

}  // namespace
}  // namespace levelhead::test
