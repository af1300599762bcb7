// One call from inputs to the tensors that are written.
#include <chrono>

#include "callers/row_arrays.hpp"
#include "cli/attend.hpp"
#include "cli/progress.hpp"
#include "core/problem.hpp"

namespace levelhead::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

DType accumulator_of(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

std::optional<double> sink_of(const Problem& p, std::size_t row) {
  return p.Nq == 0 ? std::nullopt : p.sink(static_cast<std::int64_t>(row) / p.Nq % p.Hq);
}

Tensor& add(AttendResult& result, std::string name, DType type, std::vector<std::int64_t> shape) {
  return result.tensors.emplace_back(std::move(name), Tensor(type, std::move(shape))).second;
}

// stats.<name> [B, Hq, Nq] for each statistic of a row.
void add_statistics(const Problem& p, AttendResult& result) {
  callers::write_row_arrays(
      result.state, StatisticsLevel::all, accumulator_of(p.dtype), [&](std::size_t row) { return sink_of(p, row); },
      [&](std::string_view name, DType type) {
        return add(result, "stats." + std::string(name), type, {p.B, p.Hq, p.Nq}).mutable_view();
      });
}

/// Shapes of the inputs that have a gradient beside q, k and v.
const std::vector<std::int64_t>* shape_of(const AttendCall& call, std::string_view name) {
  const auto found = call.tensors.find(name);
  return found == call.tensors.end() ? nullptr : &found->second.shape();
}

// dscale has the shape of scale in the file; the library knows per-row scales as [B, Hq, Nq] only.
MutableTensorView like(const Tensor& tensor, const TensorView& input, MutableTensorView view) {
  if (static_cast<int>(tensor.shape().size()) == input.rank) return view;
  view.rank = input.rank;
  view.sizes = input.sizes;
  view.strides = {0, view.strides[0], view.strides[1], 0};
  return view;
}

void run_backward(Context& context, const AttendCall& call, const Problem& p, AttendResult& result) {
  const DType type = accumulator_of(p.dtype);
  Gradients gradients;
  gradients.dq = add(result, "dq", p.dtype, {p.B, p.Hq, p.Nq, p.D}).mutable_view();
  gradients.dk = add(result, "dk", p.dtype, {p.B, p.Hk, p.Nk, p.D}).mutable_view();
  gradients.dv = add(result, "dv", p.dtype, {p.B, p.Hk, p.Nk, p.Dv}).mutable_view();
  const auto add_like = [&](std::string_view input, std::string name, std::optional<MutableTensorView>& gradient) {
    if (const auto* shape = shape_of(call, input)) gradient = add(result, std::move(name), type, *shape).mutable_view();
  };
  add_like("bias", "dbias", gradients.dbias);
  add_like("sinks", "dsinks", gradients.dsinks);
  add_like("alibi_slopes", "dslopes", gradients.dalibi_slopes);
  add_like("scale", "dscale", gradients.dscale);
  if (const auto* rows = std::get_if<PerRow>(&call.options.scale))
    gradients.dscale = like(result.tensors.back().second, rows->values, *gradients.dscale);
  add_like("ssmax_s", "dssmax_s", gradients.dssmax_s);
  add_like("qk_gain", "dqk_gain", gradients.dqk_gain);

  const Progress progress("backward");
  const auto start = Clock::now();
  result.backward = backward(context, call.inputs, call.options, Saved{result.state}, call.output_gradients, gradients);
  result.backward_seconds = seconds_since(start);
}

}  // namespace

AttendResult run_call(const AttendCall& call, bool stats, int threads) {
  const Problem p = make_problem(call.inputs, call.options);  // shapes are checked before outputs are allocated
  Context context(threads);
  AttendResult result;
  Outputs outputs;
  outputs.o = add(result, "o", p.dtype, {p.B, p.Hq, p.Nq, p.Dv}).mutable_view();
  outputs.lse = add(result, "lse", accumulator_of(p.dtype), {p.B, p.Hq, p.Nq}).mutable_view();
  if (stats || call.needs_backward()) {
    result.state.resize(static_cast<std::size_t>(p.B * p.Hq * p.Nq));
    outputs.state = result.state;
  }
  {
    const Progress progress("forward");
    const auto start = Clock::now();
    result.forward = forward(context, call.inputs, call.options, outputs);
    result.forward_seconds = seconds_since(start);
  }
  if (stats) add_statistics(p, result);
  if (call.needs_backward()) run_backward(context, call, p, result);
  return result;
}

}  // namespace levelhead::cli
