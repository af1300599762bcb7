// A page of text, charts and tables as one HTML file that loads nothing. Describe it here; page.js draws it.
//
// Strings are shown as they are: no markup of theirs is ever read as HTML. In fields that say "words", `code` and
// [label](term) are marked up, term being a name of definitions.hpp that is explained on hover.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace levelhead::report {

using Json = nlohmann::ordered_json;

struct Axis {
  std::string title{};
  std::optional<double> min{}, max{};
  bool log = false;
  std::vector<std::pair<double, std::string>> ticks{};  ///< where and what; empty: chosen
};

/// Not finite: a gap in a line.
struct Point {
  double x = 0, y = 0;
  std::string label{};            ///< said on hover, and in the table under the chart
  std::optional<double> shade{};  ///< 0 to 1: its colour on the page's ramp, in place of its series' own
  std::optional<double> error{};  ///< of y: a bar from y - error to y + error
  double aside = 0;               ///< drawn this share of the x axis beside x, so that points do not hide each other
};

struct Series {
  enum class Style : std::uint8_t { line, dashed, points };
  std::string name{};
  Style style = Style::line;
  std::vector<Point> points{};
};

/// A straight line across the chart, or with `to` a band.
struct Mark {
  enum class Across : std::uint8_t { x, y };  ///< x: at one x, so it stands upright
  Across axis = Across::y;
  double at = 0;
  std::optional<double> to{};
  std::string label{};
  bool below = false;  ///< the label of a line across y stands under it
};

struct Chart {
  std::string title{};
  std::string says{};  ///< words: one sentence, what to see
  Axis x{}, y{};
  std::vector<Series> series{};
  std::vector<Mark> marks{};
};

/// A bar for each label and series; a bar that is not finite is left out.
struct Bars {
  struct Series {
    std::string name{};
    std::vector<double> values{};  // as many as labels
  };
  std::string title{};
  std::string says{};  ///< words
  std::vector<std::string> labels{};
  Axis y{};
  std::vector<Series> series{};
  std::vector<Mark> marks{};  ///< across y
};

struct Table {
  std::string title{};
  std::vector<std::string> columns{};
  std::vector<std::vector<Json>> rows{};  ///< numbers, strings, null
  bool folded = false;                    ///< opened by a click
};

/// Blocks of a section, in the form that page.js reads: {"kind": ..., ...}.
Json block(const Chart& chart);
Json block(const Bars& bars);
Json block(const Table& table);
Json words(std::string_view text);  ///< a paragraph

struct Section {
  std::string title{};
  std::string lead{};  ///< words
  std::vector<Json> blocks{};
};

struct Tab {
  std::string title{};
  std::vector<Section> sections{};
};

struct Page {
  std::string title{};
  std::string lead{};                 ///< words
  std::string foot{};                 ///< words
  std::vector<Tab> tabs{};            ///< one: no tabs are shown
  Json data = nullptr;                ///< whatever kinds of blocks share
  Json definitions = Json::object();  ///< term: {label, text}
};

/// The whole file. The same page gives the same bytes.
std::string html(const Page& page);

/// JSON text that may stand inside a <script> element: nothing in it can end or nest one.
std::string inside_script(const Json& json);

}  // namespace levelhead::report
