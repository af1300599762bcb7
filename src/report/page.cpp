#include "report/page.hpp"

#include <cmath>

#include "levelhead/version.hpp"
#include "report/assets.hpp"

namespace levelhead::report {
namespace {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

Json json(const Axis& axis) {
  Json json{{"title", axis.title}, {"log", axis.log}};
  if (axis.min) json["min"] = *axis.min;
  if (axis.max) json["max"] = *axis.max;
  for (const auto& [at, label] : axis.ticks) json["ticks"].push_back({{"at", at}, {"label", label}});
  return json;
}

Json json(const Point& point) {
  Json json{{"x", number(point.x)}, {"y", number(point.y)}};
  if (!point.label.empty()) json["label"] = point.label;
  if (point.shade) json["shade"] = number(*point.shade);
  if (point.error) json["error"] = number(*point.error);
  if (point.aside != 0) json["aside"] = number(point.aside);
  return json;
}

Json json(const Series& series) {
  constexpr std::array<std::string_view, 3> styles{"line", "dashed", "points"};
  Json json{{"name", series.name}, {"style", styles[static_cast<std::size_t>(series.style)]}};
  json["points"] = Json::array();
  for (const Point& point : series.points) json["points"].push_back(report::json(point));
  return json;
}

Json json(const std::vector<Mark>& marks) {
  Json list = Json::array();
  for (const Mark& mark : marks) {
    Json json{{"axis", mark.axis == Mark::Across::x ? "x" : "y"}, {"at", mark.at}, {"label", mark.label}};
    if (mark.to) json["to"] = *mark.to;
    if (mark.below) json["below"] = true;
    list.push_back(std::move(json));
  }
  return list;
}

Json json(const Page& page) {
  Json tabs = Json::array();
  for (const Tab& tab : page.tabs) {
    Json sections = Json::array();
    for (const Section& section : tab.sections)
      sections.push_back({{"title", section.title}, {"lead", section.lead}, {"blocks", section.blocks}});
    tabs.push_back({{"title", tab.title}, {"sections", std::move(sections)}});
  }
  return {{"title", page.title}, {"lead", page.lead}, {"foot", page.foot},
          {"version", version},  {"tabs", tabs},      {"definitions", page.definitions},
          {"data", page.data}};
}

std::string inside_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

// Scripts and the style are allowed by their hashes, everything else that a page could load or run is not.
std::string policy() {
  std::string allowed;
  for (const Asset& script : scripts()) allowed.append(" ").append(script.hash);
  return "default-src 'none'; script-src" + allowed + "; style-src " + std::string(style().hash) +
         "; base-uri 'none'; form-action 'none'";
}

std::string script_elements() {
  std::string elements;
  for (const Asset& script : scripts()) elements.append("<script>").append(script.text).append("</script>\n");
  return elements;
}

std::string value_of(std::string_view place, const Page& page) {
  if (place == "policy") return policy();
  // Through JSON, which mends text that is no UTF-8.
  if (place == "title")
    return inside_html(
        Json::parse(Json(page.title).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>());
  if (place == "style") return std::string(style().text);
  if (place == "data") return inside_script(json(page));
  if (place == "scripts") return script_elements();
  return {};
}

}  // namespace

Json block(const Chart& chart) {
  Json block{{"kind", "chart"}, {"title", chart.title}, {"says", chart.says}};
  block["x"] = json(chart.x);
  block["y"] = json(chart.y);
  block["series"] = Json::array();
  for (const Series& series : chart.series) block["series"].push_back(json(series));
  block["marks"] = json(chart.marks);
  return block;
}

Json block(const Bars& bars) {
  Json block{{"kind", "bars"}, {"title", bars.title}, {"says", bars.says}, {"labels", bars.labels}};
  block["y"] = json(bars.y);
  block["series"] = Json::array();
  for (const Bars::Series& series : bars.series) {
    Json values = Json::array();
    for (const double x : series.values) values.push_back(number(x));
    block["series"].push_back({{"name", series.name}, {"values", std::move(values)}});
  }
  block["marks"] = json(bars.marks);
  return block;
}

Json block(const Table& table) {
  return {{"kind", "table"},
          {"title", table.title},
          {"columns", table.columns},
          {"rows", table.rows},
          {"folded", table.folded}};
}

Json words(std::string_view text) { return {{"kind", "words"}, {"text", text}}; }

std::string inside_script(const Json& json) {
  std::string safe;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    // Outside of strings JSON has no '<', so the escape never stands where it could not.
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

std::string html(const Page& page) {
  std::string file;
  std::string_view rest = page_template();
  for (std::size_t open = rest.find("{{"); open != std::string_view::npos; open = rest.find("{{")) {
    const std::size_t close = rest.find("}}", open);
    file.append(rest.substr(0, open)).append(value_of(rest.substr(open + 2, close - open - 2), page));
    rest.remove_prefix(close + 2);
  }
  return file.append(rest);
}

}  // namespace levelhead::report
