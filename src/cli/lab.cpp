// `levelhead lab`: claims about attention, measured.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/lab_text.hpp"
#include "cli/progress.hpp"
#include "io/atomic_file.hpp"
#include "io/file_error.hpp"
#include "lab/json_lines.hpp"
#include "lab/page.hpp"
#include "lab/registry.hpp"

namespace levelhead::cli {
namespace {

struct LabArguments {
  std::vector<std::string> names;
  std::optional<std::string> json, page;
  std::uint64_t seed = 1;
  int threads = 0;
  bool quick = false;
};

std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores into it");

extern "C" void on_stop(int signal) {
  if (stop_signal.exchange(signal) == 0) return;
  remove_pending_output();
  _exit(128 + signal);
}

// The first signal ends the run between two rows, so that JSON Lines keeps its verdicts and whole lines; a second one
// ends it at once.
void stop_gently() {
  struct sigaction action {};
  action.sa_handler = on_stop;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

std::vector<const lab::Experiment*> chosen(const std::vector<std::string>& names) {
  std::vector<const lab::Experiment*> all;
  for (const std::string& name : names) {
    const lab::Experiment* experiment = lab::find_experiment(name);
    if (experiment == nullptr) {
      std::string known;
      for (const lab::Experiment* e : lab::experiments()) known.append(known.empty() ? "" : ", ").append(e->name);
      throw Error("there is no experiment '" + escaped(name) + "', only " + known);
    }
    all.push_back(experiment);
  }
  return all;
}

lab::Settings settings_of(const LabArguments& arguments, Progress& progress, const lab::Experiment*& current,
                          std::optional<lab::LineFile>& lines) {
  lab::Settings settings;
  settings.seed = arguments.seed;
  settings.share = arguments.quick ? 0.05 : 1;
  settings.stop = &stop_signal;
  settings.on_say = [&progress](std::string_view what) { progress.say(std::string(what)); };
  settings.on_row = [&, seed = arguments.seed](const lab::Row& row) {
    if (lines) lines->write(lab::row_line(*current, seed, row));
  };
  return settings;
}

std::vector<lab::Finding> investigate(const std::vector<const lab::Experiment*>& experiments,
                                      const LabArguments& arguments, const Screen& screen) {
  std::optional<lab::LineFile> lines;
  if (arguments.json) lines.emplace(*arguments.json);
  const bool text = arguments.json != "-";
  Context context(arguments.threads);
  std::vector<lab::Finding> findings;
  for (const lab::Experiment* experiment : experiments) {
    {
      Progress progress{std::string(experiment->name)};
      findings.push_back(lab::investigate(*experiment, context, settings_of(arguments, progress, experiment, lines)));
    }
    if (lines) lines->write(lab::verdict_line(findings.back(), arguments.seed));
    if (text) write_stdout((findings.size() > 1 ? "\n" : "") + finding_text(screen, findings.back()));
  }
  if (text && findings.size() > 1) write_stdout("\n" + summary_text(screen, findings));
  return findings;
}

int run(const LabArguments& arguments, const std::vector<const lab::Experiment*>& experiments) {
  const Screen screen = detect_screen();
  stop_gently();
  try {
    std::optional<AtomicFile> page;  // opened first: a long run should not end in a file that can't be written
    if (arguments.page) page.emplace(*arguments.page);
    const std::vector<lab::Finding> findings = investigate(experiments, arguments, screen);
    if (page) page->write(lab::page(findings, arguments.seed)), page->commit();
  } catch (const lab::Interrupted&) {
    return 128 + stop_signal.load();
  }
  return done;
}

void add_options(CLI::App& app, LabArguments& a) {
  app.add_option("--json", a.json, "write JSON Lines: an object per row, last its verdict; - replaces the text")
      ->type_name("FILE");
  app.add_option("--page", a.page, "write one HTML page with charts, which loads nothing")->type_name("FILE.html");
  app.add_option("--seed", a.seed, "of the random numbers, 1 if not given")->type_name("N");
  app.add_flag("--quick", a.quick, "a twentieth of the samples: wider errors");
  app.add_option("--threads", a.threads, "how many may take part; one per core if not given")
      ->check(thread_count())
      ->type_name("N");
}

}  // namespace

Command add_lab(CLI::App& app) {
  auto arguments = std::make_shared<LabArguments>();
  CLI::App* lab = app.add_subcommand("lab", "Measure what is said about the scale of attention");
  lab->require_subcommand(1);
  const CLI::App* list = lab->add_subcommand("list", "What there is to run");
  CLI::App* some = lab->add_subcommand("run", "Run the experiments of these names");
  some->add_option("NAME", arguments->names, "as `levelhead lab list` shows them")->required()->type_name("EXPERIMENT");
  CLI::App* all = lab->add_subcommand("all", "Run every experiment");
  add_options(*some, *arguments);
  add_options(*all, *arguments);
  return {lab, [arguments, list, some] {
            if (list->parsed()) {
              write_stdout(list_text(detect_screen(), lab::experiments()));
              return static_cast<int>(done);
            }
            const auto every = lab::experiments();
            return run(*arguments, some->parsed() ? chosen(arguments->names)
                                                  : std::vector<const lab::Experiment*>(every.begin(), every.end()));
          }};
}

}  // namespace levelhead::cli
