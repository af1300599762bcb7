#include "callers/check_json.hpp"

#include "callers/json.hpp"

namespace levelhead::callers {
namespace {

Json number_or_null(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

Json fresh_verdict_json(const Verdict& verdict, const FreshVerdict& fresh) {
  Json json{{"name", name_of(verdict.name)}, {"rule", "fresh"}};
  json["spread"] = number_or_null(fresh.spread);
  json["limits"] = {FreshVerdict::low_limit, FreshVerdict::high_limit};
  json["heads"] = fresh.heads;
  json["heads_outside"] = fresh.outside;
  json["suggested_scale"] = number_or_null(fresh.suggested_scale);
  json["h75"] = number_or_null(verdict.h75);
  json["likely_mistake"] = verdict.likely_mistake ? Json(*verdict.likely_mistake) : Json(nullptr);
  json["reason"] = verdict.reason;
  return json;
}

Json verdict_json(const Verdict& verdict) {
  Json json{{"name", name_of(verdict.name)},
            {"rule", "h75"},
            {"h75", nullptr},
            {"limits", {Verdict::sharp_limit, Verdict::flat_limit}},
            {"likely_mistake", nullptr},
            {"reason", verdict.reason}};
  if (verdict.h75) json["h75"] = *verdict.h75;
  if (verdict.likely_mistake) json["likely_mistake"] = *verdict.likely_mistake;
  return json;
}

}  // namespace

Json check_json(const Capture& capture, const Judged& judged) {
  Json json{{"file", capture.file.name()}};
  json["model"] = capture.model ? Json(*capture.model) : Json(nullptr);
  json["scale"] = capture.scale;
  json["scale_is"] = Json::array();
  for (const NamedScale& scale : judged.scale_is) json["scale_is"].push_back(scale.name);
  json["verdict"] = judged.fresh ? fresh_verdict_json(judged.verdict, *judged.fresh) : verdict_json(judged.verdict);
  json["kernel"] = judged.kernel;
  json["layers"] = Json::array();
  for (const MeasuredLayer& layer : judged.layers) {
    Json heads = Json::array();
    for (const MeasuredHead& head : layer.heads) {
      heads.push_back(to_json(head.number, head.statistics));
      if (head.expected_spread) heads.back()["expected_spread"] = *head.expected_spread;
      if (head.suggested_scale) heads.back()["suggested_scale"] = *head.suggested_scale;
    }
    json["layers"].push_back({{"layer", layer.number}, {"heads", std::move(heads)}});
  }
  return json;
}

}  // namespace levelhead::callers
