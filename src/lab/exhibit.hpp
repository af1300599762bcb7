// How the rows of an experiment are shown: tables on a terminal and a page, charts on a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace levelhead::lab {

struct Table {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> cells;  ///< rows as wide as the header
};

enum class Mark : std::uint8_t { points, line, dashed };

struct Series {
  std::string name;
  Mark mark = Mark::line;
  std::vector<double> x, y;
  std::vector<double> error{};  ///< of y, one standard error each; or empty
};

struct Axis {
  std::string label;  ///< with its unit
  bool logarithmic = false;
};

struct Chart {
  std::string title;
  std::string see;  ///< in one sentence, what to see
  Axis x, y;
  std::vector<Series> series;
};

struct Exhibit {
  std::vector<Table> tables;
  std::vector<Chart> charts{};
};

}  // namespace levelhead::lab
