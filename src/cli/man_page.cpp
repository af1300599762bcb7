#include <fmt/format.h>

#include "cli/option_table.hpp"
#include "levelhead/version.hpp"

namespace levelhead::cli {
namespace {

constexpr std::string_view man_description = R"(.SH DESCRIPTION
Scaled dot-product attention is softmax(scale q k') v, and the scale is easily
wrong: too large, and every query sticks to one key; too small, and all keys
look alike.
.B levelhead
computes attention exactly and measures what the scale does: the entropy of
every row, how many keys share its weight, how much a logit can still move it.
.PP
.B levelhead check
describes each head of a captured model, judges the model as a whole and says
how far that can be trusted.
The verdict is evidence, not proof.
.B levelhead attend
is for tensors in a file,
.B levelhead lab
for claims about the scale of attention.
.PP
Data go to standard output, all else to standard error: one line that says what
is wrong and where.
)";

constexpr std::string_view man_end = R"(.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
Failed: a file can't be read or written, or memory is short.
.TP
.B 2
Wrong use: arguments, or tensors that do not go together.
.TP
.B 3
With
.BR "check \-\-strict" :
judged, and not every verdict is level.
.TP
.BR 129 ", " 130 ", " 143
Ended by SIGHUP, SIGINT or SIGTERM; no output file is left half written.
.SH ENVIRONMENT
.TP
.B COLUMNS
How wide text may be, from 60 to 140; if not set, as wide as the terminal, or
80.
.TP
.B NO_COLOR
If set and not empty, text has no colours.
It has none either when standard output is no terminal.
.TP
.B TERM
If not set or
.BR dumb ,
text has no colours.
.TP
.BR LC_ALL ", " LC_CTYPE ", " LANG
Bars and names are drawn with Unicode where the locale's character set is UTF\-8.
Numbers are the same in every locale.
.SH EXAMPLES
Judge the two captures that travel with the command:
.PP
.RS
.B levelhead check
.RE
.PP
Judge a capture, draw what was found, and fail in a script unless it is level:
.PP
.RS
.B levelhead check \-\-strict \-\-report page.html model.safetensors
.RE
.PP
What if its scale were 1?
.PP
.RS
.B levelhead check \-\-scale 1 model.safetensors
.RE
.PP
Causal attention of the tensors q, k and v of a file, with the statistics of
each row:
.PP
.RS
.B levelhead attend \-\-causal \-\-stats \-\-input in.safetensors \-\-output out.safetensors
.RE
.PP
How far do logits spread before softmax picks one key?
.PP
.RS
.B levelhead lab run a7
.RE
.PP
Complete its arguments in the shell that runs now, without installing:
.PP
.RS
.B source <(levelhead generate bash)
.RE
)";

// Literal text: hyphens stay minus signs, a quoted `command` is bold, no line is taken for a request.
std::string man_text(std::string_view text) {
  std::string result;
  bool bold = false;
  if (text.starts_with('.') || text.starts_with('\'')) result += "\\&";
  for (const char c : text) {
    if (c == '`') {
      bold = !bold;
      result += bold ? "\\fB" : "\\fR";
    } else if (c == '\\') {
      result += "\\e";
    } else {
      if (c == '-') result += '\\';
      result += c;
    }
  }
  return result;
}

std::string man_bold(std::string_view text) { return "\\fB" + man_text(text) + "\\fR"; }
std::string man_italic(std::string_view text) { return "\\fI" + man_text(text) + "\\fR"; }

// "--scale X", "--causal [BOOL]": brackets mean what they mean everywhere in a synopsis.
std::string man_option_names(const OptionRow& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + man_bold(name);
  if (!option.type.empty()) text += " " + man_italic(option.type);
  return text;
}

std::string man_usage(const CommandRow& row) {
  std::string text = man_bold(row.path);
  for (const OptionRow& option : row.options)
    if (option.required) text += " " + man_option_names(option);
  text += " [" + man_italic("OPTIONS") + "]";
  for (const OptionRow& positional : row.positionals) {
    const std::string name = man_italic(positional.names.front()) + (positional.repeats ? " ..." : "");
    text += positional.required ? " " + name : " [" + name + "]";
  }
  return text + (row.commands.empty() ? "" : " " + man_italic("COMMAND") + " ...") + "\n";
}

std::string man_synopsis(const OptionTable& table) {
  std::string text = ".SH SYNOPSIS\n";
  bool first = true;
  for (const CommandRow& row : table) {
    if (!row.commands.empty()) continue;
    if (!first) text += ".br\n";
    text += man_usage(row);
    first = false;
  }
  return text;
}

std::string man_entry(const std::string& head, const OptionRow& option) {
  std::string text = ".TP\n" + head + "\n" + man_text(option.description) + "\n";
  if (option.offer.words.empty()) return text;
  std::string words;
  for (const std::string& word : option.offer.words)
    if (!word.ends_with(':') && option.description.find(word) == std::string::npos)
      words += (words.empty() ? "" : ", ") + man_bold(word);
  return words.empty() ? text : text + "(" + words + ")\n";
}

// Every command has --help, which is said once.
bool is_help(const OptionRow& option) { return option.names.back() == "--help"; }

std::string man_command(const CommandRow& row) {
  std::string text;
  for (const OptionRow& positional : row.positionals)
    text += man_entry(man_italic(positional.names.front()), positional);
  for (const OptionRow& option : row.options)
    if (!is_help(option)) text += man_entry(man_option_names(option), option);
  return text;
}

std::string man_options(const OptionTable& table) {
  std::string text = ".SH OPTIONS\n";
  for (const OptionRow& option : table.front().options) text += man_entry(man_option_names(option), option);
  text += ".SH COMMANDS\n";
  for (std::size_t i = 1; i < table.size(); ++i)
    text +=
        ".SS \"" + man_text(table[i].path) + "\"\n" + man_text(table[i].description) + ".\n" + man_command(table[i]);
  return text;
}

}  // namespace

std::string man_page(const OptionTable& table) {
  std::string text = fmt::format(
      ".\\\" made by `levelhead generate man`\n.TH LEVELHEAD 1 \"\" \"levelhead {}\" \"User Commands\"\n"
      ".nh\n.ad l\n.SH NAME\nlevelhead \\- {}\n",
      version, "exact attention for CPUs that puts a level on every head");
  return text.append(man_synopsis(table)).append(man_description).append(man_options(table)).append(man_end);
}

}  // namespace levelhead::cli
