#include <algorithm>
#include <memory>

#include "cli/arguments.hpp"
#include "cli/check_compare.hpp"
#include "cli/check_output.hpp"
#include "cli/check_words.hpp"
#include "cli/command.hpp"
#include "cli/embedded.hpp"
#include "cli/help.hpp"
#include "cli/paths.hpp"
#include "cli/progress.hpp"
#include "io/atomic_file.hpp"

namespace levelhead::cli {
namespace {

struct CheckArguments {
  std::vector<std::string> files;
  std::optional<std::string> json, report, scale, align;
  bool causal_given = false, causal = false;
  Selection selection;
  bool heads = false, strict = false, fresh = false, compare = false;
  int threads = 0;

  Rule rule() const { return fresh ? Rule::fresh : Rule::h75; }
};

CaptureOptions capture_options(const CheckArguments& arguments) {
  CaptureOptions options;
  if (arguments.scale) options.scale = parse_number("--scale", *arguments.scale);
  if (arguments.causal_given) options.causal = arguments.causal;
  if (arguments.align) options.align = parse_align("--align", *arguments.align);
  return options;
}

/// The files asked for, or both embedded captures.
std::vector<std::string> sources(const CheckArguments& arguments) {
  std::vector<std::string> names = arguments.files;
  if (names.empty())
    for (const EmbeddedCapture& capture : embedded_captures()) names.emplace_back(capture.name);
  return names;
}

SafetensorsFile open_source(const std::string& name) {
  for (const EmbeddedCapture& capture : embedded_captures())
    if (name == capture.name) return SafetensorsFile::from_bytes(capture.bytes, name);
  return SafetensorsFile::open(name);
}

// Tensors that are no part of a capture are said, so that a misspelt name is not missed in silence.
void report_others(const Capture& capture) {
  if (capture.others.empty()) return;
  std::string names;
  const std::size_t few = std::min<std::size_t>(capture.others.size(), 3);
  for (std::size_t i = 0; i < few; ++i) names.append(i == 0 ? "" : ", ").append(capture.others[i]);
  if (capture.others.size() > few) names += ", ...";
  const bool one = capture.others.size() == 1;
  const std::string line = "levelhead check: " + escaped(capture.file.name()) + ": " +
                           std::to_string(capture.others.size()) + (one ? " tensor is" : " tensors are") +
                           " no layers.N.q, .k or .v and " + (one ? "is" : "are") + " left alone: " + names + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string to_text(const Screen& screen, const CheckArguments& arguments, const Capture& capture,
                    const Judged& judged) {
  std::string text = header_text(screen, capture, judged) + "\n";
  if (judged.fresh)
    text += arguments.heads ? fresh_head_table(screen, judged) : fresh_layer_table(screen, judged);
  else
    text += arguments.heads ? head_table(screen, judged) : layer_table(screen, judged);
  if (arguments.selection.head) text += row_tables(screen, capture, judged);
  return text + "\n" + verdict_text(screen, capture, judged) + "\n";
}

void check_report_path(const CheckArguments& arguments) {
  if (*arguments.report == "-") throw Error("--report writes a file for a browser: give it a name");
  if (arguments.report == arguments.json)
    throw Error("--json and --report are both " + escaped(*arguments.report) + ": name two files");
  check_page_path("--report", *arguments.report, arguments.files);
}

void check_compare(const CheckArguments& arguments) {
  const std::size_t files = arguments.files.size();
  if (files != 0 && files != 2)
    throw Error(
        "--compare needs two files, A and B (or none, for the two captures that travel with the command), but " +
        std::string(files == 1 ? "1 is" : std::to_string(files) + " are") + " given");
  if (arguments.selection.layer || arguments.selection.head || arguments.heads)
    throw Error("--compare takes whole captures, a line per layer: leave out --layer, --head and --heads");
}

void check_use(const CheckArguments& arguments) {
  for (const std::string& file : arguments.files)
    if (file.empty()) throw Error("FILE is given an empty name");
  if (arguments.compare) check_compare(arguments);
  if (arguments.json && arguments.json != "-") check_json_path("--json", *arguments.json, arguments.files);
  if (arguments.report) check_report_path(arguments);
}

/// What a run hands out: text as it goes, the rest at its end.
struct Results {
  const CheckArguments& arguments;
  Screen screen = detect_screen();
  std::string json{};
  std::vector<report::CheckedCapture> reports{};
  std::optional<report::Tab> first_tab{};
  bool all_level = true;

  bool text() const { return arguments.json != "-"; }

  Checked check(const std::string& source, const CaptureOptions& options) {
    Capture capture = read_capture(open_source(source), options);
    report_others(capture);
    Progress progress("measuring");
    const auto say = [&](std::int64_t layer) { progress.say("measuring layer " + std::to_string(layer)); };
    Judged judged = measure(capture, arguments.selection, arguments.rule(), arguments.threads, say);
    all_level = all_level && judged.verdict.name == Verdict::Name::level;
    if (arguments.report) reports.push_back(check_report(capture, judged, arguments.selection, arguments.threads));
    return {std::move(capture), std::move(judged)};
  }

  int finish() const {
    if (arguments.report) {
      write_text_file(*arguments.report, report::check_page(reports, limits_text(arguments.rule()), first_tab));
      if (text()) write_stdout("Page:   " + escaped(*arguments.report, 400) + " (open it in a browser)\n");
    }
    if (arguments.json && text()) write_text_file(*arguments.json, json);
    if (!text()) write_stdout(json);
    return arguments.strict && !all_level ? not_level : done;
  }
};

void run_each(Results& results, const CaptureOptions& options) {
  for (const std::string& source : sources(results.arguments)) {
    const auto [capture, judged] = results.check(source, options);
    if (results.text()) write_stdout(to_text(results.screen, results.arguments, capture, judged));
    if (results.arguments.json) results.json += to_line(check_json(capture, judged));
  }
  if (results.text()) write_stdout(notes_text(results.screen, results.arguments.rule()));
}

void run_compare(Results& results, const CaptureOptions& options) {
  const std::vector<std::string> two = sources(results.arguments);
  const Checked a = results.check(two[0], options), b = results.check(two[1], options);
  const Comparison comparison = compare(a, b);
  if (results.text()) write_stdout(compare_text(results.screen, comparison));
  if (results.arguments.json) results.json = to_line(compare_json(comparison));
  if (!results.arguments.report) return;
  results.first_tab = compare_tab(comparison);
  results.reports[0].label = "A: ", results.reports[1].label = "B: ";
}

int run(const CheckArguments& arguments) {
  const CaptureOptions options = capture_options(arguments);
  check_use(arguments);
  Results results{arguments};
  arguments.compare ? run_compare(results, options) : run_each(results, options);
  return results.finish();
}

}  // namespace

Command add_check(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  CheckArguments& a = *arguments;
  CLI::App* check = app.add_subcommand("check", "Judge whether the attention scale of a captured model is plausible");
  const auto number = CLI::Range(std::int64_t{0}, std::int64_t{1} << 62).description("");
  check
      ->add_option("FILE", a.files,
                   "captured activations: safetensors with layers.N.q, .k and (optional) .v [heads, tokens, dim]; "
                   "without FILE the two captures that travel with the command, embedded:minilm-l6-qkv.safetensors and "
                   "embedded:smollm2-135m-qkv.safetensors")
      ->type_name("FILE.safetensors");
  check->add_flag("--heads", a.heads, "a line per head");
  check->add_option("--layer", a.selection.layer, "only this layer")->check(number)->type_name("N");
  check->add_option("--head", a.selection.head, "only this head, with its rows")->check(number)->type_name("N");
  check->add_option("--scale", a.scale, "what if the scale were the number X")->type_name("X");
  CLI::Option* causal =
      check->add_flag("--causal", a.causal, "true or false, whatever the metadata says")->type_name("[BOOL]");
  check
      ->add_option("--align", a.align,
                   "top-left, bottom-right or an offset: for causal over unequal numbers of queries and keys")
      ->type_name("RULE");
  check
      ->add_option("--json", a.json,
                   "write one JSON object a line for each capture (with --compare one for both); - replaces the text")
      ->type_name("FILE");
  check
      ->add_option("--report", a.report,
                   "write a page with pictures that any browser opens and that loads nothing; measures 17 times more, "
                   "with --fresh once")
      ->type_name("FILE.html");
  check->add_flag("--compare", a.compare, "two captures side by side, --compare A B: what differs, and which heads");
  check->add_flag("--fresh", a.fresh, "untrained weights: judge by the spread of every head, which should be 1");
  check->add_flag("--strict", a.strict, "status 3 unless every verdict is level");
  check->add_option("--threads", a.threads, "how many may take part; one per core if not given")
      ->check(thread_count())
      ->type_name("N");
  return {check, [arguments, causal] {
            arguments->causal_given = causal->count() > 0;
            return run(*arguments);
          }};
}

}  // namespace levelhead::cli
