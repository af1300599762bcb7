#include "cli/paths.hpp"

#include <filesystem>
#include <fstream>

#include "io/file_error.hpp"
#include "levelhead/attention.hpp"

namespace levelhead::cli {
namespace {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && fs::is_regular_file(a, error);
}

// A file that is replaced must be of the kind that replaces it, by its first character, or empty.
void check_replaced(const std::string& option, const std::string& output, char start, const char* holds) {
  std::error_code error;
  if (!fs::is_regular_file(output, error)) return;
  const int first = std::ifstream(output, std::ios::binary).peek();
  if (first != std::ifstream::traits_type::eof() && first != start)
    throw Error(option + " " + escaped(output) + " exists and holds " + holds + ": name another file, or remove it");
}

}  // namespace

void check_output_path(const std::string& option, const std::string& output, std::span<const std::string> inputs) {
  if (output.empty()) throw Error(option + " is given an empty name");
  for (const std::string& input : inputs)
    if (same_file(output, input))
      throw Error(option + " " + escaped(output) + " is the input " + escaped(input) + ": it would be written over");
  std::error_code error;
  const fs::path folder = fs::path(output).has_parent_path() ? fs::path(output).parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    throw FileError(escaped(output) + ": its folder " + escaped(folder.string()) + " does not exist");
  if (fs::is_directory(output, error)) throw FileError(escaped(output) + " is a folder");
}

void check_json_path(const std::string& option, const std::string& output, std::span<const std::string> inputs) {
  check_output_path(option, output, inputs);
  check_replaced(option, output, '{', "no JSON");
}

void check_page_path(const std::string& option, const std::string& output, std::span<const std::string> inputs) {
  check_output_path(option, output, inputs);
  check_replaced(option, output, '<', "no page");
}

}  // namespace levelhead::cli
