#include "lab/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/page.hpp"

namespace levelhead::lab {
namespace {

constexpr std::size_t long_table = 24;  // rows, from which on a table opens by a click

std::string verdict_words(const Conclusion& conclusion) {
  std::string words(name_of(conclusion.outcome));
  if (!conclusion.depends_on.empty()) words += " on " + conclusion.depends_on;
  return words;
}

report::Json block(const Table& table) {
  report::Table shown{.title = table.caption, .columns = table.header, .folded = table.cells.size() > long_table};
  for (const auto& row : table.cells) shown.rows.emplace_back(row.begin(), row.end());
  return report::block(shown);
}

report::Section section_of(const Finding& finding) {
  const Experiment& experiment = *finding.experiment;
  report::Section section{.title = fmt::format("{}: {}", experiment.name, experiment.title),
                          .lead = std::string(experiment.question)};
  section.blocks.push_back(report::words(fmt::format("As told: {}", experiment.claim)));
  section.blocks.push_back(
      report::words(fmt::format("Verdict: {}: {}.", verdict_words(finding.conclusion), finding.conclusion.reason)));
  const Exhibit exhibit = experiment.exhibit(finding.rows);
  for (const report::Chart& chart : exhibit.charts) section.blocks.push_back(report::block(chart));
  for (const report::Bars& bars : exhibit.bars) section.blocks.push_back(report::block(bars));
  for (const Table& table : exhibit.tables) section.blocks.push_back(block(table));
  return section;
}

report::Section summary_of(std::span<const Finding> findings) {
  report::Table table{.columns = {"", "claim as told", "verdict"}};
  for (const Finding& finding : findings)
    table.rows.push_back({finding.experiment->name, finding.experiment->claim, name_of(finding.conclusion.outcome)});
  return {.title = "Claims and verdicts", .blocks = {report::block(table)}};
}

std::string counts_of(std::span<const Finding> findings) {
  std::string words;
  for (const Outcome outcome : {Outcome::holds, Outcome::fails, Outcome::depends, Outcome::inconclusive}) {
    const auto count = std::count_if(findings.begin(), findings.end(),
                                     [outcome](const Finding& f) { return f.conclusion.outcome == outcome; });
    if (count > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", name_of(outcome), count);
  }
  return words;
}

}  // namespace

std::string page(std::span<const Finding> findings, std::uint64_t seed) {
  report::Page page{.title = "What is told about the scale of attention, measured",
                    .lead = fmt::format("Why does attention divide by the square root of d_k? Each claim of a popular "
                                        "explanation is one experiment, and its verdict follows from the numbers. Of "
                                        "those run here: {}.",
                                        counts_of(findings)),
                    .foot = fmt::format("Seed {}. Every number stands in the JSON Lines of `levelhead lab all --json "
                                        "FILE`.",
                                        seed)};
  page.tabs.emplace_back();
  page.tabs.front().sections.push_back(summary_of(findings));
  for (const Finding& finding : findings) page.tabs.front().sections.push_back(section_of(finding));
  return report::html(page);
}

}  // namespace levelhead::lab
