// Every figure of every head of both captures, against an independent materialised computation in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>

#include "cli/driver.hpp"
#include "support/head_oracle.hpp"
#include "support/not_finite.hpp"

namespace levelhead::test {
namespace {

using Json = nlohmann::json;

Tensor with_batch(const Tensor& tensor) {
  Sizes sizes = tensor.sizes();
  sizes.insert(sizes.begin(), 1);
  Tensor batched(DType::f64, sizes);
  for (std::int64_t n = 0; n < tensor.elements(); ++n) batched.set_flat(n, tensor.flat(n));
  return batched;
}

Case layer_case(const std::map<std::string, Tensor>& tensors, std::int64_t layer, double scale, bool causal) {
  const std::string name = "layers." + std::to_string(layer) + ".";
  Case c;
  c.q = with_batch(tensors.at(name + "q"));
  c.k = with_batch(tensors.at(name + "k"));
  c.v = with_batch(tensors.at(name + "v"));
  c.shape = {1, c.q.sizes()[1], c.k.sizes()[1], c.q.sizes()[2], c.k.sizes()[2], c.q.sizes()[3], c.v.sizes()[3]};
  c.scale = Constant{scale};
  c.window = causal ? Window::causal() : Window::all();
  return c;
}

/// What docs/numbers.md allows the rows of a head, by statistic: the mean and the largest.
struct RowTolerance {
  std::map<std::string, double> mean, largest;
  double flips = 0;  // share of rows whose saturated flag may differ
};

RowTolerance row_tolerance(const Oracle& oracle, std::int64_t h) {
  RowTolerance t;
  const auto rows = static_cast<double>(oracle.shape.Nq);
  for (std::int64_t i = 0; i < oracle.shape.Nq; ++i) {
    const double L = oracle.magnitude[oracle.row_index(0, h, i)];
    const RowStatistics& row = oracle.row(h, i);
    const auto bound = [&](std::string_view name, double x) {
      return statistic_tolerance(name, DType::bf16, Precision::exact, x, L);
    };
    for_each_statistic(row, [&](std::string_view name, auto value) {
      const auto x = static_cast<double>(value);
      double b = bound(name, x);
      if (name == "frobenius_gain") b = std::min(bound(name, x * x) / x, std::sqrt(bound(name, x * x)));
      t.mean[std::string(name)] += b / rows;
      t.largest[std::string(name)] = std::max(t.largest[std::string(name)], b);
    });
    if (row.count >= 2) t.mean["entropy_ratio"] += bound("entropy", row.entropy) / std::log(row.count) / rows;
    if (std::abs(row.top1 - 0.99) <= bound("top1", row.top1)) t.flips += 1 / rows;
  }
  return t;
}

// The pooled variance moves by that of its rows, and by how far their means move against each other.
double tolerance_of(const std::string& name, double x, const RowTolerance& t, const ExpectedHead& want) {
  if (name == "rows" || name == "empty_rows" || name == "nan_rows") return 0;
  if (name == "saturated") return t.flips * 1.1;
  if (name == "logit_mean") return t.largest.at("mean");
  if (name == "logit_std") return (t.largest.at("variance") + 4 * x * t.largest.at("mean")) / (2 * x);
  if (name == "logit_std_within") return t.largest.at("variance") / x;
  if (name == "z") return tolerance_of("logit_std_within", want.values.at("logit_std_within"), t, want);
  if (name == "logit_max") return t.largest.at("max");
  if (name == "logit_min") return t.largest.at("min");
  if (name == "absmax_uncapped") return t.largest.at(name);
  if (name.starts_with("entropy_q")) return t.largest.at("entropy");
  if (name.starts_with("top1_q")) return t.largest.at("top1");
  return 2 * t.mean.at(name);  // 2: means over rows of n >= 2 have a few rows less
}

/// Returns the entropy ratio.
double expect_head(const Json& head, const Oracle& oracle) {
  const auto h = head.at("head").get<std::int64_t>();
  SCOPED_TRACE("head " + std::to_string(h));
  const ExpectedHead want = expected_head(oracle, h);
  const RowTolerance tolerance = row_tolerance(oracle, h);
  EXPECT_EQ(head.size(), want.values.size() + 2);  // and head, flags
  for (const auto& [name, x] : want.values) {
    EXPECT_TRUE(head.contains(name)) << name;
    EXPECT_TRUE(near(head.value(name, nan), x, tolerance_of(name, x, tolerance, want))) << name;
  }
  std::vector<std::string> flags;
  if (want.values.at("entropy_ratio") > 0.9) flags.emplace_back("flat");
  if (want.values.at("saturated") > 0.5) flags.emplace_back("frozen");
  if (want.values.at("first_key_mass") > 0.5) flags.emplace_back("sink");
  if (want.adjacent_mass > 0.5) flags.emplace_back("local");
  EXPECT_EQ(head.at("flags").get<std::vector<std::string>>(), flags);
  return want.values.at("entropy_ratio");
}

struct Captured {
  std::string file;
  std::string scale;
  bool causal;
  std::size_t layers, heads;
};

void PrintTo(const Captured& x, std::ostream* out) { *out << x.file << " at " << x.scale; }

class CheckHeads : public ::testing::TestWithParam<Captured> {};

TEST_P(CheckHeads, AgreeWithTheDefinitions) {
  const auto& [file, scale, causal, layers, heads] = GetParam();
  const auto tensors = read(capture_path(file));
  const Json json = run({"check", capture_path(file), "--scale", scale, "--json", "-"}).json();
  ASSERT_EQ(json.at("layers").size(), layers);
  double number = 0;
  std::from_chars(scale.data(), scale.data() + scale.size(), number);
  std::vector<double> ratios;
  for (const Json& layer : json.at("layers")) {
    const auto n = layer.at("layer").get<std::int64_t>();
    SCOPED_TRACE("layer " + std::to_string(n));
    const Oracle oracle = materialise(layer_case(tensors, n, number, causal));
    ASSERT_EQ(layer.at("heads").size(), heads);
    for (const Json& head : layer.at("heads")) ratios.push_back(expect_head(head, oracle));
  }
  EXPECT_NEAR(json.at("verdict").at("h75").get<double>(), expected_quantile(ratios, 0.75), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Captures, CheckHeads,
                         ::testing::Values(Captured{"minilm-l6-qkv.safetensors", "0.17677669529663687", false, 6, 12},
                                           Captured{"minilm-l6-qkv.safetensors", "1", false, 6, 12},
                                           Captured{"smollm2-135m-qkv.safetensors", "0.125", true, 10, 9},
                                           Captured{"smollm2-135m-qkv.safetensors", "0.015625", true, 10, 9}));

}  // namespace
}  // namespace levelhead::test
