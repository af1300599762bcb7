// A call from end to end: check, normalise, scale, plan, run.
#include "levelhead/attention.hpp"

#include <algorithm>
#include <vector>

#include "core/context.hpp"
#include "core/element.hpp"
#include "core/forward.hpp"
#include "core/plan.hpp"
#include "core/problem.hpp"
#include "core/qk_norm.hpp"
#include "core/scale.hpp"

namespace levelhead {
namespace {

// Pairs that may meet by position, over all query heads: mask and bias are not looked at.
double pairs(const Problem& p) {
  double total = 0;
  for (const Segment& s : p.segments) {
    for (std::int64_t i = s.q_begin; i < s.q_end; ++i) {
      const KeyRange keys = p.keys(s, i);
      if (!keys.empty()) total += static_cast<double>(keys.end - keys.begin);
    }
  }
  return total * static_cast<double>(p.Hq);
}

std::optional<Normalised> normalise_if_asked(Problem& p, const Options& options) {
  const auto* norm = std::get_if<QkNorm>(&options.scale);
  if (norm == nullptr) return std::nullopt;
  return normalise(p, norm->kind);
}

std::size_t owned_bytes(const Problem& p, const std::optional<Normalised>& norm) {
  const std::size_t copies = norm ? norm->q.size() + norm->k.size() : 0;
  return copies + p.multipliers.size() * sizeof(double);
}

// The double buffers behind the reduced gradients; see BackwardTensors.
struct Reduced {
  std::vector<double> dbias, dsinks, dslopes, dmultiplier;
  std::vector<double> dq, dk;  // with QK-norm: gradients of the normalised copies, dense

  std::size_t bytes() const {
    return sizeof(double) *
           (dbias.size() + dsinks.size() + dslopes.size() + dmultiplier.size() + dq.size() + dk.size());
  }
};

std::int64_t elements(const MutableTensorView& t) {
  std::int64_t n = 1;
  for (int axis = 0; axis < t.rank; ++axis) n *= t.sizes[axis];
  return n;
}

Writable dense(std::vector<double>& buffer, std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
  buffer.assign(static_cast<std::size_t>(b * h * n * d), 0.0);
  return {buffer.data(), DType::f64, {h * n * d, n * d, d, 1}};
}

// A dense double accumulator of the bias's own shape, read with stride 0 along its broadcast axes.
Writable dense_like(std::vector<double>& buffer, const MutableTensorView& t) {
  buffer.assign(static_cast<std::size_t>(elements(t)), 0.0);
  Writable w{buffer.data(), DType::f64, {}};
  std::int64_t stride = 1;
  for (int axis = t.rank - 1; axis >= 0; --axis) {
    w.strides[max_rank - t.rank + axis] = t.sizes[axis] == 1 ? 0 : stride;
    stride *= t.sizes[axis];
  }
  return w;
}

void allocate(Reduced& r, const Problem& p, const Options& options, const Gradients& g, BackwardTensors& t) {
  if (g.dbias) t.dbias = dense_like(r.dbias, *g.dbias);
  if (g.dsinks) r.dsinks.assign(static_cast<std::size_t>(p.Hq), 0.0), t.dsinks = r.dsinks.data();
  if (g.dalibi_slopes) r.dslopes.assign(static_cast<std::size_t>(p.Hq), 0.0), t.dslopes = r.dslopes.data();
  if (g.dscale || g.dssmax_s || g.dqk_gain) {
    r.dmultiplier.assign(static_cast<std::size_t>(p.B * p.Hq * p.Nq), 0.0);
    t.dmultiplier = r.dmultiplier.data();
  }
  if (!std::holds_alternative<QkNorm>(options.scale)) return;
  if (t.dq) t.dq = dense(r.dq, p.B, p.Hq, p.Nq, p.D);
  if (t.dk) t.dk = dense(r.dk, p.B, p.Hk, p.Nk, p.D);
}

// Rounds a dense buffer once into a strided tensor of the same sizes.
void write(std::span<const double> values, const std::optional<MutableTensorView>& out) {
  if (!out || values.empty()) return;
  Dims index{};
  for (const double x : values) {
    std::int64_t at = 0;
    for (int axis = 0; axis < out->rank; ++axis) at += index[axis] * out->strides[axis];
    store(out->data, out->dtype, at, x);
    for (int axis = out->rank - 1; axis >= 0 && ++index[axis] == out->sizes[axis]; --axis) index[axis] = 0;
  }
}

}  // namespace

CheckedForward check_forward(Context& context, const Inputs& inputs, const Options& options, const Outputs& outputs) {
  Problem p = make_problem(inputs, options);
  const ForwardOutputs out = make_outputs(p, inputs, outputs);
  Plan plan = make_plan(p, Pass::forward, context.impl().cpu, options.kernel);
  return {std::move(p), out, std::move(plan)};
}

RunInfo run_forward(Context& context, CheckedForward& call, const Inputs& inputs, const Options& options) {
  auto& [p, out, plan] = call;
  Context::Impl& impl = context.impl();
  const std::optional<Normalised> norm = normalise_if_asked(p, options);
  fill_multipliers(p, inputs, options);
  const std::size_t bytes = plan.kernel->forward_workspace(p, context.threads());
  // Without rows nothing is written, and no kernel walks sizes that only a product with 0 made legal.
  if (!p.segments.empty()) plan.kernel->forward(p, out, impl.pool, impl.scratch(bytes));

  const double flops = pairs(p) * 2 * static_cast<double>(p.D + p.Dv);
  return {std::string(plan.kernel->name), plan.reason, context.threads(), flops, bytes + owned_bytes(p, norm)};
}

RunInfo forward(Context& context, const Inputs& inputs, const Options& options, const Outputs& outputs) {
  CheckedForward call = check_forward(context, inputs, options, outputs);
  return run_forward(context, call, inputs, options);
}

RunInfo backward(Context& context, const Inputs& inputs, const Options& options, const Saved& saved,
                 const OutputGradients& output_gradients, const Gradients& gradients) {
  Problem p = make_problem(inputs, options);
  BackwardTensors t = make_backward(p, inputs, options, saved, output_gradients, gradients);
  Context::Impl& impl = context.impl();
  const Plan plan = make_plan(p, Pass::backward, impl.cpu, options.kernel);

  const std::optional<Normalised> norm = normalise_if_asked(p, options);
  fill_multipliers(p, inputs, options);
  const Writable dq = t.dq, dk = t.dk;
  Reduced reduced;
  allocate(reduced, p, options, gradients, t);
  const std::size_t bytes = plan.kernel->backward_workspace(p, t, context.threads());
  plan.kernel->backward(p, t, impl.pool, impl.scratch(bytes));

  write(reduced.dbias, gradients.dbias);
  write(reduced.dsinks, gradients.dsinks);
  write(reduced.dslopes, gradients.dalibi_slopes);
  reduce_dmultiplier(p, options, reduced.dmultiplier, gradients);
  if (norm) {
    const QkNorm::Kind kind = std::get<QkNorm>(options.scale).kind;
    if (dq) normalise_backward(p, kind, false, norm->original_q, reduced.dq, dq);
    if (dk) normalise_backward(p, kind, true, norm->original_k, reduced.dk, dk);
  }
  // Five products a pair: q k, dout v, and the ones that give dv, dq, dk.
  const double flops = pairs(p) * 2 * static_cast<double>(3 * p.D + 2 * p.Dv);
  return {std::string(plan.kernel->name), plan.reason, context.threads(), flops,
          bytes + owned_bytes(p, norm) + reduced.bytes()};
}

}  // namespace levelhead
