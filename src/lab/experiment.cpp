#include "lab/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lab/moments.hpp"

namespace levelhead::lab {
namespace {

const Value& find(const Fields& fields, std::string_view name) {
  for (const Field& field : fields)
    if (field.name == name) return field.value;
  throw std::out_of_range("a row has no field '" + std::string(name) + "'");
}

}  // namespace

double number(const Fields& fields, std::string_view name) {
  const Value& value = find(fields, name);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  throw std::out_of_range("field '" + std::string(name) + "' of a row is no number");
}

const std::string& text(const Fields& fields, std::string_view name) {
  if (const auto* words = std::get_if<std::string>(&find(fields, name))) return *words;
  throw std::out_of_range("field '" + std::string(name) + "' of a row is no text");
}

std::vector<Row> of_part(std::span<const Row> rows, std::string_view part) {
  std::vector<Row> chosen;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen),
               [part](const Row& row) { return text(row.parameters, "part") == part; });
  return chosen;
}

std::string_view name_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::holds: return "holds";
    case Outcome::fails: return "fails";
    case Outcome::depends: return "depends";
    case Outcome::inconclusive: return "inconclusive";
  }
  return "";
}

std::int64_t Lab::samples(std::int64_t full, std::int64_t least) const {
  return std::max(least, static_cast<std::int64_t>(std::llround(static_cast<double>(full) * settings_.share)));
}

void Lab::parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
  pool_.run(tasks, [&](std::int64_t task, int) {
    if (!stopped()) body(task);
  });
  if (stopped()) throw Interrupted();
}

void Lab::say(std::string_view what) const {
  if (settings_.on_say) settings_.on_say(what);
}

void Lab::emit(Row row) {
  if (stopped()) throw Interrupted();
  if (settings_.on_row) settings_.on_row(row);
  rows_.push_back(std::move(row));
}

Finding investigate(const Experiment& experiment, Context& context, const Settings& settings) {
  Lab lab(settings, context.threads());
  lab.say(experiment.name);
  experiment.run(context, lab);
  Finding finding{&experiment, {lab.rows().begin(), lab.rows().end()}, {}};
  finding.conclusion = experiment.judge(finding.rows);
  return finding;
}

double worst_of(std::int64_t count) {
  const double share = std::erfc(3 / std::sqrt(2.0)) / static_cast<double>(std::max<std::int64_t>(count, 1));
  double low = 0, high = 10;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > share ? low : high) = middle;
  }
  return high;
}

}  // namespace levelhead::lab
