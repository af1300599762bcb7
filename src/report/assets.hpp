// The files that are built into every page.
#pragma once

#include <span>
#include <string_view>

namespace levelhead::report {

struct Asset {
  std::string_view text;
  std::string_view hash;  ///< 'sha256-...', as a Content-Security-Policy names it
};

/// page.html, with places {{like_this}}.
std::string_view page_template();

Asset style();

/// In the order they run; the library first.
std::span<const Asset> scripts();

}  // namespace levelhead::report
