// Calls of a named kernel: a Case owns every tensor of one attention problem, so that tests can copy and change it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "levelhead/attention.hpp"
#include "support/tensor.hpp"

namespace levelhead::test {

/// What only repeats work that a sanitizer has judged before may be repeated less: the release build repeats it all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

struct Shape {
  std::int64_t B = 1, Hq = 1, Hk = 1, Nq = 1, Nk = 1, D = 2, Dv = 2;
};

/// The type of scales, sinks, slopes, lse and reduced gradients beside q of this type.
constexpr DType side_type(DType q) { return q == DType::f64 ? DType::f64 : DType::f32; }

/// Half the distance from 1 to the next number: the relative error of one rounding.
double unit_roundoff(DType type);

/// Which tensor policy reads Case::scale_values; plain: Case::scale.
enum class Policy : std::uint8_t { plain, per_head, per_row, ssmax, qk_l2, qk_rms };

struct Case {
  Shape shape;
  DType dtype = DType::f64;
  Tensor q, k, v;
  std::optional<Tensor> mask, bias, slopes, sinks, q_lengths, k_lengths, q_offsets, k_offsets;
  Policy policy = Policy::plain;
  Scale scale = InvSqrtDim{};
  std::optional<Tensor> scale_values;
  Window window = Window::all();
  double softcap = 0;
  std::int64_t splits = 0;
  Statistics statistics{StatisticsLevel::all, Precision::fast};

  Case() = default;
  /// q, k, v of zeros.
  Case(DType dtype, const Shape& shape);
  /// q, k, v of standard normals.
  static Case random(DType dtype, const Shape& shape, std::uint64_t seed);
  /// One query q = (1) over keys k = values, D = 1, scale 1: logits are the values. v counts 0, 1, 2, ...
  static Case logits(DType dtype, const std::vector<double>& values);

  Tensor side(Sizes sizes, const std::vector<double>& values) const { return {side_type(dtype), sizes, values}; }

  Inputs inputs() const;
  Options options(std::string_view kernel = {}) const;
};

/// What forward gave. o and lse start as garbage, so a forgotten element is NaN.
struct Forward {
  Tensor o, lse;
  std::vector<RowState> state;
  RunInfo info;
  Shape shape;
  std::vector<std::optional<double>> sinks;  // [Hq]

  const RowState& row_state(std::int64_t h, std::int64_t i, std::int64_t b = 0) const;
  RowStatistics row(std::int64_t h, std::int64_t i, std::int64_t b = 0) const;
};

/// Runs a kernel forced by name and expects that it ran. o_type: of o, the type of q if absent.
Forward forward(const Case& c, std::string_view kernel, int threads = 1, std::optional<DType> o_type = {});

/// Incoming gradients.
struct Upstream {
  std::optional<Tensor> dout, dlse, dentropy;
  /// All three, normals.
  static Upstream random(const Case& c, std::uint64_t seed);
};

/// Gradients by their name in `levelhead attend`: dq dk dv, and those whose input is there.
struct Backward {
  std::map<std::string, Tensor> gradients;
  RunInfo info;
  const Tensor& at(const std::string& name) const { return gradients.at(name); }
};

/// Forces the kernel by name; one without backward hands over to the reference.
Backward backward(const Case& c, const Forward& run, const Upstream& upstream, std::string_view kernel,
                  int threads = 1);

/// The input behind a gradient: "dq" -> q, "dscale", "dssmax_s" and "dqk_gain" -> scale_values.
Tensor& input_of(Case& c, const std::string& gradient);

// Comparison -------------------------------------------------------------------------------------------------------

/// |got - want| <= tolerance; NaN equals NaN only, and an infinity itself only.
::testing::AssertionResult near(double got, double want, double tolerance);
/// Element by element, |got - want| <= relative |want| + absolute.
::testing::AssertionResult near(const Tensor& got, const Tensor& want, double relative, double absolute);
/// Frobenius norm of got - want over that of want.
double relative_error(const Tensor& got, const std::vector<double>& want);
/// The same sizes and the same bits (NaN equals NaN).
::testing::AssertionResult same_bits(const Tensor& got, const Tensor& want);
::testing::AssertionResult same_bits(const RowState& got, const RowState& want);
/// o, lse and every state.
::testing::AssertionResult same_bits(const Forward& got, const Forward& want);

// Kernels ----------------------------------------------------------------------------------------------------------

/// A kernel and a type that it takes.
struct KernelType {
  std::string kernel;
  DType type = DType::f64;
  bool available = false;
  std::string why;
};

inline void PrintTo(const KernelType& x, std::ostream* out) { *out << x.kernel << " " << name_of(x.type); }

/// All of the table, those that this CPU lacks too.
std::vector<KernelType> kernel_types();
/// "portable_bf16"; '-' and '.' become '_'.
std::string name_of_kernel_type(const ::testing::TestParamInfo<KernelType>& info);

/// A test for each kernel and type. Skips by name what the CPU lacks.
class KernelTest : public ::testing::TestWithParam<KernelType> {
 protected:
  void SetUp() override;

  const std::string& kernel() const { return GetParam().kernel; }
  DType type() const { return GetParam().type; }
  /// For an o of a closed form whose values are of the size of `magnitude`: the yardsticks of docs/numbers.md.
  double o_tolerance(double magnitude = 1) const;

  Forward run(const Case& c, int threads = 1) const { return forward(c, kernel(), threads); }
};

}  // namespace levelhead::test
