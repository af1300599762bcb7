#include <fmt/format.h>

#include <array>
#include <iterator>

#include "io/file_error.hpp"

namespace levelhead {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8 starts here
};

/// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
Character decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || length > text.size()) return {};
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

/// Would move the cursor, change the direction of what follows, or be invisible.
bool hidden(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xAD || code == 0x61C ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFB) ||
         (code >= 0xE0000 && code <= 0xE0FFF);
}

void append(std::string& out, std::string_view text, const Character& character) {
  const auto to = std::back_inserter(out);
  if (character.bytes == 0) {
    fmt::format_to(to, "\\x{:02x}", static_cast<unsigned char>(text[0]));
  } else if (character.code == '\n') {
    out += "\\n";
  } else if (character.code == '\t') {
    out += "\\t";
  } else if (character.code == '"' || character.code == '\\') {
    out += {'\\', text[0]};
  } else if (!hidden(character.code)) {
    out += text.substr(0, character.bytes);
  } else if (character.code < 0x80) {
    fmt::format_to(to, "\\x{:02x}", static_cast<unsigned>(character.code));
  } else {
    fmt::format_to(to, "\\u{{{:x}}}", static_cast<unsigned>(character.code));
  }
}

}  // namespace

std::string escaped(std::string_view text, std::size_t max_characters) {
  std::string out;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == max_characters) return out + "...";
    const Character character = decode(text);
    append(out, text, character);
    text.remove_prefix(character.bytes == 0 ? 1 : character.bytes);
  }
  return out;
}

}  // namespace levelhead
