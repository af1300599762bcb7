// What tests ask of printed text.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>

namespace levelhead::test {

/// Words with single spaces between them, however they were wrapped.
inline std::string unwrapped(const std::string& text) {
  std::istringstream stream(text);
  std::string words;
  for (std::string word; stream >> word;) words += word + " ";
  return words;
}

/// Characters of UTF-8.
inline std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace levelhead::test
