#include "cli/measure.hpp"

#include <algorithm>
#include <cmath>

#include "cli/progress.hpp"
#include "core/element.hpp"

namespace levelhead::cli {
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

/// One layer's forward pass, for its states alone.
struct Pass {
  Tensor q, k, v;
  Inputs inputs;
  Options options;
  std::vector<RowState> state;   // [Hq, Nq]
  std::vector<bool> nan_output;  // [Hq, Nq], or empty when v cannot bring a NaN
  std::int64_t Hq = 0, Nq = 0, Dv = 0;

  Pass(const Capture& capture, const CapturedLayer& layer);
  RunInfo run(Context& context);
};

// Statistics need no values, so v takes part only when it could turn a row into NaN.
Pass::Pass(const Capture& capture, const CapturedLayer& layer)
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

RunInfo Pass::run(Context& context) {
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

std::vector<HeadStatistics> heads_of(const Pass& pass) {
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

MeasuredLayer select_heads(const CapturedLayer& layer, Pass& pass, const Selection& selection) {
  MeasuredLayer measured{layer.number, {}};
  const std::vector<HeadStatistics> heads = heads_of(pass);
  for (std::int64_t h = 0; h < pass.Hq; ++h) {
    if (selection.head && *selection.head != h) continue;
    MeasuredHead head{h, heads[static_cast<std::size_t>(h)], {}};
    if (selection.head) head.rows.assign(pass.state.begin() + h * pass.Nq, pass.state.begin() + (h + 1) * pass.Nq);
    measured.heads.push_back(std::move(head));
  }
  return measured;
}

ScaleFacts facts_of(const Capture& capture, const CapturedLayer& layer) {
  ScaleFacts facts;
  facts.D = layer.q->shape[2];
  facts.heads = layer.q->shape[0];
  facts.kv_heads = layer.k->shape[0];
  facts.d_model = capture.d_model;
  if (layer.v != nullptr) facts.Dv = layer.v->shape[2];
  facts.yarn_mscale = capture.yarn_mscale;
  return facts;
}

std::vector<NamedScale> names_in_every_layer(const Capture& capture) {
  std::vector<NamedScale> names = scale_is(capture.scale, facts_of(capture, capture.layers.front()));
  for (const CapturedLayer& layer : capture.layers) {
    const std::vector<NamedScale> here = scale_is(capture.scale, facts_of(capture, layer));
    std::erase_if(names,
                  [&](const NamedScale& name) { return std::find(here.begin(), here.end(), name) == here.end(); });
  }
  return names;
}

void check_selection(const Capture& capture, const Selection& selection) {
  bool found = false;
  std::string there;
  for (const CapturedLayer& layer : capture.layers) {
    if (selection.layer && *selection.layer != layer.number) {
      there.append(there.empty() ? "" : ", ").append(std::to_string(layer.number));
      continue;
    }
    found = true;
    if (selection.head && *selection.head >= layer.q->shape[0])
      throw Error("layer " + std::to_string(layer.number) + " has no head " + std::to_string(*selection.head) +
                  ", only 0 to " + std::to_string(layer.q->shape[0] - 1));
  }
  if (!found) throw Error("there is no layer " + std::to_string(*selection.layer) + ", only " + there);
}

void describe(const Capture& capture, Judged& judged) {
  const CapturedLayer& first = capture.layers.front();
  judged.heads = first.q->shape[0];
  judged.kv_heads = first.k->shape[0];
  judged.Nq = first.q->shape[1];
  judged.Nk = first.k->shape[1];
  judged.D = first.q->shape[2];
  judged.scale_is = names_in_every_layer(capture);
}

Judged measure_layers(const Capture& capture, const Selection& selection, int threads) {
  check_selection(capture, selection);
  Judged judged;
  describe(capture, judged);
  Context context(threads);
  Progress progress("measuring");
  std::vector<HeadStatistics> chosen;
  std::int64_t all = 0;
  for (const CapturedLayer& layer : capture.layers) {
    all += layer.q->shape[0];
    if (selection.layer && *selection.layer != layer.number) continue;
    progress.say("measuring layer " + std::to_string(layer.number));
    try {
      Pass pass(capture, layer);
      judged.kernel = pass.run(context).kernel;
      judged.layers.push_back(select_heads(layer, pass, selection));
    } catch (const Error& error) {
      throw Error("layers." + std::to_string(layer.number) + ": " + error.what());
    }
    for (const MeasuredHead& head : judged.layers.back().heads) chosen.push_back(head.statistics);
  }
  if (static_cast<std::int64_t>(chosen.size()) < all) judged.scope = Scope::part;
  judged.verdict = judge(chosen, judged.scope, judged.scale_is);
  return judged;
}

}  // namespace

Judged measure(const Capture& capture, const Selection& selection, int threads) {
  try {
    return measure_layers(capture, selection, threads);
  } catch (const Error& error) {
    throw Error(escaped(capture.file.name()) + ": " + error.what());
  }
}

}  // namespace levelhead::cli
