#include "cli/lab_text.hpp"

#include <algorithm>

namespace levelhead::cli {
namespace {

using lab::Outcome;

Colour colour_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::holds: return Colour::green;
    case Outcome::fails: return Colour::red;
    case Outcome::depends: return Colour::yellow;
    case Outcome::inconclusive: return Colour::bold;
  }
  return Colour::none;
}

std::string table_text(const Screen& screen, const lab::Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.header) widths.push_back(width_of(name));
  for (const auto& row : table.cells)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text;
    for (std::size_t c = 0; c < row.size(); ++c) text += (c == 0 ? "    " : "  ") + padded(row[c], widths[c]);
    return text.erase(text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = wrapped(screen, table.caption + ":", "  ", "  ");
  text += paint(screen, Colour::dim, line(table.header));
  for (const auto& row : table.cells) text += line(row);
  return text + "\n";
}

std::string verdict_name(const Screen& screen, const lab::Conclusion& conclusion) {
  return paint(screen, colour_of(conclusion.outcome), lab::name_of(conclusion.outcome));
}

std::size_t widest_name(std::span<const lab::Experiment* const> experiments) {
  std::size_t widest = 0;
  for (const lab::Experiment* experiment : experiments) widest = std::max(widest, experiment->name.size());
  return widest;
}

}  // namespace

std::string list_text(const Screen& screen, std::span<const lab::Experiment* const> experiments) {
  const std::size_t width = widest_name(experiments) + 2;
  std::string text;
  for (const lab::Experiment* experiment : experiments)
    text +=
        wrapped(screen, experiment->question, padded(std::string(experiment->name), width), std::string(width, ' '));
  return text;
}

std::string finding_text(const Screen& screen, const lab::Finding& finding) {
  const lab::Experiment& experiment = *finding.experiment;
  std::string text =
      paint(screen, Colour::bold, std::string(experiment.name) + "  " + std::string(experiment.title)) + "\n";
  text += wrapped(screen, experiment.question, "", "");
  text += wrapped(screen, experiment.claim, "Told: ", "      ") + "\n";
  for (const lab::Table& table : experiment.exhibit(finding.rows).tables) text += table_text(screen, table);
  const lab::Conclusion& conclusion = finding.conclusion;
  std::string verdict = verdict_name(screen, conclusion);
  if (!conclusion.depends_on.empty()) verdict += " on " + conclusion.depends_on;
  return text + wrapped(screen, verdict + ": " + conclusion.reason, "Verdict: ", "         ");
}

std::string summary_text(const Screen& screen, std::span<const lab::Finding> findings) {
  std::size_t width = 0;
  for (const lab::Finding& finding : findings) width = std::max(width, finding.experiment->name.size());
  std::string text;
  for (const lab::Finding& finding : findings) {
    const std::string_view name = lab::name_of(finding.conclusion.outcome);
    text += padded(std::string(finding.experiment->name), width + 2) + verdict_name(screen, finding.conclusion) +
            std::string(14 - name.size(), ' ') + std::string(finding.experiment->title) + "\n";
  }
  return text;
}

}  // namespace levelhead::cli
