#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "io/file_error.hpp"

namespace levelhead::cli {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::size_t detect_columns(bool terminal) {
  std::size_t columns = 0;
  if (const char* text = std::getenv("COLUMNS")) {
    const std::string_view view(text);
    std::from_chars(view.data(), view.data() + view.size(), columns);
  }
  winsize size{};
  if (columns == 0 && terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns == 0) columns = 80;
  return std::clamp<std::size_t>(columns, 60, 140);
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

Screen detect_screen() {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  Screen screen;
  screen.columns = detect_columns(terminal);
  screen.utf8 = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  screen.colour = terminal && !dumb && !is_set("NO_COLOR");
  return screen;
}

std::string paint(const Screen& screen, Colour colour, std::string_view text) {
  if (!screen.colour || colour == Colour::none) return std::string(text);
  constexpr std::array<int, 7> codes{0, 32, 33, 31, 36, 1, 2};
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
}

std::string bar(const Screen& screen, double share, std::size_t width) {
  constexpr std::array<std::string_view, 8> eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double filled = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  if (std::isnan(share)) return std::string(width, ' ');
  std::string text;
  std::size_t used = 0;
  if (screen.utf8) {
    const auto parts = static_cast<std::size_t>(std::lround(filled * 8));
    for (; used < parts / 8; ++used) text += "█";
    if (parts % 8 != 0) text += eighths[parts % 8], ++used;
  } else {
    used = static_cast<std::size_t>(std::lround(filled));
    text.append(used, '#');
  }
  if (share > 1 && width > 0) {
    text.erase(text.size() - (screen.utf8 ? std::string_view("█").size() : 1));
    text += screen.utf8 ? "▶" : ">";
  }
  return text.append(width - used, ' ');
}

std::string shown(const Screen& screen, std::string_view text, std::size_t max_characters) {
  std::string safe = escaped(text, max_characters);
  if (screen.utf8) return safe;
  std::string ascii;
  for (const char c : safe)
    if (!is_continuation(c)) ascii += static_cast<unsigned char>(c) < 0x80U ? c : '?';
  return ascii;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  bool escape = false;  // inside \x1b[...m, which takes no room
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    if (!escape && !is_continuation(c)) ++width;
    if (c == 'm') escape = false;
  }
  return width;
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t used = width_of(text);
  if (used < width) text.append(width - used, ' ');
  return text;
}

std::string wrapped(const Screen& screen, std::string_view text, std::string_view lead, std::string_view indent) {
  std::string lines, line(lead);
  bool fresh = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!fresh && width_of(line) + 1 + width_of(word) >= screen.columns) {
      lines += line + "\n";
      line = indent;
      fresh = true;
    }
    line.append(fresh ? "" : " ").append(word);
    fresh = false;
  }
  return lines + line + "\n";
}

}  // namespace levelhead::cli
