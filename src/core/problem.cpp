#include "core/problem.hpp"

#include <cmath>

#include "core/check.hpp"
#include "core/element.hpp"
#include "core/problem_parts.hpp"

namespace levelhead {
namespace {

void check_qkv_views(const Inputs& inputs) {
  for (const Named& tensor : {Named{"q", inputs.q}, Named{"k", inputs.k}, Named{"v", inputs.v}}) {
    check_view(tensor);
    if (tensor.view.rank != 4)
      fail(text(tensor), " has rank ", tensor.view.rank, " but must have 4: [B, heads, tokens, dim]");
    const DType type = tensor.view.dtype;
    if (type != DType::f64 && type != DType::f32 && type != DType::bf16 && type != DType::f16)
      fail(text(tensor), " is ", name_of(type), " but q, k and v must be f64, f32, bf16 or f16");
  }
}

// Two tensors that must have the same size on an axis, in the user's words: "k has 5 tokens but v has 6".
void check_same(const Named& a, const Named& b, int axis, std::string_view one, std::string_view many) {
  const std::int64_t x = a.view.sizes[axis], y = b.view.sizes[axis];
  if (x != y)
    fail(a.name, " has ", x, " ", x == 1 ? one : many, " but ", b.name, " has ", y, ": ", text(a), " and ", text(b),
         " must agree on axis ", axis);
}

void check_qkv(const Inputs& inputs) {
  check_qkv_views(inputs);
  const Named q{"q", inputs.q}, k{"k", inputs.k}, v{"v", inputs.v};
  for (const Named& other : {k, v}) {
    if (other.view.dtype != q.view.dtype)
      fail("q is ", name_of(q.view.dtype), " but ", other.name, " is ", name_of(other.view.dtype),
           ": q, k and v must have one type");
  }
  check_same(q, k, 0, "batch item", "batch items");
  check_same(k, v, 0, "batch item", "batch items");
  check_same(k, v, 1, "head", "heads");
  check_same(k, v, 2, "token", "tokens");
  check_same(q, k, 3, "component", "components");
  const std::int64_t Hq = q.view.sizes[1], Hk = k.view.sizes[1];
  if (Hk == 0 ? Hq != 0 : Hq % Hk != 0)
    fail("q has ", Hq, " heads and k has ", Hk, ": ", text(q), " must have a multiple of the heads of ", text(k));
}

// Sizes and strides of q, k and v may be fine one by one, as stride 0 needs no memory, while what is counted or held
// beside them is not: dense copies and gradients, a state per row, the scratch of a kernel.
void check_products(const Inputs& inputs, const Problem& p) {
  const auto check = [](std::string_view name, const TensorView& view, std::string_view what,
                        std::initializer_list<std::int64_t> factors) {
    if (!fits(factors)) fail(text({name, view}), " overflows: ", what, " exceed 64 bits");
  };
  constexpr std::int64_t state = sizeof(RowState);
  check("q", inputs.q, "B * Hq * Nq * D components of 8 bytes", {p.B, p.Hq, p.Nq, p.D, 8});
  check("k", inputs.k, "B * Hk * Nk * D components of 8 bytes", {p.B, p.Hk, p.Nk, p.D, 8});
  check("v", inputs.v, "B * Hk * Nk * Dv components of 8 bytes", {p.B, p.Hk, p.Nk, p.Dv, 8});
  check("q", inputs.q, "B * Hq * Nq outputs of Dv components of 8 bytes", {p.B, p.Hq, p.Nq, p.Dv, 8});
  check("q", inputs.q, "B * Hq * Nq row states", {p.B, p.Hq, p.Nq, state});
  // Kernels hold a few numbers for each component of a head's keys, or of a block of them, per thread.
  constexpr std::int64_t threads = 4096, block = 4096, numbers = std::int64_t{8} * 8, least = 64;
  const std::int64_t keys = std::max(p.Nk, block);
  check("k", inputs.k, "a head's keys in scratch", {keys, std::max(p.D, least), threads, numbers});
  check("v", inputs.v, "a head's values in scratch", {keys, std::max(p.Dv, least), threads, numbers});
}

std::vector<double> read_per_head(const Named& tensor, const Problem& p) {
  check_shape(tensor, {{"Hq", p.Hq}});
  check_number_type(tensor, p.dtype);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(p.Hq));
  for (std::int64_t h = 0; h < p.Hq; ++h)
    values.push_back(load(tensor.view.data, tensor.view.dtype, h * tensor.view.strides[0]));
  return values;
}

void check_mask(const Named& mask, const Problem& p) {
  check_view(mask);
  if (mask.view.dtype != DType::boolean)
    fail(text(mask), " is ", name_of(mask.view.dtype),
         " but masks are bool, true where a query may attend; give float masks (0 and -inf, added to the logit) as "
         "bias");
  check_broadcast(mask, p);
}

void check_bias(const Named& bias, const Problem& p) {
  check_view(bias);
  if (bias.view.dtype == DType::boolean) fail(text(bias), " is bool but a bias is added: give bool masks as mask");
  if (bias.view.dtype != DType::f32 && bias.view.dtype != p.dtype)
    fail(text(bias), " is ", name_of(bias.view.dtype), " but must be f32 or the type of q, ", name_of(p.dtype));
  check_broadcast(bias, p);
}

// Kernels of the smaller types hold the cap in f32, where it must stay a normal number.
void check_softcap(double softcap, DType type) {
  if (!(softcap >= 0) || std::isinf(softcap)) fail("softcap is ", softcap, " but must be finite and >= 0 (0 is off)");
  using Limits = std::numeric_limits<float>;
  if (type != DType::f64 && softcap > 0 && !(softcap >= Limits::min() && softcap <= Limits::max()))
    fail("softcap is ", softcap, " but beside ", name_of(type), " q it must be 0 or a normal f32 number, ",
         Limits::min(), " to ", Limits::max());
}

}  // namespace

Problem make_problem(const Inputs& inputs, const Options& options) {
  check_qkv(inputs);
  Problem p;
  p.B = inputs.q.sizes[0], p.Hq = inputs.q.sizes[1], p.Nq = inputs.q.sizes[2], p.D = inputs.q.sizes[3];
  p.Hk = inputs.k.sizes[1], p.Nk = inputs.k.sizes[2], p.Dv = inputs.v.sizes[3];
  p.dtype = inputs.q.dtype;
  check_products(inputs, p);
  check_softcap(options.softcap, p.dtype);
  if (options.splits < 0) fail("splits is ", options.splits, " but must be >= 0 (0: ranges of a fixed size)");
  check_scale(p, options.scale);
  if (inputs.mask) check_mask({"mask", *inputs.mask}, p);
  if (inputs.bias) check_bias({"bias", *inputs.bias}, p);

  p.q = readable(inputs.q), p.k = readable(inputs.k), p.v = readable(inputs.v);
  if (inputs.mask) p.mask = readable(*inputs.mask);
  if (inputs.bias) p.bias = readable(*inputs.bias);
  p.softcap = options.softcap;
  p.statistics = options.statistics;
  p.splits = options.splits;
  resolve_positions(p, inputs, options.window);
  if (inputs.alibi_slopes) p.slopes = read_per_head({"alibi_slopes", *inputs.alibi_slopes}, p);
  if (inputs.sinks) p.sinks = read_per_head({"sinks", *inputs.sinks}, p);
  return p;
}

}  // namespace levelhead
