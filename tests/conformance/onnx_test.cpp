// The node tests of the ONNX operator Attention, through every kernel that takes their types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>

#include "conformance/compare.hpp"
#include "conformance/onnx_adapter.hpp"

namespace levelhead::conformance {
namespace {

const std::filesystem::path folder = std::filesystem::path(LEVELHEAD_SOURCE_DIR) / "tests/conformance/onnx";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

OnnxCase load_case(const std::string& name) { return load_onnx_case((folder / (name + ".safetensors")).string()); }

KernelInfo kernel_named(const std::string& name) {
  for (const KernelInfo& kernel : kernels()) {
    if (kernel.name == name) return kernel;
  }
  return {};
}

/// Compares every output that the case expects; the present ones are copies, so exactly.
void expect_case(const OnnxCase& onnx, const OnnxResult& got) {
  const auto expect = [&](const char* output, const Tensor& a, const Tensor& b, double rtol, double atol) {
    const auto wrong = difference(a, b, rtol, atol);
    EXPECT_FALSE(wrong.has_value()) << onnx.name << ", " << output << ": " << *wrong;
  };
  expect("Y", got.y, onnx.y, onnx.rtol, onnx.atol);
  if (onnx.present_key) expect("present_key", got.present_key.value(), *onnx.present_key, 0, 0);
  if (onnx.present_value) expect("present_value", got.present_value.value(), *onnx.present_value, 0, 0);
  if (onnx.scores) expect("qk_matmul_output", got.scores.value(), *onnx.scores, onnx.rtol, onnx.atol);
}

class OnnxAttention : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(OnnxAttention, GivesTheExpectedOutputs) {
  const auto& [kernel, name] = GetParam();
  const KernelInfo info = kernel_named(kernel);
  if (!info.available) GTEST_SKIP() << "kernel " << kernel << " can't run here: " << info.why;
  const OnnxCase onnx = load_case(name);
  Context context(2);
  const OnnxResult got = run_onnx_case(context, onnx, kernel);
  EXPECT_EQ(got.info.kernel, kernel);
  expect_case(onnx, got);
}

std::string test_name(std::string kernel, const std::string& name) {
  std::replace_if(
      kernel.begin(), kernel.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return kernel + "__" + name;
}

bool takes(const KernelInfo& kernel, DType type) {
  return std::find(kernel.types.begin(), kernel.types.end(), type) != kernel.types.end();
}

/// Every kernel with every case of a type that it takes.
std::vector<std::tuple<std::string, std::string>> kernels_and_cases() {
  std::vector<std::tuple<std::string, std::string>> all;
  for (const std::string& name : case_names()) {
    const DType type = load_case(name).q.dtype();
    for (const KernelInfo& kernel : kernels()) {
      if (takes(kernel, type)) all.emplace_back(kernel.name, name);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, OnnxAttention, testing::ValuesIn(kernels_and_cases()),
                         [](const auto& test) { return test_name(std::get<0>(test.param), std::get<1>(test.param)); });

Tensor reshaped(const Tensor& tensor, std::vector<std::int64_t> shape) {
  Tensor other(tensor.dtype(), std::move(shape));
  std::copy(tensor.bytes().begin(), tensor.bytes().end(), other.bytes().begin());
  return other;
}

TEST(OnnxCases, AreAllThere) { EXPECT_EQ(case_names().size(), 93U); }

TEST(OnnxCases, AndTheReferenceTakesThemAll) {
  const KernelInfo info = kernel_named("reference");
  ASSERT_TRUE(info.available);
  for (const std::string& name : case_names()) {
    EXPECT_TRUE(takes(info, load_case(name).q.dtype())) << name;
  }
}

// The cases are worth something only if a wrong translation fails: each of these is one mistake in it.
TEST(OnnxCases, CatchAWrongTranslation) {
  struct Mistake {
    const char* name;
    void (*make)(OnnxCase&);
  };
  const Mistake mistakes[] = {
      {"4d_causal", [](OnnxCase& c) { c.attributes.is_causal = false; }},
      {"4d_scaled", [](OnnxCase& c) { c.attributes.scale.reset(); }},
      {"4d_softcap", [](OnnxCase& c) { c.attributes.softcap = 0; }},
      {"4d_attn_mask", [](OnnxCase& c) { c.attn_mask.reset(); }},
      {"23_boolmask_fullymasked_row_nan_robustness", [](OnnxCase& c) { c.attn_mask.reset(); }},
      {"bidirectional_window",
       [](OnnxCase& c) { std::swap(c.attributes.left_window_size, c.attributes.right_window_size); }},
      {"local_window", [](OnnxCase& c) { ++c.attributes.left_window_size; }},
      {"4d_gqa_causal_nonpad_decode", [](OnnxCase& c) { c.nonpad_kv_seqlen.reset(); }},
      {"4d_padded_kv_bf16",
       [](OnnxCase& c) {
         c.nonpad_kv_seqlen.reset();
         c.attn_mask.reset();
       }},
      {"4d_with_qk_matmul_softcap", [](OnnxCase& c) { c.attributes.score_mode = ScoreMode::scaled; }},
      {"4d_with_qk_matmul_bias", [](OnnxCase& c) { c.attributes.score_mode = ScoreMode::capped; }},
      {"4d_with_qk_matmul_softmax", [](OnnxCase& c) { c.attributes.score_mode = ScoreMode::biased; }},
      // Heads taken to lie one behind the other. (3d_transpose_verification would not see it: its values are all one.)
      {"3d",
       [](OnnxCase& c) {
         c.k = reshaped(c.k, {2, 3, 6, 8});
       }},
  };
  Context context(1);
  for (const Mistake& mistake : mistakes) {
    OnnxCase onnx = load_case(mistake.name);
    mistake.make(onnx);
    const OnnxResult got = run_onnx_case(context, onnx, "reference");
    const bool y = difference(got.y, onnx.y, onnx.rtol, onnx.atol).has_value();
    const bool scores = onnx.scores && difference(*got.scores, *onnx.scores, onnx.rtol, onnx.atol).has_value();
    EXPECT_TRUE(y || scores) << mistake.name;
  }
}

TEST(Compare, NaNAndInfinityAreCloseToNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(close(nan, nan, 0, 0));
  EXPECT_FALSE(close(nan, 1, 1e9, 1e9));
  EXPECT_FALSE(close(1, nan, 1e9, 1e9));
  EXPECT_TRUE(close(-inf, -inf, 0, 0));
  EXPECT_FALSE(close(inf, -inf, 1e9, 1e9));
  EXPECT_FALSE(close(1, inf, 1e9, 1e9));
  EXPECT_FALSE(close(-inf, 1, 1e9, 1e9));
  EXPECT_FALSE(close(nan, inf, 1e9, 1e9));
  EXPECT_TRUE(close(1.01, 1, 0.01 + 1e-12, 0));
  EXPECT_FALSE(close(1.011, 1, 0.01, 0));
  EXPECT_TRUE(close(1e-8, 0, 0, 1e-7));
  EXPECT_FALSE(close(1e-6, 0, 0, 1e-7));
}

TEST(Compare, TensorsDifferInOneElementTypeOrShape) {
  Tensor a(DType::f32, {2, 3}), b(DType::f32, {2, 3});
  EXPECT_EQ(difference(a, b, 0, 0), std::nullopt);
  b.elements<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(difference(a, b, 1, 1), "element 5 is 0 but nan is expected, and so differ 1 of 6");
  EXPECT_EQ(difference(b, a, 1, 1), "element 5 is nan but 0 is expected, and so differ 1 of 6");
  EXPECT_EQ(difference(a, Tensor(DType::f32, {3, 2}), 1, 1), "the shapes differ");
  EXPECT_EQ(difference(a, Tensor(DType::i32, {2, 3}), 1, 1), "the types differ");
}

}  // namespace
}  // namespace levelhead::conformance
