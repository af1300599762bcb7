// The tables of docs/numbers.md that hold figures of the two captures: what `levelhead check --json -` says today.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/driver.hpp"

namespace levelhead::test {
namespace {

using Json = nlohmann::json;

std::string page() {
  std::ifstream in(LEVELHEAD_SOURCE_DIR "/docs/numbers.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A number of every head of a capture, sorted.
std::vector<double> of_all_heads(const Json& capture, const std::string& name) {
  std::vector<double> values;
  for (const Json& layer : capture.at("layers"))
    for (const Json& head : layer.at("heads")) values.push_back(head.at(name).get<double>());
  std::sort(values.begin(), values.end());
  return values;
}

/// The value below which a share of the heads lies, by nearest rank.
double quantile(const std::vector<double>& sorted, double share) {
  return sorted.at(static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1))));
}

/// Three digits, and none for what rounds to 0.
std::string digits(double x) { return std::abs(x) < 5e-4 ? "0" : fmt::format("{:.3g}", x); }

/// 5 %, half and 95 % of the heads of each capture.
std::vector<double> figures_of(const std::vector<Json>& captures, const std::string& name) {
  std::vector<double> figures;
  for (const Json& capture : captures) {
    const std::vector<double> values = of_all_heads(capture, name);
    for (const double share : {0.05, 0.5, 0.95}) figures.push_back(quantile(values, share));
  }
  return figures;
}

std::string row_of(const std::string& name, const std::vector<double>& figures) {
  std::string row = "| " + name + " |";
  for (const double x : figures) row += " " + digits(x) + " |";
  return row;
}

/// The numbers of the page's row that starts with name.
std::vector<double> row_in(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("\n| " + name + " | ");
  std::vector<double> numbers;
  if (begin == std::string::npos) return numbers;
  std::istringstream row(text.substr(begin + name.size() + 5, text.find('\n', begin + 1) - begin - name.size() - 5));
  for (std::string cell; std::getline(row, cell, '|');)
    if (!cell.empty()) numbers.push_back(std::stod(cell));
  return numbers;
}

// Three digits, within 1 %: kernels differ in what they round. On a difference it prints the row as it has to be.
TEST(NumbersPage, TableOfTheCaptures) {
  const Finished result = run({"check", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::vector<Json> captures;
  for (const std::string& line : result.lines()) captures.push_back(Json::parse(line));
  ASSERT_EQ(captures.size(), 2U);
  const std::string section = page().substr(page().find("## What healthy looks like"));
  for (const char* name :
       {"logit_mean", "logit_std", "logit_std_within", "logit_max", "logit_min", "lse", "entropy", "entropy_ratio",
        "perplexity", "effective_keys", "top1", "saturated", "trace_gain", "frobenius_gain", "first_key_mass", "z"}) {
    const std::vector<double> want = figures_of(captures, name), told = row_in(section, name);
    SCOPED_TRACE("the row should be: " + row_of(name, want));
    ASSERT_EQ(told.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(told[i], want[i], 0.01 * std::abs(want[i]) + 1e-3);
  }
}

}  // namespace
}  // namespace levelhead::test
