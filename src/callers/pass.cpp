#include "callers/pass.hpp"

#include <cmath>

#include "core/element.hpp"

namespace levelhead::callers {
namespace {

// [heads, tokens, dim] as [1, heads, tokens, dim]
TensorView batch_of_one(const Tensor& tensor) {
  const auto& shape = tensor.shape();
  return {tensor.view().data, tensor.dtype(), {1, shape[0], shape[1], shape[2]}};
}

bool all_finite(const Tensor& tensor) {
  const TensorView view = tensor.view();
  const auto count = static_cast<std::int64_t>(tensor.bytes().size() / size_of(tensor.dtype()));
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(load(view.data, view.dtype, i))) return false;
  return true;
}

}  // namespace

// Statistics need no values, so v takes part only when it could turn a row into NaN.
LayerPass::LayerPass(const Capture& capture, const CapturedLayer& layer)
    : q(capture.file.read(*layer.q)), k(capture.file.read(*layer.k)), Hq(q.shape()[0]), Nq(q.shape()[1]) {
  inputs.q = batch_of_one(q);
  inputs.k = batch_of_one(k);
  inputs.v = {k.view().data, k.dtype(), {1, k.shape()[0], k.shape()[1], 0}};
  if (layer.v != nullptr) v = capture.file.read(*layer.v);
  if (layer.v != nullptr && !all_finite(v)) {
    inputs.v = batch_of_one(v);
    Dv = v.shape()[2];
  }
  options.scale = Constant{capture.scale};
  options.window = capture.window;
  options.statistics = {StatisticsLevel::all, Precision::exact};
  state.resize(static_cast<std::size_t>(Hq * Nq));
}

RunInfo LayerPass::run(Context& context) {
  Outputs outputs;
  outputs.state = state;
  if (Dv == 0) return forward(context, inputs, options, outputs);
  Tensor o(q.dtype(), {1, Hq, Nq, Dv});
  outputs.o = o.mutable_view();
  RunInfo info = forward(context, inputs, options, outputs);
  nan_output.resize(state.size());
  for (std::size_t row = 0; row < state.size(); ++row)
    for (std::int64_t c = 0; c < Dv && !nan_output[row]; ++c)
      nan_output[row] = std::isnan(load(o.view().data, o.dtype(), static_cast<std::int64_t>(row) * Dv + c));
  return info;
}

std::vector<HeadStatistics> heads_of(const LayerPass& pass) {
  std::vector<HeadStatistics> heads = head_statistics(pass.inputs, pass.options, pass.state);
  if (pass.nan_output.empty()) return heads;
  for (std::int64_t h = 0; h < pass.Hq; ++h) {
    HeadPool pool;
    for (auto row = static_cast<std::size_t>(h * pass.Nq); row < static_cast<std::size_t>((h + 1) * pass.Nq); ++row)
      pool.add(pass.state[row], std::nullopt, pass.nan_output[row]);
    HeadStatistics head = pool.finish();
    head.adjacent_mass = heads[static_cast<std::size_t>(h)].adjacent_mass;
    heads[static_cast<std::size_t>(h)] = head;
  }
  return heads;
}

}  // namespace levelhead::callers
