// What the reader's screen can show, and text made to fit it.
#pragma once

#include <string>
#include <string_view>

namespace levelhead::cli {

/// Standard output, as far as its reader cares.
struct Screen {
  std::size_t columns = 80;
  bool utf8 = false;
  bool colour = false;
};

/// COLUMNS, else the terminal's width, else 80; UTF-8 by the locale; colour only on a terminal that is not dumb
/// and only without NO_COLOR.
Screen detect_screen();

enum class Colour { none, green, yellow, red, cyan, bold, dim };

/// text in colour, if the screen has it.
std::string paint(const Screen& screen, Colour colour, std::string_view text);

/// Length `width` cells; share 0..1 of it filled, to an eighth of a cell where the screen can. More than 1 ends in an
/// arrow. NaN is an empty bar.
std::string bar(const Screen& screen, double share, std::size_t width);

/// Names that strangers wrote: escaped, and without UTF-8 where the screen has none.
std::string shown(const Screen& screen, std::string_view text, std::size_t max_characters = 80);

/// Characters on the screen: UTF-8 is one each, colours none.
std::size_t width_of(std::string_view text);

/// Text filled with spaces up to `width` characters.
std::string padded(std::string text, std::size_t width);

/// One paragraph in lines of at most screen.columns - 1, each behind `indent`, the first behind `lead` instead.
std::string wrapped(const Screen& screen, std::string_view text, std::string_view lead, std::string_view indent);

}  // namespace levelhead::cli
