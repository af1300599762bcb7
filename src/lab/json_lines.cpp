#include "lab/json_lines.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "io/file_error.hpp"

namespace levelhead::lab {
namespace {

using Json = nlohmann::ordered_json;

// nlohmann writes non-finite numbers as null by itself.
Json to_json(const Fields& fields) {
  Json json = Json::object();
  for (const Field& field : fields) std::visit([&](const auto& value) { json[field.name] = value; }, field.value);
  return json;
}

}  // namespace

std::string row_line(const Experiment& experiment, std::uint64_t seed, const Row& row) {
  Json json{{"experiment", experiment.name}, {"seed", seed}};
  json["parameters"] = to_json(row.parameters);
  json["measured"] = to_json(row.measured);
  if (!row.told.empty()) json["told"] = to_json(row.told);
  return json.dump() + "\n";
}

std::string verdict_line(const Finding& finding, std::uint64_t seed) {
  const Experiment& experiment = *finding.experiment;
  Json json{{"experiment", experiment.name}, {"seed", seed}};
  json["verdict"] = name_of(finding.conclusion.outcome);
  json["reason"] = finding.conclusion.reason;
  if (finding.conclusion.outcome == Outcome::depends) json["depends_on"] = finding.conclusion.depends_on;
  json["title"] = experiment.title;
  json["question"] = experiment.question;
  json["claim"] = experiment.claim;
  return json.dump() + "\n";
}

LineFile::LineFile(const std::string& path) : name_(path == "-" ? "standard output" : escaped(path)) {
  if (path == "-") {
    fd_ = STDOUT_FILENO;
    return;
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw FileError(name_ + " can't be created: " + std::strerror(errno));
  owned_ = true;
}

LineFile::~LineFile() {
  if (owned_) ::close(fd_);
}

void LineFile::write(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(fd_, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw FileError(name_ + " can't be written: " + std::strerror(errno));
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace levelhead::lab
