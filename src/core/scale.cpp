#include "core/scale.hpp"

#include <cmath>

#include "core/element.hpp"
#include "core/logits.hpp"

namespace levelhead {
namespace {

// Rounded once to the multiplier's type.
double rounded(double x, DType q) { return q == DType::f64 ? x : static_cast<float>(x); }

// logits are 0 at D = 0, whatever finite number multiplies them
double root(std::int64_t D) { return D == 0 ? 1 : std::sqrt(static_cast<double>(D)); }

// sqrt(base) / D. At base = D it is the plain 1 / sqrt(D), which sqrt(D) / D may miss by one unit in the last place.
double inverse_dim(double base, std::int64_t D) {
  const double d = D == 0 ? 1 : static_cast<double>(D);
  return base == d ? 1 / std::sqrt(d) : std::sqrt(base) / d;
}

double yarn(const Yarn& s) {
  const double root_of_factor = 0.1 * s.mscale * std::log(s.factor) + 1;
  return root_of_factor * root_of_factor;
}

void fill_shared(Problem& p, double multiplier) {
  p.multipliers.assign(1, multiplier);
  p.multiplier_strides = {0, 0, 0};
}

// make(h) for each head
template <class Make>
void fill_heads(Problem& p, Make&& make) {
  p.multipliers.clear();
  for (std::int64_t h = 0; h < p.Hq; ++h) p.multipliers.push_back(rounded(make(h), p.dtype));
  p.multiplier_strides = {0, 1, 0};
}

// make(segment, h, i) for each row of a segment, for `heads` heads: Hq, or 1 if all share it. Rows outside get 0:
// they see nothing, and nothing is read for them.
template <class Make>
void fill_rows(Problem& p, std::int64_t heads, Make&& make) {
  p.multipliers.assign(static_cast<std::size_t>(p.B * heads * p.Nq), 0.0);
  p.multiplier_strides = {heads * p.Nq, heads == 1 ? 0 : p.Nq, 1};
  for (const Segment& s : p.segments)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = s.q_begin; i < s.q_end; ++i)
        p.multipliers[static_cast<std::size_t>((s.b * heads + h) * p.Nq + i)] = rounded(make(s, h, i), p.dtype);
}

// ln of the visible keys; 0 for one key and for none.
double log_count(const Problem& p, const Segment& s, std::int64_t h, std::int64_t i) {
  const std::int64_t n = count_visible(p, s, h, i);
  return n <= 1 ? 0 : std::log(static_cast<double>(n));
}

double element(const TensorView& values, std::int64_t h) {
  return load(values.data, values.dtype, h * values.strides[0]);
}

double element(const TensorView& values, std::int64_t b, std::int64_t h, std::int64_t i) {
  return load(values.data, values.dtype, b * values.strides[0] + h * values.strides[1] + i * values.strides[2]);
}

struct Fill {
  Problem& p;

  template <class Shared>
  void operator()(const Shared& s) const {
    fill_shared(p, *shared_multiplier(s, p.D, p.dtype));
  }
  void operator()(const PerHead& s) const {
    fill_heads(p, [&](std::int64_t h) { return element(s.values, h); });
  }
  void operator()(const PerRow& s) const {
    fill_rows(p, p.Hq,
              [&](const Segment& seg, std::int64_t h, std::int64_t i) { return element(s.values, seg.b, h, i); });
  }
  void operator()(const LogKeys& s) const {
    const bool heads_share = p.mask.strides[1] == 0 && p.bias.strides[1] == 0;
    fill_rows(p, heads_share ? 1 : p.Hq, [&](const Segment& seg, std::int64_t h, std::int64_t i) {
      return log_count(p, seg, h, i) / std::log(s.n0) / root(p.D);
    });
  }
  void operator()(const Ssmax& s) const {
    fill_rows(p, p.Hq, [&](const Segment& seg, std::int64_t h, std::int64_t i) {
      return element(s.s, h) * log_count(p, seg, h, i) / root(p.D);
    });
  }
  void operator()(const QkNorm& s) const {
    if (!s.gain) return fill_shared(p, *shared_multiplier(s, p.D, p.dtype));
    fill_heads(p, [&](std::int64_t h) {
      return s.kind == QkNorm::Kind::l2 ? element(*s.gain, h) : element(*s.gain, h) / root(p.D);
    });
  }
};

// out[h] = sum over b, i of weight(segment, h, i) * dmultiplier[b, h, i], in index order
template <class Weight>
void reduce_heads(const Problem& p, std::span<const double> dmultiplier, const MutableTensorView& out,
                  Weight&& weight) {
  for (std::int64_t h = 0; h < p.Hq; ++h) {
    double sum = 0;
    for (const Segment& s : p.segments)
      for (std::int64_t i = s.q_begin; i < s.q_end; ++i)
        sum += weight(s, h, i) * dmultiplier[static_cast<std::size_t>((s.b * p.Hq + h) * p.Nq + i)];
    store(out.data, out.dtype, h * out.strides[0], sum);
  }
}

void write_rows(const Problem& p, std::span<const double> dmultiplier, const MutableTensorView& out) {
  for (std::int64_t b = 0; b < p.B; ++b)
    for (std::int64_t h = 0; h < p.Hq; ++h)
      for (std::int64_t i = 0; i < p.Nq; ++i)
        store(out.data, out.dtype, b * out.strides[0] + h * out.strides[1] + i * out.strides[2],
              dmultiplier[static_cast<std::size_t>((b * p.Hq + h) * p.Nq + i)]);
}

}  // namespace

std::optional<double> shared_multiplier(const Scale& scale, std::int64_t D, DType q) {
  std::optional<double> x;
  if (std::holds_alternative<InvSqrtDim>(scale)) x = 1 / root(D);
  if (const auto* constant = std::get_if<Constant>(&scale)) x = constant->value;
  if (const auto* inv_dim = std::get_if<InvDim>(&scale)) x = inverse_dim(inv_dim->base, D);
  if (const auto* s = std::get_if<Yarn>(&scale)) x = yarn(*s) / root(D);
  if (const auto* norm = std::get_if<QkNorm>(&scale); norm != nullptr && !norm->gain)
    x = norm->kind == QkNorm::Kind::l2 ? root(D) : 1 / root(D);
  if (x) x = rounded(*x, q);
  return x;
}

std::int64_t count_visible(const Problem& p, const Segment& s, std::int64_t h, std::int64_t i) {
  const KeyRange keys = p.keys(s, i);
  if (keys.empty()) return 0;
  if (!p.mask && !p.bias) return keys.end - keys.begin;
  std::int64_t count = 0;
  for (std::int64_t j = keys.begin; j < keys.end; ++j) count += passes(p, s.b, h, i, j) ? 1 : 0;
  return count;
}

void fill_multipliers(Problem& p, const Inputs&, const Options& options) {
  if (p.segments.empty()) return fill_shared(p, 0);  // no row attends
  std::visit(Fill{p}, options.scale);
}

void reduce_dmultiplier(const Problem& p, const Options& options, std::span<const double> dmultiplier,
                        const Gradients& g) {
  // The factor that turns the parameter into the multiplier.
  const auto times = [](double factor) {
    return [factor](const Segment&, std::int64_t, std::int64_t) { return factor; };
  };
  if (g.dscale && std::holds_alternative<PerHead>(options.scale)) reduce_heads(p, dmultiplier, *g.dscale, times(1));
  if (g.dscale && std::holds_alternative<PerRow>(options.scale)) write_rows(p, dmultiplier, *g.dscale);
  if (g.dssmax_s)
    reduce_heads(p, dmultiplier, *g.dssmax_s,
                 [&p](const Segment& s, std::int64_t h, std::int64_t i) { return log_count(p, s, h, i) / root(p.D); });
  if (g.dqk_gain) {
    const bool l2 = std::get<QkNorm>(options.scale).kind == QkNorm::Kind::l2;
    reduce_heads(p, dmultiplier, *g.dqk_gain, times(l2 ? 1 : 1 / root(p.D)));
  }
}

}  // namespace levelhead
