#include "cli/terminal.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace levelhead::cli {
namespace {

constexpr Screen ascii{80, false, false}, utf8{80, true, false}, colour{80, true, true};

TEST(Terminal, BarsFillTheirShare) {
  EXPECT_EQ(bar(ascii, 0.5, 8), "####    ");
  EXPECT_EQ(bar(ascii, 0, 4), "    ");
  EXPECT_EQ(bar(ascii, 1, 4), "####");
  EXPECT_EQ(bar(utf8, 0.5, 4), "██  ");
  EXPECT_EQ(bar(utf8, 0.5625, 2), "█▏");
  EXPECT_EQ(bar(utf8, 1, 2), "██");
  EXPECT_EQ(width_of(bar(utf8, 0.3, 11)), 11U);
}

TEST(Terminal, BarsSayWhenTheyAreTooShort) {
  EXPECT_EQ(bar(ascii, 1.01, 4), "###>");
  EXPECT_EQ(bar(utf8, 5, 3), "██▶");
  EXPECT_EQ(bar(utf8, std::numeric_limits<double>::quiet_NaN(), 3), "   ");
  EXPECT_EQ(bar(utf8, -1, 3), "   ");
}

TEST(Terminal, Wraps) {
  Screen narrow = ascii;
  narrow.columns = 12;
  EXPECT_EQ(wrapped(narrow, "one two three", "", "  "), "one two\n  three\n");
  EXPECT_EQ(wrapped(narrow, "one two thre", "> ", "  "), "> one two\n  thre\n");
  EXPECT_EQ(wrapped(narrow, "unbreakable-and-long x", "", ""), "unbreakable-and-long\nx\n");
  EXPECT_EQ(wrapped(narrow, "", "a", ""), "a\n");
  EXPECT_EQ(wrapped(narrow, paint(colour, Colour::red, "one") + " two three", "", ""),
            "\x1b[31mone\x1b[0m two\nthree\n");
}

TEST(Terminal, ShowsNamesSafely) {
  EXPECT_EQ(shown(utf8, "naïve"), "naïve");
  EXPECT_EQ(shown(ascii, "naïve"), "na?ve");
  EXPECT_EQ(shown(utf8, "\x1b[31m").find('\x1b'), std::string::npos);
}

TEST(Terminal, PaintsOnlyInColour) {
  EXPECT_EQ(paint(utf8, Colour::red, "x"), "x");
  EXPECT_EQ(paint(colour, Colour::none, "x"), "x");
  EXPECT_EQ(paint(colour, Colour::red, "x"), "\x1b[31mx\x1b[0m");
}

}  // namespace
}  // namespace levelhead::cli
