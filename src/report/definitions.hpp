// The words and numbers of a page in a sentence each, for readers who meet them first: the one source of what is shown
// on hover. Formulas stand in docs/numbers.md.
#pragma once

#include <span>
#include <string_view>

#include "report/page.hpp"

namespace levelhead::report {

struct Definition {
  std::string_view term;   ///< a statistic as in JSON, a flag, a verdict
  std::string_view label;  ///< as it is read
  std::string_view text;
};

std::span<const Definition> definitions();

/// The label of a term, or the term itself if there is none.
std::string_view label_of(std::string_view term);

/// {term: {label, text}}: what Page::definitions wants.
Json definitions_json();

}  // namespace levelhead::report
