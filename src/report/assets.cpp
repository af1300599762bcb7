#include "report/assets.hpp"

#include <array>

#include "asset_hashes.hpp"
#include "io/embed.hpp"

LEVELHEAD_EMBED(levelhead_chart_js, LEVELHEAD_CHART_JS);
LEVELHEAD_EMBED(levelhead_page_html, LEVELHEAD_REPORT_DIR "/page.html");
LEVELHEAD_EMBED(levelhead_page_css, LEVELHEAD_REPORT_DIR "/page.css");
LEVELHEAD_EMBED(levelhead_page_js, LEVELHEAD_REPORT_DIR "/page.js");
LEVELHEAD_EMBED(levelhead_charts_js, LEVELHEAD_REPORT_DIR "/charts.js");
LEVELHEAD_EMBED(levelhead_check_js, LEVELHEAD_REPORT_DIR "/check.js");
LEVELHEAD_EMBED(levelhead_attention_js, LEVELHEAD_REPORT_DIR "/attention.js");

namespace levelhead::report {
namespace {

std::string_view text(const std::byte* begin, const std::byte* end) {
  return {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view page_template() { return text(levelhead_page_html, levelhead_page_html_end); }

Asset style() { return {text(levelhead_page_css, levelhead_page_css_end), page_css_hash}; }

std::span<const Asset> scripts() {
  static const std::array all{
      Asset{text(levelhead_chart_js, levelhead_chart_js_end), chart_min_js_hash},
      Asset{text(levelhead_page_js, levelhead_page_js_end), page_js_hash},
      Asset{text(levelhead_charts_js, levelhead_charts_js_end), charts_js_hash},
      Asset{text(levelhead_check_js, levelhead_check_js_end), check_js_hash},
      Asset{text(levelhead_attention_js, levelhead_attention_js_end), attention_js_hash},
  };
  return all;
}

}  // namespace levelhead::report
