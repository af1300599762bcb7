#include <gtest/gtest.h>

#include "io/file_error.hpp"

namespace levelhead {
namespace {

TEST(Escaped, LeavesPlainTextAlone) {
  EXPECT_EQ(escaped("layers.0.q"), "layers.0.q");
  EXPECT_EQ(escaped("注意力 – é 🙂"), "注意力 – é 🙂");
  EXPECT_EQ(escaped(""), "");
}

TEST(Escaped, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(escaped("a\nb\tc\r\x1b[31m\x7f"), "a\\nb\\tc\\x0d\\x1b[31m\\x7f");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(escaped("\"\\"), "\\\"\\\\");
  EXPECT_EQ(escaped("\xC2\x9B"
                    "31m"),
            "\\u{9b}31m");  // the one-byte form of ESC [
  EXPECT_EQ(escaped("a\xE2\x80\xAE"
                    "b"),
            "a\\u{202e}b");  // right-to-left override
  EXPECT_EQ(escaped("a\xE2\x80\x8B"
                    "b"),
            "a\\u{200b}b");                              // no width
  EXPECT_EQ(escaped("\xF3\xA0\x80\xA1"), "\\u{e0021}");  // invisible tag
}

TEST(Escaped, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(escaped("\xFF"
                    "a"),
            "\\xffa");
  EXPECT_EQ(escaped("\xC3"), "\\xc3");           // cut short
  EXPECT_EQ(escaped("\xC0\xAF"), "\\xc0\\xaf");  // overlong
  EXPECT_EQ(escaped("\xE0\x80\xAF"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(escaped("\xF5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Escaped, ShortensLongText) {
  EXPECT_EQ(escaped("abcdef", 6), "abcdef");
  EXPECT_EQ(escaped("abcdefg", 6), "abcdef...");
  EXPECT_EQ(escaped("éééé", 3), "ééé...");
  EXPECT_EQ(escaped(std::string(1000, 'x')).size(), 83U);
}

}  // namespace
}  // namespace levelhead
