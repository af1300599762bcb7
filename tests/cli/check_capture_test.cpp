// Captures that strangers made: what is taken, what is refused, what is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/driver.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Tensor normals(Sizes sizes, std::uint64_t seed, DType type = DType::f32) {
  Random random(seed);
  return Tensor(type, std::move(sizes)).fill_normal(random);
}

struct CaptureFile {
  std::vector<FileTensor> tensors;
  Fields metadata{{"scale", "0.25"}, {"causal", "false"}};

  /// `layers` layers of `heads` heads over 20 tokens of dim 16.
  explicit CaptureFile(std::int64_t layers = 2, std::int64_t heads = 9) {
    for (std::int64_t n = 0; n < layers; ++n) {
      const auto seed = static_cast<std::uint64_t>(n);
      const std::string name = "layers." + std::to_string(n);
      tensors.push_back({name + ".q", normals({heads, 20, 16}, 2 * seed)});
      tensors.push_back({name + ".k", normals({heads, 20, 16}, 2 * seed + 1)});
    }
  }
  Tensor& at(const std::string& name) {
    for (FileTensor& tensor : tensors)
      if (tensor.name == name) return tensor.tensor;
    throw std::out_of_range(name);
  }
  void set(const std::string& key, const std::string& value) {
    std::erase_if(metadata, [&](const auto& field) { return field.first == key; });
    metadata.emplace_back(key, value);
  }
};

Finished check(const CaptureFile& file, const Arguments& options = {}) {
  const Folder folder;
  write(folder.file("capture"), file.tensors, file.metadata);
  Arguments arguments{"check", folder.file("capture")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run(arguments);
}

Json json_of(const CaptureFile& file, Arguments options = {}) {
  options.insert(options.end(), {"--json", "-"});
  const Finished result = check(file, options);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.json();
}

void expect_refused(const CaptureFile& file, const std::string& sentence, const Arguments& options = {}) {
  SCOPED_TRACE(sentence);
  const Finished result = check(file, options);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(sentence));
  EXPECT_THAT(result.err, HasSubstr("capture"));
}

TEST(Capture, ModelAndValuesAreOptional) {
  const Json json = json_of(CaptureFile());
  EXPECT_EQ(json.at("model"), nullptr);
  EXPECT_EQ(json.at("scale_is"), Json({"1/sqrt(D)"}));
  EXPECT_EQ(json.at("verdict").at("name"), "level");
}

TEST(Capture, LayersAreSortedByNumber) {
  CaptureFile file(3);
  for (FileTensor& tensor : file.tensors)
    if (tensor.name.starts_with("layers.1.")) tensor.name.replace(7, 1, "10");
  const Json layers = json_of(file).at("layers");
  EXPECT_EQ(layers[1].at("layer"), 2);
  EXPECT_EQ(layers[2].at("layer"), 10);
}

TEST(Capture, OtherTensorsAreSaidAndLeftAlone) {
  CaptureFile file;
  for (const char* name : {"layers.0.o", "layers.01.q", "layers.-1.k", "layers.0.qq", "layers..q", "embed\n"})
    file.tensors.push_back({name, normals({1}, 9)});
  const Finished result = check(file);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("6 tensors"));
  EXPECT_THAT(result.err, HasSubstr("layers.0.o"));
}

TEST(Capture, MetadataScaleAndCausalAreRequiredUnlessGiven) {
  CaptureFile file;
  file.metadata.clear();
  expect_refused(file, "metadata scale is missing: give --scale X, and --causal true or --causal false");
  expect_refused(file, "metadata scale is missing: give --scale X", {"--causal"});
  expect_refused(file, "metadata causal is missing: give --causal true or --causal false", {"--scale", "1"});
  EXPECT_EQ(json_of(file, {"--scale", "0.25", "--causal", "false"}).at("layers"), json_of(CaptureFile()).at("layers"));
  EXPECT_EQ(json_of(file, {"--scale", "0.25", "--causal=false"}).at("layers"), json_of(CaptureFile()).at("layers"));
  EXPECT_EQ(json_of(file, {"--scale", "0.25", "--causal"}).at("layers"),
            json_of(CaptureFile(), {"--causal", "true"}).at("layers"));
  EXPECT_NE(json_of(CaptureFile(), {"--causal", "true"}).at("layers"), json_of(CaptureFile()).at("layers"));
}

TEST(Capture, BadMetadata) {
  const std::vector<std::array<std::string, 3>> all{{"scale", "1/8", "metadata scale is '1/8'"},
                                                    {"scale", "nan", "metadata scale is 'nan'"},
                                                    {"scale", "inf", "metadata scale is 'inf'"},
                                                    {"scale", "", "metadata scale is ''"},
                                                    {"causal", "1", "metadata causal is '1'"},
                                                    {"d_model", "0", "metadata d_model is '0'"},
                                                    {"d_model", "1e3", "metadata d_model is '1e3'"},
                                                    {"layers_of_model", "1", "layers_of_model is 1 but 2 layers"},
                                                    {"layers_of_model", "-4", "layers_of_model is '-4'"},
                                                    {"yarn_mscale", "x", "metadata yarn_mscale is 'x'"},
                                                    {"tokens", "hello", "metadata tokens"},
                                                    {"tokens", "{}", "metadata tokens"},
                                                    {"tokens", "[1, 2]", "metadata tokens"},
                                                    {"tokens", "[\"a\"]", "lists 1 tokens but layers.0.q has 20"}};
  for (const auto& [key, value, sentence] : all) {
    CaptureFile file;
    file.set(key, value);
    expect_refused(file, sentence);
  }
}

TEST(Capture, EmptyTokenListIsAsNone) {
  for (const char* tokens : {"[]", ""}) {
    CaptureFile file;
    file.set("tokens", tokens);
    EXPECT_EQ(check(file).status, 0);
  }
}

TEST(Capture, BadTensors) {
  CaptureFile none;
  none.tensors.clear();
  expect_refused(none, "no tensor layers.N.q");
  CaptureFile lonely;
  lonely.tensors.pop_back();
  expect_refused(lonely, "layers.1.q is there but layers.1.k is not");
  CaptureFile values;
  values.tensors.push_back({"layers.2.v", normals({9, 20, 16}, 1)});
  expect_refused(values, "layers.2.v is there but layers.2.q is not");
  CaptureFile rank;
  rank.at("layers.0.q") = normals({1, 9, 20, 16}, 1);
  expect_refused(rank, "layers.0.q has shape [1, 9, 20, 16]");
  CaptureFile dim;
  dim.at("layers.1.k") = normals({9, 20, 8}, 1);
  expect_refused(dim, "layers.1: ");
  CaptureFile heads;
  heads.at("layers.1.k") = normals({4, 20, 16}, 1);
  expect_refused(heads, "layers.1: ");
  CaptureFile type;
  type.at("layers.1.k") = Tensor(DType::i32, {9, 20, 16});
  expect_refused(type, "layers.1: ");
  CaptureFile v;
  v.tensors.push_back({"layers.0.v", normals({9, 21, 16}, 1)});
  expect_refused(v, "layers.0.v has shape [9, 21, 16] but layers.0.k has [9, 20, 16]");
}

TEST(Capture, CrossAttention) {
  CaptureFile file;
  for (const char* name : {"layers.0.k", "layers.1.k"}) file.at(name) = normals({3, 30, 16}, 5);
  const Json json = json_of(file);
  EXPECT_EQ(json.at("layers")[0].at("heads")[0].at("rows"), 20);
  EXPECT_THAT(json.at("scale_is"), ::testing::ElementsAre("1/sqrt(D)"));
  expect_refused(file, "layers.0 has 20 queries and 30 keys, so causal needs --align", {"--causal"});
  EXPECT_EQ(check(file, {"--causal", "--align", "bottom-right"}).status, 0);
  EXPECT_NE(json_of(file, {"--causal", "--align", "bottom-right"}).at("layers"),
            json_of(file, {"--causal", "--align", "top-left"}).at("layers"));
}

TEST(Capture, NanIsBroken) {
  for (const char* name : {"layers.1.q", "layers.1.k"}) {
    CaptureFile file;
    file.at(name).set({4, 2, 3}, nan);
    const Json json = json_of(file);
    EXPECT_EQ(json.at("verdict").at("name"), "broken");
    EXPECT_TRUE(json.at("verdict").at("h75").is_number());
    EXPECT_EQ(json.at("layers")[1].at("heads")[4].at("nan_rows"), std::string(name).back() == 'q' ? 1 : 20);
    EXPECT_EQ(json.at("layers")[1].at("heads")[3].at("nan_rows"), 0);
    EXPECT_THAT(check(file).out, HasSubstr("layer 1, head 4"));
    EXPECT_EQ(check(file, {"--strict"}).status, 3);
  }
}

// Key 19 is seen by the last row alone.
TEST(Capture, NanInValuesIsBrokenWhereItIsSeen) {
  CaptureFile file;
  file.tensors.push_back({"layers.0.v", normals({9, 20, 5}, 8)});
  EXPECT_EQ(json_of(file, {"--causal"}).at("verdict").at("name"), "level");
  file.at("layers.0.v").set({7, 19, 4}, nan);
  const Json json = json_of(file, {"--causal"});
  EXPECT_EQ(json.at("verdict").at("name"), "broken");
  EXPECT_EQ(json.at("layers")[0].at("heads")[7].at("nan_rows"), 1);
  EXPECT_EQ(json.at("layers")[0].at("heads")[6].at("nan_rows"), 0);
}

TEST(Capture, FewHeadsOrFewKeysAreUndecided) {
  EXPECT_EQ(json_of(CaptureFile(1, 17)).at("verdict").at("name"), "undecided");
  EXPECT_EQ(json_of(CaptureFile(1, 18)).at("verdict").at("name"), "level");
  CaptureFile few(1, 18);
  for (FileTensor& tensor : few.tensors) tensor.tensor = normals({18, 15, 16}, tensor.name.back());
  EXPECT_EQ(json_of(few).at("verdict").at("name"), "undecided");
}

// Enough heads and keys, so that only the selection stands in the way.
TEST(Capture, PartsAreUndecidedHoweverLarge) {
  for (const Arguments& part : {Arguments{"--layer", "0"}, Arguments{"--head", "0"}}) {
    const Json verdict = json_of(part[0] == "--layer" ? CaptureFile(2, 18) : CaptureFile(18, 2), part).at("verdict");
    EXPECT_EQ(verdict.at("name"), "undecided");
    EXPECT_THAT(verdict.at("reason").get<std::string>(), HasSubstr("asked for"));
  }
  EXPECT_EQ(json_of(CaptureFile(1, 18), {"--layer", "0"}).at("verdict").at("name"), "level");  // which is all of it
}

TEST(Capture, NoTokens) {
  CaptureFile file(1, 2);
  for (FileTensor& tensor : file.tensors) tensor.tensor = Tensor(DType::f32, {2, 0, 16});
  const Json json = json_of(file);
  EXPECT_EQ(json.at("verdict").at("name"), "undecided");
  EXPECT_EQ(json.at("verdict").at("h75"), nullptr);
  EXPECT_THAT(json.at("layers")[0].at("heads")[0].at("flags"), ::testing::ElementsAre("empty"));
  EXPECT_EQ(check(file).status, 0);
}

TEST(Capture, FromSomeOfTheLayers) {
  CaptureFile file;
  file.set("layers_of_model", "24");
  EXPECT_THAT(check(file).out, HasSubstr("Verdict: level, from 2 of 24 layers"));
  file.set("layers_of_model", "2");
  EXPECT_THAT(check(file).out, HasSubstr("Verdict: level\n"));
}

TEST(Capture, YarnAndModelSizeAreNamed) {
  CaptureFile file;
  file.set("yarn_mscale", "1.2");
  file.set("d_model", "144");
  EXPECT_EQ(json_of(file, {"--scale", "0.36"}).at("scale_is"), Json({"1/sqrt(D) times the square of the YaRN mscale"}));
  EXPECT_EQ(json_of(file, {"--scale", "0.08333333"}).at("scale_is"), Json({"1/sqrt(d_model)"}));
}

TEST(Capture, TextOfStrangersIsEscaped) {
  CaptureFile file;
  file.set("model", "evil\x1b[2J\n\u202egpj.exe");
  std::string tokens = "[";
  for (int i = 0; i < 20; ++i) tokens += std::string(i == 0 ? "" : ", ") + "\"\\u001b[31m\\n\\u202e\"";
  file.set("tokens", tokens + "]");
  const Finished result = check(file, {"--head", "0"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.out, Not(HasSubstr("\u202e")));
  EXPECT_THAT(result.out, HasSubstr("\\u{202e}"));
  EXPECT_EQ(json_of(file).at("model"), "evil\x1b[2J\n\u202egpj.exe");  // JSON has its own escapes
}

TEST(Capture, EveryFloatingType) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    CaptureFile file;
    for (FileTensor& tensor : file.tensors) tensor.tensor = tensor.tensor.as(type);
    EXPECT_NEAR(json_of(file).at("verdict").at("h75").get<double>(),
                json_of(CaptureFile()).at("verdict").at("h75").get<double>(), 2e-3);
  }
}

}  // namespace
}  // namespace levelhead::test
