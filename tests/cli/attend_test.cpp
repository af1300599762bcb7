// `levelhead attend` writes what the library computes, under the literal names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/attend_case.hpp"
#include "support/oracle.hpp"

namespace levelhead::test {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> row_statistics_names{"count",     "mean",         "variance",        "max",
                                                    "min",       "absmax",       "absmax_uncapped", "lse",
                                                    "entropy",   "entropy_sink", "effective_keys",  "perplexity",
                                                    "top1",      "trace_gain",   "frobenius_gain",  "first_key_mass",
                                                    "sink_mass", "saturated"};

/// Runs attend on the case with the reference kernel; returns the output's tensors.
std::map<std::string, Tensor> attend(const std::vector<FileTensor>& tensors, const Arguments& options,
                                     const std::string& kernel = "reference") {
  const Folder folder;
  write(folder.file("in"), tensors);
  Arguments arguments{"attend", "--input", folder.file("in"), "--output", folder.file("out"), "--kernel", kernel};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Finished result = run(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.status == 0 ? read(folder.file("out")) : std::map<std::string, Tensor>{};
}

std::set<std::string> names(const std::map<std::string, Tensor>& tensors) {
  std::set<std::string> all;
  for (const auto& [name, tensor] : tensors) all.insert(name);
  return all;
}

class AttendType : public ::testing::TestWithParam<DType> {};

TEST_P(AttendType, WritesWhatTheLibraryComputes) {
  Case c = Case::random(GetParam(), {2, 4, 2, 5, 7, 6, 3}, 1);
  const auto out = attend(tensors_of(c), {});
  EXPECT_EQ(names(out), (std::set<std::string>{"o", "lse"}));
  const Forward want = forward(c, "reference");
  EXPECT_TRUE(same_bits(out.at("o"), want.o));
  EXPECT_EQ(out.at("o").dtype(), GetParam());
  EXPECT_TRUE(same_bits(out.at("lse"), want.lse));
  EXPECT_EQ(out.at("lse").dtype(), side_type(GetParam()));
}

TEST_P(AttendType, WritesEveryStatistic) {
  Case c = Case::random(GetParam(), {1, 4, 2, 5, 5, 6, 3}, 2);
  c.window = Window::causal();
  c.sinks = c.side({4}, {0, 1, -1, 2});
  c.mask = Tensor(DType::boolean, {5, 1}, {0, 1, 1, 1, 1});  // row 0 is empty
  const auto out = attend(tensors_of(c), {"--stats", "--causal"});
  std::set<std::string> expected{"o", "lse"};
  for (const std::string& name : row_statistics_names) expected.insert("stats." + name);
  ASSERT_EQ(names(out), expected);

  const Oracle oracle = materialise(c);
  for (std::size_t row = 0; row < oracle.rows.size(); ++row)
    for_each_statistic(oracle.rows[row], [&](std::string_view name, auto want) {
      const Tensor& tensor = out.at("stats." + std::string(name));
      EXPECT_EQ(tensor.sizes(), (Sizes{1, 4, 5}));
      const auto x = static_cast<double>(want);
      const double tolerance =
          statistic_tolerance(name, side_type(c.dtype), Precision::exact, x, oracle.magnitude[row]);
      EXPECT_TRUE(near(tensor.flat(static_cast<std::int64_t>(row)), x, name == "count" ? 0 : tolerance))
          << name << " of row " << row;
    });
  EXPECT_EQ(out.at("stats.count").dtype(), DType::i64);
  EXPECT_EQ(out.at("stats.saturated").dtype(), DType::boolean);
  EXPECT_EQ(out.at("stats.entropy").dtype(), side_type(GetParam()));
  EXPECT_EQ(out.at("stats.count").flat(0), 0);
}

Case with_everything(DType type) {
  Case c = Case::random(type, {1, 4, 2, 5, 5, 6, 3}, 3);
  Random random(4);
  c.bias = Tensor(side_type(type), {4, 1, 5}).fill_normal(random);
  c.slopes = c.side({4}, {0.5, 0.25, 0.125, 0.0625});
  c.sinks = c.side({4}, {0, 1, -1, 2});
  return c;
}

TEST_P(AttendType, WritesGradientsUnderTheirNames) {
  struct {
    Policy policy;
    Arguments options;
    std::string gradient;
    Sizes sizes;
  } const cases[]{{Policy::per_head, {}, "dscale", {4}},
                  {Policy::per_row, {}, "dscale", {1, 4, 5}},
                  {Policy::ssmax, {"--scale", "ssmax"}, "dssmax_s", {4}},
                  {Policy::qk_l2, {"--qk-norm", "l2"}, "dqk_gain", {4}},
                  {Policy::qk_rms, {"--qk-norm", "rms"}, "dqk_gain", {4}}};
  for (const auto& [policy, options, gradient, sizes] : cases) {
    SCOPED_TRACE(gradient);
    Case c = with_everything(GetParam());
    c.policy = policy;
    Random random(5);
    c.scale_values = Tensor(side_type(GetParam()), sizes).fill_normal(random);
    const Upstream upstream = Upstream::random(c, 6);
    const auto out = attend(tensors_of(c, upstream), options);
    EXPECT_EQ(names(out),
              (std::set<std::string>{"o", "lse", "dq", "dk", "dv", "dbias", "dsinks", "dslopes", gradient}));
    const Backward want = backward(c, forward(c, "reference"), upstream, "reference");
    for (const auto& [name, tensor] : want.gradients) {
      ASSERT_TRUE(out.contains(name)) << name;
      EXPECT_TRUE(same_bits(out.at(name), tensor)) << name;
      EXPECT_EQ(out.at(name).dtype(), tensor.dtype()) << name;
    }
    EXPECT_EQ(out.at("dbias").sizes(), (Sizes{4, 1, 5}));
  }
}

TEST_P(AttendType, RankThreeIsABatchOfOne) {
  Case c = with_everything(GetParam());
  c.policy = Policy::per_row;
  Random random(7);
  c.scale_values = Tensor(side_type(GetParam()), {1, 4, 5}).fill_normal(random);
  const Upstream upstream = Upstream::random(c, 8);
  std::vector<FileTensor> tensors = tensors_of(c, upstream);
  for (auto& [name, tensor, shape] : tensors)
    if (tensor.sizes().front() == 1) tensor = without_batch(tensor);
  const auto out = attend(tensors, {"--stats"}), want = attend(tensors_of(c, upstream), {"--stats"});
  ASSERT_EQ(names(out), names(want));
  for (const auto& [name, tensor] : want)
    EXPECT_TRUE(same_bits(out.at(name), name == "dscale" ? without_batch(tensor) : tensor)) << name;
  EXPECT_EQ(out.at("o").sizes(), (Sizes{1, 4, 5, 3}));
}

INSTANTIATE_TEST_SUITE_P(All, AttendType, ::testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return std::string(levelhead::name_of(param.param)); });

struct Option {
  Arguments arguments;
  std::function<void(Case&)> change;
};

// Each spelling of an option gives the bits of the options it stands for.
TEST(Attend, OptionsMeanWhatTheyStandFor) {
  const auto scale = [](Scale s) { return [s](Case& c) { c.scale = s; }; };
  const auto window = [](Window w) { return [w](Case& c) { c.window = w; }; };
  const std::vector<Option> options{
      {{"--scale", "inv-sqrt-dim"}, scale(InvSqrtDim{})},
      {{"--scale", "none"}, scale(Constant{1})},
      {{"--scale", "0"}, scale(Constant{0})},
      {{"--scale", "-0.5"}, scale(Constant{-0.5})},
      {{"--scale=-0.5"}, scale(Constant{-0.5})},
      {{"--scale", "2.5e-1"}, scale(Constant{0.25})},
      {{"--scale", "inv-dim"}, scale(InvDim{1})},
      {{"--scale", "inv-dim:4"}, scale(InvDim{4})},
      {{"--scale", "log-keys:2.5"}, scale(LogKeys{2.5})},
      {{"--scale", "yarn:8"}, scale(Yarn{8, 1})},
      {{"--scale", "yarn:8,0.707"}, scale(Yarn{8, 0.707})},
      {{"--qk-norm", "l2"}, [](Case& c) { c.policy = Policy::qk_l2; }},
      {{"--qk-norm", "rms"}, [](Case& c) { c.policy = Policy::qk_rms; }},
      {{"--softcap", "1.5"}, [](Case& c) { c.softcap = 1.5; }},
      {{"--causal", "--align", "bottom-right"}, window(Window::causal(Align::bottom_right()))},
      {{"--causal", "--align", "top-left"}, window(Window::causal(Align::top_left()))},
      {{"--causal", "--align", "-2"}, window(Window::causal(Align::at(-2)))},
      {{"--causal", "--align", "3"}, window(Window::causal(Align::at(3)))},
      {{"--window", "2,1", "--align", "top-left"}, window(Window::sliding(2, 1, Align::top_left()))},
      {{"--window", "inf,1", "--align", "top-left"}, window(Window::sliding({}, 1, Align::top_left()))},
      {{"--window", "0,inf", "--align", "top-left"}, window(Window::sliding(0, {}, Align::top_left()))},
      {{"--window", "2,5", "--causal", "--align", "top-left"}, window(Window::sliding(2, 0, Align::top_left()))},
      {{"--window", "2,inf", "--causal", "--align", "top-left"}, window(Window::sliding(2, 0, Align::top_left()))}};
  for (const auto& [arguments, change] : options) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    Case c = Case::random(DType::f32, {1, 2, 1, 6, 8, 4, 3}, 9);
    const auto out = attend(tensors_of(c), arguments);
    change(c);
    const Forward want = forward(c, "reference");
    ASSERT_TRUE(out.contains("o"));
    EXPECT_TRUE(same_bits(out.at("o"), want.o));
    EXPECT_TRUE(same_bits(out.at("lse"), want.lse));
  }
}

TEST(Attend, EveryInputTensorIsUsed) {
  Case c = Case::random(DType::f32, {2, 2, 1, 6, 6, 4, 3}, 10);
  c.q_lengths = Tensor(DType::i32, {2}, {4, 6});
  c.k_lengths = Tensor(DType::i64, {2}, {4, 6});
  Case packed = Case::random(DType::f32, {1, 2, 1, 6, 6, 4, 3}, 11);
  packed.q_offsets = packed.k_offsets = Tensor(DType::i64, {3}, {0, 2, 6});
  for (const Case& x : {c, packed}) {
    const auto out = attend(tensors_of(x), {});
    EXPECT_TRUE(same_bits(out.at("o"), forward(x, "reference").o));
  }
}

TEST(Attend, TensorScaleOverridesTheOption) {
  Case c = Case::random(DType::f32, {1, 2, 2, 4, 4, 4, 4}, 12);
  c.policy = Policy::per_head;
  c.scale_values = c.side({2}, {0.5, 2});
  EXPECT_TRUE(same_bits(attend(tensors_of(c), {"--scale", "none"}).at("o"), forward(c, "reference").o));
}

TEST(Attend, SizesOfZero) {
  const std::vector<Shape> shapes{{0, 2, 1, 3, 3, 4, 2}, {1, 0, 0, 3, 3, 4, 2}, {1, 2, 1, 0, 3, 4, 2},
                                  {1, 2, 1, 3, 0, 4, 2}, {1, 2, 1, 3, 3, 0, 2}, {1, 2, 1, 3, 3, 4, 0}};
  for (const Shape& s : shapes) {
    const Case c = Case::random(DType::f32, s, 13);
    const auto out = attend(tensors_of(c, Upstream::random(c, 14)), {"--stats", "--json"});
    EXPECT_EQ(out.at("o").sizes(), (Sizes{s.B, s.Hq, s.Nq, s.Dv}));
    EXPECT_EQ(out.at("dk").sizes(), (Sizes{s.B, s.Hk, s.Nk, s.D}));
    EXPECT_EQ(out.at("stats.entropy").sizes(), (Sizes{s.B, s.Hq, s.Nq}));
  }
}

nlohmann::json attend_json(const Case& c, const Upstream& upstream, const Arguments& options) {
  const Folder folder;
  write(folder.file("in"), tensors_of(c, upstream));
  Arguments arguments{"attend", "--input", folder.file("in"), "--output", folder.file("out"), "--json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Finished result = run(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.lines().size(), 1U);
  return result.json();
}

TEST(Attend, SplitsGiveTheSameWithinTheErrorWhateverTheirNumber) {
  const Case c = Case::random(DType::f32, {1, 4, 2, 70, 700, 24, 20}, 15);
  const Forward want = forward(c, "reference");
  for (const char* const n : {"1", "2", "5", "11", "1000"}) {
    const auto out = attend(tensors_of(c), {"--splits", n}, "portable-decode");
    EXPECT_TRUE(near(out.at("o"), want.o, 2e-6, 2e-6)) << n;
    EXPECT_TRUE(near(out.at("lse"), want.lse, 2e-6, 2e-6)) << n;
  }
  const nlohmann::json run = attend_json(c, {}, {"--splits", "3"});
  EXPECT_EQ(run.at("kernel"), "portable-split");
  EXPECT_NE(run.at("reason").get<std::string>().find("splits keys"), std::string::npos);
}

TEST(Attend, JsonSaysHowItWasComputed) {
  const Case c = Case::random(DType::f32, {1, 2, 2, 4, 6, 4, 5}, 15);
  const auto json = attend_json(c, Upstream::random(c, 16), {"--kernel", "reference", "--threads", "2"});
  EXPECT_EQ(json.size(), 7U);
  for (const auto& pass : {json, json.at("backward")}) {
    EXPECT_EQ(pass.at("kernel"), "reference");
    EXPECT_THAT(pass.at("reason").get<std::string>(), HasSubstr("by name"));
    EXPECT_EQ(pass.at("threads"), 2);
    EXPECT_GE(pass.at("seconds").get<double>(), 0);
    EXPECT_TRUE(pass.at("workspace_bytes").is_number_unsigned());
  }
  EXPECT_EQ(json.at("flops"), 2 * 4 * 6 * 2 * (4 + 5));
}

TEST(Attend, JsonHeadsArePooledOverTheBatch) {
  Case c = Case::random(DType::f64, {2, 2, 1, 5, 5, 4, 3}, 17);
  c.q.set({0, 1, 2, 0}, std::numeric_limits<double>::quiet_NaN());
  const auto json = attend_json(c, {}, {"--stats"});
  ASSERT_EQ(json.at("heads").size(), 2U);
  EXPECT_EQ(json.at("heads")[1].at("head"), 1);
  EXPECT_EQ(json.at("heads")[0].at("rows"), 10);
  EXPECT_EQ(json.at("heads")[0].at("nan_rows"), 0);
  EXPECT_EQ(json.at("heads")[1].at("nan_rows"), 1);
  EXPECT_THAT(json.at("heads")[1].at("flags"), ::testing::Contains("nan"));
  EXPECT_FALSE(json.contains("backward"));
  EXPECT_FALSE(attend_json(c, {}, {}).contains("heads"));
}

TEST(Attend, JsonLeavesOutWhatIsAbsent) {
  const Case c = Case::random(DType::f32, {1, 1, 1, 3, 1, 4, 3}, 18);  // one key: no ratio, no z
  const auto head = attend_json(c, {}, {"--stats"}).at("heads")[0];
  EXPECT_FALSE(head.contains("z") || head.contains("entropy_ratio") || head.contains("saturated"));
  EXPECT_EQ(head.at("top1"), 1);
}

TEST(Attend, TextNamesTheKernelsThatRan) {
  const Case c = Case::random(DType::f32, {1, 1, 1, 3, 3, 4, 3}, 19);
  const Folder folder;
  write(folder.file("in"), tensors_of(c, Upstream::random(c, 20)));
  const Finished result =
      run({"attend", "--input", folder.file("in"), "--output", folder.file("out"), "--kernel", "reference"});
  ASSERT_EQ(result.lines().size(), 2U) << result.out;
  EXPECT_THAT(result.lines()[0], HasSubstr("forward: reference (asked for by name"));
  EXPECT_THAT(result.lines()[1], HasSubstr("backward: reference (asked for by name"));
}

TEST(Attend, OutputMayBeStandardOutput) {
  const Case c = Case::random(DType::f32, {1, 1, 1, 3, 3, 4, 3}, 22);
  const Folder folder;
  write(folder.file("in"), tensors_of(c));
  const Finished result =
      run({"attend", "--input", folder.file("in"), "--output", "/dev/stdout"}, {}, folder.file("out"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(names(read(folder.file("out"))), (std::set<std::string>{"o", "lse"}));
}

}  // namespace
}  // namespace levelhead::test
