// How the rows of an experiment are shown: tables on a terminal and a page, charts on a page.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"

namespace levelhead::lab {

struct Table {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> cells;  ///< rows as wide as the header
};

struct Exhibit {
  std::vector<Table> tables;
  std::vector<report::Chart> charts{};
  std::vector<report::Bars> bars{};
};

}  // namespace levelhead::lab
