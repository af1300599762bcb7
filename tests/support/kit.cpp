#include "support/kit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace levelhead::test {

double unit_roundoff(DType type) {
  switch (type) {
    case DType::f64: return 0x1p-53;
    case DType::f32: return 0x1p-24;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-11;
  }
}

// Case ---------------------------------------------------------------------------------------------------------

Case::Case(DType type, const Shape& sizes)
    : shape(sizes),
      dtype(type),
      q(type, {sizes.B, sizes.Hq, sizes.Nq, sizes.D}),
      k(type, {sizes.B, sizes.Hk, sizes.Nk, sizes.D}),
      v(type, {sizes.B, sizes.Hk, sizes.Nk, sizes.Dv}) {}

Case Case::random(DType type, const Shape& sizes, std::uint64_t seed) {
  Case c(type, sizes);
  Random random(seed);
  c.q.fill_normal(random);
  c.k.fill_normal(random);
  c.v.fill_normal(random);
  return c;
}

Case Case::logits(DType type, const std::vector<double>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  Case c(type, {.Nq = 1, .Nk = n, .D = 1, .Dv = 1});
  c.q.fill(1);
  for (std::int64_t j = 0; j < n; ++j) {
    c.k.set_flat(j, values[static_cast<std::size_t>(j)]);
    c.v.set_flat(j, static_cast<double>(j));
  }
  c.scale = Constant{1};
  return c;
}

Inputs Case::inputs() const {
  const auto view = [](const std::optional<Tensor>& t) { return t ? std::optional(t->view()) : std::nullopt; };
  Inputs in;
  in.q = q.view();
  in.k = k.view();
  in.v = v.view();
  in.mask = view(mask);
  in.bias = view(bias);
  in.alibi_slopes = view(slopes);
  in.sinks = view(sinks);
  in.q_lengths = view(q_lengths);
  in.k_lengths = view(k_lengths);
  in.q_offsets = view(q_offsets);
  in.k_offsets = view(k_offsets);
  return in;
}

Options Case::options(std::string_view kernel) const {
  Options options;
  const auto values = scale_values ? std::optional(scale_values->view()) : std::nullopt;
  switch (policy) {
    case Policy::plain: options.scale = scale; break;
    case Policy::per_head: options.scale = PerHead{values.value()}; break;
    case Policy::per_row: options.scale = PerRow{values.value()}; break;
    case Policy::ssmax: options.scale = Ssmax{values.value()}; break;
    case Policy::qk_l2: options.scale = QkNorm{QkNorm::Kind::l2, values}; break;
    case Policy::qk_rms: options.scale = QkNorm{QkNorm::Kind::rms, values}; break;
  }
  options.window = window;
  options.softcap = softcap;
  options.splits = splits;
  options.statistics = statistics;
  options.kernel = kernel;
  return options;
}

// Calls --------------------------------------------------------------------------------------------------------

const RowState& Forward::row_state(std::int64_t h, std::int64_t i, std::int64_t b) const {
  return state.at(static_cast<std::size_t>((b * shape.Hq + h) * shape.Nq + i));
}

RowStatistics Forward::row(std::int64_t h, std::int64_t i, std::int64_t b) const {
  return row_statistics(row_state(h, i, b), sinks.at(static_cast<std::size_t>(h)));
}

Forward forward(const Case& c, std::string_view kernel, int threads, std::optional<DType> o_type) {
  const Shape& s = c.shape;
  Forward run;
  run.shape = s;
  run.o = Tensor(o_type.value_or(c.dtype), {s.B, s.Hq, s.Nq, s.Dv}).fill_garbage();
  run.lse = Tensor(side_type(c.dtype), {s.B, s.Hq, s.Nq}).fill_garbage();
  run.state.resize(static_cast<std::size_t>(s.B * s.Hq * s.Nq));
  run.sinks.resize(static_cast<std::size_t>(s.Hq));
  for (std::int64_t h = 0; c.sinks && h < s.Hq; ++h) run.sinks[static_cast<std::size_t>(h)] = c.sinks->flat(h);
  Outputs outputs;
  outputs.o = run.o.mutable_view();
  outputs.lse = run.lse.mutable_view();
  outputs.state = run.state;
  Context context(threads);
  run.info = forward(context, c.inputs(), c.options(kernel), outputs);
  EXPECT_EQ(run.info.kernel, kernel);
  return run;
}

Upstream Upstream::random(const Case& c, std::uint64_t seed) {
  const Shape& s = c.shape;
  Random random(seed);
  Upstream u;
  u.dout = Tensor(c.dtype, {s.B, s.Hq, s.Nq, s.Dv}).fill_normal(random);
  u.dlse = Tensor(side_type(c.dtype), {s.B, s.Hq, s.Nq}).fill_normal(random);
  u.dentropy = Tensor(side_type(c.dtype), {s.B, s.Hq, s.Nq}).fill_normal(random);
  return u;
}

Backward backward(const Case& c, const Forward& run, const Upstream& upstream, std::string_view kernel, int threads) {
  Backward result;
  Gradients g;
  const auto want = [&](const char* name, DType type, const Tensor& input, auto& slot) {
    Tensor& t = result.gradients[name] = Tensor(type, input.sizes()).fill_garbage();
    slot = t.mutable_view();
  };
  const DType side = side_type(c.dtype);
  want("dq", c.dtype, c.q, g.dq);
  want("dk", c.dtype, c.k, g.dk);
  want("dv", c.dtype, c.v, g.dv);
  if (c.bias) want("dbias", side, *c.bias, g.dbias);
  if (c.sinks) want("dsinks", side, *c.sinks, g.dsinks);
  if (c.slopes) want("dslopes", side, *c.slopes, g.dalibi_slopes);
  if (c.policy == Policy::per_head || c.policy == Policy::per_row) want("dscale", side, *c.scale_values, g.dscale);
  if (c.policy == Policy::ssmax) want("dssmax_s", side, *c.scale_values, g.dssmax_s);
  if ((c.policy == Policy::qk_l2 || c.policy == Policy::qk_rms) && c.scale_values)
    want("dqk_gain", side, *c.scale_values, g.dqk_gain);

  OutputGradients incoming;
  if (upstream.dout) incoming.dout = upstream.dout->view();
  if (upstream.dlse) incoming.dlse = upstream.dlse->view();
  if (upstream.dentropy) incoming.dentropy = upstream.dentropy->view();
  Saved saved;
  saved.state = run.state;
  Context context(threads);
  result.info = backward(context, c.inputs(), c.options(kernel), saved, incoming, g);
  EXPECT_TRUE(result.info.kernel == kernel || result.info.kernel == "reference") << result.info.kernel;
  return result;
}

Tensor& input_of(Case& c, const std::string& gradient) {
  if (gradient == "dq") return c.q;
  if (gradient == "dk") return c.k;
  if (gradient == "dv") return c.v;
  if (gradient == "dbias") return c.bias.value();
  if (gradient == "dsinks") return c.sinks.value();
  if (gradient == "dslopes") return c.slopes.value();
  return c.scale_values.value();
}

// Comparison ---------------------------------------------------------------------------------------------------

namespace {

bool is_near(double got, double want, double tolerance) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  return std::abs(got - want) <= tolerance;
}

bool is_same(double got, double want) {
  return (std::isnan(got) && std::isnan(want)) ||
         std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(want);
}

::testing::AssertionResult differ(std::int64_t element, double got, double want) {
  return ::testing::AssertionFailure() << "element " << element << ": got " << ::testing::PrintToString(got)
                                       << ", want " << ::testing::PrintToString(want);
}

template <class Same>
::testing::AssertionResult compare(const Tensor& got, const Tensor& want, Same same) {
  if (got.sizes() != want.sizes()) return ::testing::AssertionFailure() << "the sizes differ";
  for (std::int64_t n = 0; n < got.elements(); ++n) {
    if (!same(got.flat(n), want.flat(n))) return differ(n, got.flat(n), want.flat(n));
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

::testing::AssertionResult near(double got, double want, double tolerance) {
  if (is_near(got, want, tolerance)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got " << ::testing::PrintToString(got) << ", want "
                                       << ::testing::PrintToString(want) << " within " << tolerance << ", off by "
                                       << got - want;
}

::testing::AssertionResult near(const Tensor& got, const Tensor& want, double relative, double absolute) {
  return compare(got, want, [&](double x, double y) { return is_near(x, y, relative * std::abs(y) + absolute); });
}

double relative_error(const Tensor& got, const std::vector<double>& want) {
  double error = 0, norm = 0;
  for (std::size_t n = 0; n < want.size(); ++n) {
    error += std::pow(got.flat(static_cast<std::int64_t>(n)) - want[n], 2);
    norm += want[n] * want[n];
  }
  return std::sqrt(error / norm);
}

::testing::AssertionResult same_bits(const Tensor& got, const Tensor& want) { return compare(got, want, is_same); }

::testing::AssertionResult same_bits(const RowState& got, const RowState& want) {
  const double a[] = {got.max, got.sum, got.weighted,        got.sum2,       got.sum3, got.mean,
                      got.m2,  got.min, got.absmax_uncapped, got.first_logit};
  const double b[] = {want.max, want.sum, want.weighted,        want.sum2,       want.sum3, want.mean,
                      want.m2,  want.min, want.absmax_uncapped, want.first_logit};
  for (std::size_t n = 0; n < std::size(a); ++n) {
    if (!is_same(a[n], b[n])) return differ(static_cast<std::int64_t>(n), a[n], b[n]) << " (field of RowState)";
  }
  if (got.count != want.count || got.first_key != want.first_key || got.level != want.level)
    return ::testing::AssertionFailure() << "count, first key or level differ: " << got.count << ", " << got.first_key
                                         << " against " << want.count << ", " << want.first_key;
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_bits(const Forward& got, const Forward& want) {
  if (const auto o = same_bits(got.o, want.o); !o) return ::testing::AssertionFailure() << "o: " << o.message();
  if (const auto lse = same_bits(got.lse, want.lse); !lse)
    return ::testing::AssertionFailure() << "lse: " << lse.message();
  for (std::size_t n = 0; n < got.state.size(); ++n) {
    if (const auto row = same_bits(got.state[n], want.state[n]); !row)
      return ::testing::AssertionFailure() << "row " << n << ": " << row.message();
  }
  return ::testing::AssertionSuccess();
}

// Kernels ------------------------------------------------------------------------------------------------------

std::vector<KernelType> kernel_types() {
  std::vector<KernelType> all;
  for (const KernelInfo& kernel : kernels()) {
    for (const DType type : kernel.types) all.push_back({kernel.name, type, kernel.available, kernel.why});
  }
  return all;
}

std::string name_of_kernel_type(const ::testing::TestParamInfo<KernelType>& info) {
  std::string name = info.param.kernel + "_" + std::string(name_of(info.param.type));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

void KernelTest::SetUp() {
  if (!GetParam().available) GTEST_SKIP() << kernel() << " can't run here: " << GetParam().why;
}

double KernelTest::o_tolerance(double magnitude) const {
  switch (type()) {
    case DType::f64: return 1e-13 * magnitude;
    case DType::f32: return 2e-6 * magnitude;
    default: return 1.5 * unit_roundoff(type()) * magnitude;
  }
}

}  // namespace levelhead::test
