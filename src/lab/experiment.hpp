// What an experiment is: a claim, a run that leaves rows of numbers, and a verdict that follows from the rows alone.
//
// Nothing but the rows passes from run to judge and exhibit, so a verdict can't know more than the data do.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/parallel.hpp"
#include "lab/exhibit.hpp"
#include "levelhead/attention.hpp"

namespace levelhead::lab {

using Value = std::variant<std::int64_t, double, std::string>;
struct Field {
  std::string name;
  Value value;
};
using Fields = std::vector<Field>;

/// The number of that name; throws std::out_of_range without one.
double number(const Fields& fields, std::string_view name);
/// The text of that name; throws std::out_of_range without one.
const std::string& text(const Fields& fields, std::string_view name);

/// One object of the JSON Lines.
struct Row {
  Fields parameters;  ///< what was set; "part" names the kind of row where there are several
  Fields measured;    ///< what came out
  Fields told;        ///< what the explanation says it is, under the names of `measured`; may be empty
};

/// The rows of one part, in order.
std::vector<Row> of_part(std::span<const Row> rows, std::string_view part);

/// depends: it is so in some settings and not in others. inconclusive: the data can't tell.
enum class Outcome : std::uint8_t { holds, fails, depends, inconclusive };
std::string_view name_of(Outcome outcome) noexcept;

struct Conclusion {
  Outcome outcome = Outcome::inconclusive;
  std::string reason;      ///< with the numbers that decided
  std::string depends_on;  ///< only with depends
};

struct Settings {
  std::uint64_t seed = 1;
  double share = 1;                              ///< of the samples: below 1 is quicker, and errors are wider
  std::function<void(const Row&)> on_row;        ///< called as each row is measured
  std::function<void(std::string_view)> on_say;  ///< what is being done now
  const std::atomic<int>* stop = nullptr;        ///< not 0: end as soon as possible
};

/// Thrown out of a run when Settings::stop was set.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// What a run works with.
class Lab {
 public:
  Lab(Settings settings, int threads) : settings_(std::move(settings)), pool_(threads) {}

  std::uint64_t seed() const noexcept { return settings_.seed; }
  /// How many samples to take where `full` are wanted; at least `least`.
  std::int64_t samples(std::int64_t full, std::int64_t least = 1) const;
  /// body(task) for each task, on all threads; tasks may not share what they write. Throws Interrupted.
  void parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& body);
  void say(std::string_view what) const;
  /// Throws Interrupted.
  void emit(Row row);

  std::span<const Row> rows() const noexcept { return rows_; }

 private:
  bool stopped() const noexcept { return settings_.stop != nullptr && settings_.stop->load() != 0; }

  Settings settings_;
  Pool pool_;
  std::vector<Row> rows_;
};

struct Experiment {
  std::string_view name, title;
  std::string_view question;  ///< as a reader would ask it
  std::string_view claim;     ///< as told
  void (*run)(Context&, Lab&) = nullptr;
  Conclusion (*judge)(std::span<const Row>) = nullptr;
  Exhibit (*exhibit)(std::span<const Row>) = nullptr;
};

struct Finding {
  const Experiment* experiment = nullptr;
  std::vector<Row> rows;
  Conclusion conclusion;
};

/// Runs one and judges what came out. Throws Interrupted.
Finding investigate(const Experiment& experiment, Context& context, const Settings& settings);

}  // namespace levelhead::lab
