// The file that a page becomes: nothing that strangers wrote can leave its place, and nothing is loaded.
#include "report/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace levelhead::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string hostile = "</script><img src=x onerror=alert(1)><!-- {{scripts}} & \xff";
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

Page page_named(const std::string& name) {
  Page page;
  page.title = page.lead = page.foot = name;
  page.data = {{name, name}};
  page.definitions = {{name, {{"label", name}, {"text", name}}}};
  const Chart chart{.title = name, .says = name, .x = {name}, .y = {name}, .series = {{name, {}, {{1, 2, name}}}}};
  const Bars bars{.title = name, .says = name, .labels = {name}, .y = {name}, .series = {{name, {1}}}};
  const Table table{.title = name, .columns = {name}, .rows = {{name}}};
  page.tabs = {{name, {{name, name, {words(name), block(chart), block(bars), block(table)}}}}};
  return page;
}

/// What stands in the JSON element of the page.
Json data_of(const std::string& file) {
  const std::string open = "<script type=\"application/json\" id=\"page\">";
  const std::size_t begin = file.find(open) + open.size();
  return Json::parse(file.substr(begin, file.find("</script>", begin) - begin));
}

TEST(Page, HostileNamesStayText) {
  const std::string good = html(page_named("name")), bad = html(page_named(hostile));
  EXPECT_THAT(good, StartsWith("<!doctype html>"));
  EXPECT_EQ(count(bad, "<img"), 0U);
  for (const std::string_view part : {"<", "</script>", "<script", "<!--"})
    EXPECT_EQ(count(bad, part), count(good, part));
  EXPECT_THAT(bad,
              HasSubstr("<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&lt;!-- {{scripts}} &amp; \uFFFD"));
}

TEST(Page, NamesComeOutAsTheyWentIn) {
  const std::string text = "</script> <!-- \\ \" \u2028 ü";
  const Json json = data_of(html(page_named(text)));
  EXPECT_EQ(json.at("title"), text);
  EXPECT_EQ(json.at("data").at(text), text);
  EXPECT_EQ(json.at("tabs")[0].at("sections")[0].at("blocks")[3].at("rows")[0][0], text);
}

TEST(Page, EveryPlaceOfTheTemplateIsFilled) { EXPECT_THAT(html(page_named("name")), Not(HasSubstr("{{"))); }

TEST(Page, LoadsNothingAndAllowsOnlyItsOwnScripts) {
  const std::string file = html(page_named("name"));
  EXPECT_THAT(file, HasSubstr("default-src 'none'; script-src 'sha256-"));
  for (const std::string_view part : {"unsafe", "<link", "<iframe", "@import", "url(", "<script src", "fetch("})
    EXPECT_THAT(file, Not(HasSubstr(std::string(part))));
}

TEST(Page, SameBytesEachTime) { EXPECT_EQ(html(page_named("name")), html(page_named("name"))); }

TEST(Page, WhatIsNotFiniteIsNull) {
  const Chart chart{.x = {}, .y = {}, .series = {{"", Series::Style::points, {{1, nan, "", nan}}}}};
  const Json point = block(chart).at("series")[0].at("points")[0];
  EXPECT_EQ(point.at("x"), 1);
  EXPECT_TRUE(point.at("y").is_null());
  EXPECT_TRUE(point.at("shade").is_null());
  const Bars bars{.labels = {"a", "b"}, .y = {}, .series = {{"", {nan, 2}}}};
  EXPECT_EQ(block(bars).at("series")[0].at("values"), Json({nullptr, 2.0}));
}

}  // namespace
}  // namespace levelhead::report
