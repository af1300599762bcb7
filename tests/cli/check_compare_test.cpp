// `levelhead check --compare A B`: two captures side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/made_capture.hpp"
#include "cli/text.hpp"

namespace levelhead::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Finished compare(const Arguments& more, const Environment& environment = {}) {
  Arguments arguments{"check", "--compare"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(arguments, environment);
}

Json compare_json(Arguments more) {
  more.insert(more.end(), {"--json", "-"});
  const Finished result = compare(more);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.lines().size(), 1U);
  return result.json();
}

// The same q and k, but for one head that looks the same way twice as hard.
struct Changed {
  Folder folder;
  std::string a = folder.file("a"), b = folder.file("b");

  Changed() {
    const FreshCapture capture{.layers = 3, .heads = 8, .tokens = 20, .D = 16};
    capture.write(a, 0.25);
    auto tensors = read(a);
    Tensor& q = tensors.at("layers.1.q");
    for (std::int64_t n = 5 * 20 * 16; n < 6 * 20 * 16; ++n) q.set_flat(n, 2 * q.flat(n));
    std::vector<FileTensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back({name, tensor});
    write(b, list, {{"scale", "0.25"}, {"causal", "false"}});
  }
};

TEST(CheckCompare, JsonHoldsBothObjectsAndTheChanges) {
  const Changed files;
  const Json json = compare_json({files.a, files.b});
  ASSERT_EQ(json.at("captures").size(), 2U);
  EXPECT_EQ(json.at("captures")[0], check_json({files.a}));
  EXPECT_EQ(json.at("captures")[1], check_json({files.b}));

  const Json& compared = json.at("compare");
  EXPECT_EQ(compared.at("identical"), false);
  EXPECT_THAT(compared.at("differs"), ElementsAre());
  EXPECT_THAT(compared.at("unmatched"), ElementsAre());
  ASSERT_EQ(compared.at("heads").size(), 24U);
  const Json& first = compared.at("heads")[0];
  EXPECT_EQ(first.at("layer"), 1);
  EXPECT_EQ(first.at("head"), 5);
  const auto ratio = [&](int side) {
    return json.at("captures")[side].at("layers")[1].at("heads")[5].at("entropy_ratio").get<double>();
  };
  EXPECT_EQ(first.at("entropy_ratio"), Json({ratio(0), ratio(1)}));
  EXPECT_EQ(first.at("change"), ratio(1) - ratio(0));
  EXPECT_LT(first.at("change"), -0.1);
  for (int i = 1; i < 24; ++i) EXPECT_EQ(compared.at("heads")[i].at("change"), 0);
  EXPECT_EQ(compared.at("layers").size(), 3U);
  EXPECT_NEAR(compared.at("layers")[1].at("entropy_ratio")[1].get<double>() -
                  compared.at("layers")[1].at("entropy_ratio")[0].get<double>(),
              first.at("change").get<double>() / 8, 1e-12);
}

TEST(CheckCompare, TextNamesTheHeadsThatChanged) {
  const Changed files;
  const Finished result = compare({files.a, files.b});
  EXPECT_EQ(result.status, 0) << result.err;
  std::vector<std::string> lines;
  for (const std::string& line : result.lines())
    if (line.starts_with("    0  ") || line.starts_with("    1  ") || line.starts_with("    2  "))
      lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], ::testing::ContainsRegex("0\\.00$"));
  EXPECT_THAT(lines[1], ::testing::ContainsRegex("   5 -0\\.[0-9]+$"));
  const std::string text = unwrapped(result.out);
  EXPECT_THAT(text, HasSubstr("Changed most, by entropy ratio: layer 1, head 5, 0."));
  EXPECT_THAT(text, HasSubstr("A and B have the same layers, heads, tokens, D, scale and causality. "));
  EXPECT_THAT(text, HasSubstr("Verdict of A: level, H75 0."));
  EXPECT_THAT(text, HasSubstr("Verdict of B: level, H75 0."));
  EXPECT_THAT(text, HasSubstr("against A)"));
  EXPECT_THAT(text, HasSubstr("Evidence, never proof"));
  EXPECT_THAT(text, Not(HasSubstr("identical")));
}

TEST(CheckCompare, IdenticalFiguresAreSaidToBe) {
  const Changed files;
  EXPECT_THAT(unwrapped(compare({files.a, files.a}).out), HasSubstr("Their figures are identical"));
  EXPECT_THAT(unwrapped(compare({files.a, files.a}).out), HasSubstr("No head changed by 0.005 or more."));
  EXPECT_EQ(compare_json({files.a, files.a}).at("compare").at("identical"), true);
  EXPECT_EQ(compare_json({capture_path("minilm-l6-qkv.safetensors"), encoder}).at("compare").at("identical"), true)
      << "an embedded capture by its name";
}

TEST(CheckCompare, WhatDiffersAndWhatCannotBeMatchedIsSaid) {
  const std::string text = unwrapped(compare({encoder, decoder}).out);
  for (const char* part :
       {"differ in: the model; scale 0.176777 and 0.125; causal in B alone; layers 6 and 10; heads 12 and 9; heads for "
        "keys 12 and 3; tokens 96 and 128; D 32 and 64; the text. ",
        "Not matched: layers 1 2 4 5 only in A; layers 6 9 12 15 18 21 24 27 only in B; the heads of layers 0 3, where "
        "A and B have different numbers of them. "})
    EXPECT_THAT(text, HasSubstr(part)) << text;
  EXPECT_THAT(text, Not(HasSubstr("Changed most")));
  EXPECT_EQ(compare({}).out, compare({encoder, decoder}).out) << "without FILE both embedded captures";
  const Json layer = compare_json({encoder, decoder}).at("compare").at("layers")[1];
  EXPECT_EQ(layer.at("layer"), 1);
  EXPECT_TRUE(layer.at("z")[0].is_number());
  EXPECT_EQ(layer.at("z")[1], nullptr);
}

TEST(CheckCompare, NoLayerInBoth) {
  const Changed files;
  std::vector<FileTensor> moved;
  for (const auto& [name, tensor] : read(files.a)) moved.push_back({"layers.1" + name.substr(7), tensor});
  write(files.b, moved, {{"scale", "0.25"}, {"causal", "true"}});
  const std::string text = unwrapped(compare({files.a, files.b}).out);
  EXPECT_THAT(text, HasSubstr("Not matched: no layer is in both; layers 0-2 only in A; layers 10-12 only in B."));
  EXPECT_THAT(text, HasSubstr("A and B differ in: causal in B alone."));
}

TEST(CheckCompare, OtherOptionsHoldForBoth) {
  const Changed files;
  EXPECT_EQ(compare({files.a, files.b, "--strict"}).status, 0);
  EXPECT_EQ(compare({files.a, files.b, "--strict", "--scale", "8"}).status, 3);
  EXPECT_EQ(compare({encoder, files.a, "--strict", "--scale", "0.25"}).status, 0);
  EXPECT_EQ(compare({encoder, files.a, "--strict", "--scale", "0.03125"}).status, 3) << "one is enough";

  const Json fresh = compare_json({files.a, files.b, "--fresh"});
  EXPECT_EQ(fresh.at("captures")[0].at("verdict").at("rule"), "fresh");
  EXPECT_EQ(fresh.at("compare").at("heads")[0].at("logit_std_within").size(), 2U);
  EXPECT_THAT(unwrapped(compare({files.a, files.b, "--fresh"}).out),
              HasSubstr("Changed most, by spread: layer 1, head 5"));
  EXPECT_THAT(unwrapped(compare({files.a, files.b, "--fresh"}).out), HasSubstr("H75 is not judged"));
}

TEST(CheckCompare, WrongUseIsStatusTwo) {
  const std::vector<std::pair<Arguments, std::string>> all{
      {{encoder}, "--compare needs two files, A and B (or none"},
      {{encoder}, "but 1 is given"},
      {{encoder, decoder, encoder}, "but 3 are given"},
      {{encoder, decoder, "--layer", "0"}, "leave out --layer"},
      {{encoder, decoder, "--head", "0"}, "leave out --layer, --head"},
      {{encoder, decoder, "--heads"}, "and --heads"}};
  for (const auto& [arguments, sentence] : all) {
    SCOPED_TRACE(sentence);
    const Finished result = compare(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(sentence));
  }
  const Folder folder;
  EXPECT_EQ(compare({encoder, folder.file("none")}).status, 1);
  EXPECT_EQ(compare({encoder, "embedded:none"}).status, 1);
}

TEST(CheckCompare, TextFitsTheColumnsWithAndWithoutUtf8) {
  const Changed files;
  for (const char* columns : {"40", "80", "120"})
    for (const Arguments& both : {Arguments{encoder, decoder}, Arguments{encoder, encoder, "--fresh", "--scale", "1"}})
      for (const std::string& line : compare(both, {{"COLUMNS", columns}}).lines()) {
        EXPECT_LT(characters(line), std::max(60UL, std::stoul(columns))) << line;  // 60 is the least it sets text for
        EXPECT_FALSE(line.ends_with(' ')) << line;
      }
  const Finished ascii = compare({files.a, files.b}, {{"LC_ALL", "C"}, {"COLUMNS", "40"}});
  for (const char c : ascii.out) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << ascii.out;
}

TEST(CheckCompare, TextOfStrangersIsEscaped) {
  const Folder folder;
  FreshCapture capture{.layers = 1, .heads = 2, .tokens = 20, .D = 4};
  capture.metadata.emplace_back("model", "evil\x1b[2J\n\u202egpj.exe");
  capture.write(folder.file("a\x1b[2J"), 0.5);
  const Finished result = compare({folder.file("a\x1b[2J"), encoder});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.out, Not(HasSubstr("\u202e")));
  EXPECT_THAT(result.out, HasSubstr("\\u{202e}"));
}

// A NaN is no change, and the same NaN twice is the same figure.
TEST(CheckCompare, BrokenCaptures) {
  const Changed files;
  auto tensors = read(files.a);
  tensors.at("layers.0.q").set({3, 2, 1}, std::nan(""));
  std::vector<FileTensor> list;
  for (const auto& [name, tensor] : tensors) list.push_back({name, tensor});
  write(files.b, list, {{"scale", "0.25"}, {"causal", "false"}});
  const std::string text = unwrapped(compare({files.a, files.b}).out);
  EXPECT_THAT(text, HasSubstr("Verdict of B: broken, H75 0."));
  EXPECT_THAT(text, HasSubstr("1 row of 1 head holds a visible NaN"));
  const Json json = compare_json({files.a, files.b}).at("compare");
  EXPECT_EQ(json.at("heads").size(), 23U);
  EXPECT_EQ(json.at("layers")[0].at("entropy_ratio")[1], nullptr);
  EXPECT_EQ(compare_json({files.b, files.b}).at("compare").at("identical"), true);
}

}  // namespace
}  // namespace levelhead::test
