// Calls a fuzzer's function on every file of a folder, without a fuzzer: what was found once stays fixed.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/target.hpp"

namespace {

std::vector<std::filesystem::path> files_of(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  // Copied to its exact size, so that a sanitizer sees a read behind it.
  const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  try {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    return true;
  } catch (const std::exception& finding) {
    std::fprintf(stderr, "%s: %s\n", file.c_str(), finding.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: replay FOLDER\n"), 2;
  const auto files = files_of(argv[1]);
  const auto good = std::count_if(files.begin(), files.end(), replay);
  std::printf("%td of %zu files are as promised\n", good, files.size());
  return !files.empty() && good == static_cast<std::ptrdiff_t>(files.size()) ? 0 : 1;
}
