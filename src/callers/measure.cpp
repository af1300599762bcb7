#include "callers/measure.hpp"

#include <algorithm>
#include <cmath>

#include "callers/pass.hpp"

namespace levelhead::callers {
namespace {

MeasuredLayer select_heads(const CapturedLayer& layer, LayerPass& pass, const Selection& selection, Rule rule,
                           double scale) {
  MeasuredLayer measured{layer.number, {}};
  const std::vector<HeadStatistics> heads = heads_of(pass);
  std::vector<std::optional<double>> expected(heads.size());
  if (rule == Rule::fresh) expected = expected_spread(pass.inputs, pass.options, pass.state);
  for (std::int64_t h = 0; h < pass.Hq; ++h) {
    if (selection.head && *selection.head != h) continue;
    MeasuredHead head{h, heads[static_cast<std::size_t>(h)], expected[static_cast<std::size_t>(h)], {}, {}};
    if (rule == Rule::fresh) head.suggested_scale = suggested_scale(scale, head.statistics);
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

void judge_heads(const Capture& capture, std::span<const HeadStatistics> heads, Rule rule, Judged& judged) {
  judged.verdict = judge(heads, judged.scope, judged.scale_is);
  if (rule == Rule::h75) return;
  judged.fresh = judge_fresh(heads, capture.scale, judged.scope, judged.scale_is);
  judged.verdict.name = judged.fresh->name;
  judged.verdict.likely_mistake = judged.fresh->likely_mistake;
  judged.verdict.reason = judged.fresh->reason;
}

Judged measure_layers(const Capture& capture, const Selection& selection, Rule rule, int threads,
                      const std::function<void(std::int64_t)>& on_layer) {
  check_selection(capture, selection);
  Judged judged;
  describe(capture, judged);
  Context context(threads);
  std::vector<HeadStatistics> chosen;
  std::int64_t all = 0;
  for (const CapturedLayer& layer : capture.layers) {
    all += layer.q->shape[0];
    if (selection.layer && *selection.layer != layer.number) continue;
    on_layer(layer.number);
    try {
      LayerPass pass(capture, layer);
      judged.kernel = pass.run(context).kernel;
      judged.layers.push_back(select_heads(layer, pass, selection, rule, capture.scale));
    } catch (const Error& error) {
      throw Error("layers." + std::to_string(layer.number) + ": " + error.what());
    }
    for (const MeasuredHead& head : judged.layers.back().heads) chosen.push_back(head.statistics);
  }
  if (static_cast<std::int64_t>(chosen.size()) < all) judged.scope = Scope::part;
  judge_heads(capture, chosen, rule, judged);
  return judged;
}

}  // namespace

Judged measure(const Capture& capture, const Selection& selection, Rule rule, int threads,
               const std::function<void(std::int64_t)>& on_layer) {
  try {
    return measure_layers(capture, selection, rule, threads, on_layer);
  } catch (const Error& error) {
    throw Error(escaped(capture.file.name()) + ": " + error.what());
  }
}

}  // namespace levelhead::callers
