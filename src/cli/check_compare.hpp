// `check --compare A B`: two judged captures side by side.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "callers/json.hpp"
#include "cli/check_cells.hpp"
#include "report/page.hpp"

namespace levelhead::cli {

struct Checked {
  Capture capture;
  Judged judged;
};

/// One statistic of the same head in both; B minus A is the change.
struct HeadChange {
  std::int64_t layer = 0, head = 0;
  double a = 0, b = 0;
  double change() const { return b - a; }
};

/// A layer number that one of the captures has, or both.
struct LayerPair {
  std::int64_t number = 0;
  const MeasuredLayer *a = nullptr, *b = nullptr;
  std::vector<HeadChange> heads;  ///< the largest change first; empty where they can't be matched
};

/// A number as columns and charts show it.
struct Compared {
  std::string_view name, title;
  Member member;
};

struct Comparison {
  const Checked *a = nullptr, *b = nullptr;
  std::array<Compared, 2> shown;  ///< heads are compared by the first
  std::vector<LayerPair> layers;  ///< by number
  std::vector<HeadChange> heads;  ///< of all layers, the largest change first
  bool identical = false;         ///< every statistic of every head is the same number
  std::vector<std::string> differs, unmatched;
};

/// Heads are matched by the numbers of layer and head, in layers with as many heads in both.
Comparison compare(const Checked& a, const Checked& b);

std::string compare_text(const Screen& screen, const Comparison& comparison);

/// {captures: [A, B], compare: {...}}
Json compare_json(const Comparison& comparison);

/// The first tab of the page.
report::Tab compare_tab(const Comparison& comparison);

/// What differs and what can't be matched, in sentences.
std::string differs_text(const Comparison& comparison);

/// The verdict of A and that of B with their numbers: "too_sharp, H75 0.097. Likely mistake: the scale is 1".
std::vector<std::string> verdict_lines(const Comparison& comparison);

}  // namespace levelhead::cli
