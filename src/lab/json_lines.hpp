// Rows and verdicts as JSON Lines: one object a line, written whole or not at all.
#pragma once

#include <string>

#include "lab/experiment.hpp"

namespace levelhead::lab {

/// {experiment, seed, parameters, measured[, told]} and a newline. Numbers that are not finite are null.
std::string row_line(const Experiment& experiment, std::uint64_t seed, const Row& row);

/// {experiment, seed, verdict, reason[, depends_on], title, question, claim} and a newline: the last of an experiment.
std::string verdict_line(const Finding& finding, std::uint64_t seed);

/// A file, or standard output as "-", that grows by lines. Each is written at once, also when a signal arrives, so
/// that whatever ends the run leaves whole lines. Throws FileError.
class LineFile {
 public:
  explicit LineFile(const std::string& path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void write(std::string_view line);

 private:
  std::string name_;
  int fd_ = -1;
  bool owned_ = false;
};

}  // namespace levelhead::lab
