// Runs the built command as a user would: arguments and environment in, status and both streams out.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.hpp"
#include "support/kit.hpp"

namespace levelhead::test {

/// A folder that lives as long as the test.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Names of what is in it, sorted.
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

struct Finished {
  int status = -1;  ///< as a shell gives it: 128 + signal when a signal ended it
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
  /// Standard output by lines.
  std::vector<std::string> lines() const;
};

using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

/// environment replaces LC_ALL, COLUMNS and the like; without it LC_ALL=C.UTF-8, COLUMNS=80.
/// out: where standard output goes instead of into Finished::out.
Finished run(const Arguments& arguments, const Environment& environment = {}, const std::string& out = "");

/// What `check --json -` prints of one capture; expects that it succeeds.
nlohmann::json check_json(Arguments arguments);

/// Status and standard error when whoever reads standard output is gone.
Finished run_without_reader(const Arguments& arguments);

/// Starts the command and returns its process.
pid_t start(const Arguments& arguments);
/// Its status once it has ended, as in Finished.
int wait_for(pid_t process);

/// A test tensor under a name, for a file.
struct FileTensor {
  std::string name;
  Tensor tensor;     // dense
  Sizes shape = {};  // in the file, where it is not the tensor's own
};
using Fields = std::vector<std::pair<std::string, std::string>>;
void write(const std::string& path, const std::vector<FileTensor>& tensors, const Fields& metadata = {});

/// Every tensor of a file.
std::map<std::string, Tensor> read(const std::string& path);

std::string capture_path(const std::string& name);
/// The captures that the command carries.
inline const std::string encoder = "embedded:minilm-l6-qkv.safetensors";
inline const std::string decoder = "embedded:smollm2-135m-qkv.safetensors";

}  // namespace levelhead::test
