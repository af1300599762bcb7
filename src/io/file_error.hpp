// What every reader and writer throws, and how text that strangers wrote is shown.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace levelhead {

/// A file that can't be read or written: one sentence with the file, what is wrong and the numbers.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// text made safe for a terminal and for one line: control and direction-changing characters, quotes, backslashes and
/// bytes that are no UTF-8 become escapes (\n, \x1b, \u{202e}); more than max_characters end in "...".
std::string escaped(std::string_view text, std::size_t max_characters = 80);

}  // namespace levelhead
