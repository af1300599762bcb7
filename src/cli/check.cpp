#include <algorithm>
#include <memory>

#include "cli/arguments.hpp"
#include "cli/check_output.hpp"
#include "cli/check_words.hpp"
#include "cli/command.hpp"
#include "cli/embedded.hpp"
#include "cli/help.hpp"
#include "cli/paths.hpp"
#include "io/atomic_file.hpp"

namespace levelhead::cli {
namespace {

struct CheckArguments {
  std::vector<std::string> files;
  std::optional<std::string> json, report, scale, align;
  bool causal_given = false, causal = false;
  Selection selection;
  bool heads = false, strict = false;
  int threads = 0;
};

CaptureOptions capture_options(const CheckArguments& arguments) {
  CaptureOptions options;
  if (arguments.scale) options.scale = parse_number("--scale", *arguments.scale);
  if (arguments.causal_given) options.causal = arguments.causal;
  if (arguments.align) options.align = parse_align(*arguments.align);
  return options;
}

/// The files asked for, or both embedded captures.
std::vector<std::function<SafetensorsFile()>> sources(const CheckArguments& arguments) {
  std::vector<std::function<SafetensorsFile()>> all;
  for (const std::string& path : arguments.files) all.emplace_back([&path] { return SafetensorsFile::open(path); });
  if (!all.empty()) return all;
  for (const EmbeddedCapture& capture : embedded_captures())
    all.emplace_back(
        [&capture] { return SafetensorsFile::from_bytes(capture.bytes, "embedded:" + std::string(capture.name)); });
  return all;
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

int run(const CheckArguments& arguments) {
  const Screen screen = detect_screen();
  const CaptureOptions options = capture_options(arguments);
  const bool text = arguments.json != "-";
  for (const std::string& file : arguments.files)
    if (file.empty()) throw Error("FILE is given an empty name");
  if (arguments.json && text) check_json_path("--json", *arguments.json, arguments.files);
  if (arguments.report) check_report_path(arguments);
  std::vector<report::CheckedCapture> reports;
  std::string json;
  bool all_level = true;
  for (const auto& open : sources(arguments)) {
    const Capture capture = read_capture(open(), options);
    report_others(capture);
    const Judged judged = measure(capture, arguments.selection, arguments.threads);
    all_level = all_level && judged.verdict.name == Verdict::Name::level;
    if (text) write_stdout(to_text(screen, arguments, capture, judged));
    if (arguments.json) json += to_line(check_json(capture, judged));
    if (arguments.report) reports.push_back(check_report(capture, judged, arguments.selection, arguments.threads));
  }
  if (text) write_stdout(notes_text(screen));
  if (arguments.report) {
    write_text_file(*arguments.report, report::check_page(reports, limits_text()));
    if (text) write_stdout("Page:   " + escaped(*arguments.report, 400) + " (open it in a browser)\n");
  }
  if (arguments.json && text) write_text_file(*arguments.json, json);
  if (!text) write_stdout(json);
  return arguments.strict && !all_level ? not_level : done;
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
                   "without FILE the two captures that travel with the command")
      ->type_name("FILE.safetensors");
  check->add_flag("--heads", a.heads, "a line per head");
  check->add_option("--layer", a.selection.layer, "only this layer")->check(number)->type_name("N");
  check->add_option("--head", a.selection.head, "only this head, with its rows")->check(number)->type_name("N");
  check->add_option("--scale", a.scale, "what if the scale were X")->type_name("X");
  CLI::Option* causal =
      check->add_flag("--causal", a.causal, "true or false, whatever the metadata says")->type_name("[BOOL]");
  check
      ->add_option("--align", a.align,
                   "top-left, bottom-right or an offset: for causal over unequal numbers of queries and keys")
      ->type_name("RULE");
  check->add_option("--json", a.json, "write one JSON object a line for each capture; - replaces the text")
      ->type_name("FILE");
  check
      ->add_option("--report", a.report,
                   "write a page with pictures that any browser opens and that loads nothing; measures 17 times more")
      ->type_name("FILE.html");
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
