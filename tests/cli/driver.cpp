#include "cli/driver.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

extern char** environ;

namespace levelhead::test {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> environment_of(const Environment& changes) {
  Environment all{{"LC_ALL", "C.UTF-8"}, {"COLUMNS", "80"}};
  for (const auto& [name, value] : changes) all[name] = value;
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (!all.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : all) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

pid_t spawn(const Arguments& arguments, const Environment& changes, const std::string& out, const std::string& err) {
  Arguments command{LEVELHEAD_COMMAND};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_of(changes);
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_addopen(&streams, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&streams, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t process = -1;
  const int error = posix_spawn(&process, LEVELHEAD_COMMAND, &streams, nullptr, pointers(command).data(),
                                pointers(environment).data());
  posix_spawn_file_actions_destroy(&streams);
  if (error != 0) throw std::runtime_error(std::string(LEVELHEAD_COMMAND) + ": " + std::strerror(error));
  return process;
}

}  // namespace

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "levelhead-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Finished::lines() const {
  std::vector<std::string> all;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

Finished run(const Arguments& arguments, const Environment& environment, const std::string& out) {
  const Folder folder;
  const std::string out_path = out.empty() ? folder.file("out") : out, err_path = folder.file("err");
  Finished result;
  result.status = wait_for(spawn(arguments, environment, out_path, err_path));
  if (out.empty()) result.out = content(out_path);
  result.err = content(err_path);
  return result;
}

Finished run_without_reader(const Arguments& arguments) {
  const Folder folder;
  std::string command = std::string("'") + LEVELHEAD_COMMAND + "'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  // The reader is gone before the command starts to write.
  const std::string script =
      "{ sleep 0.2; " + command + " 2>'" + folder.file("err") + "'; echo $? >'" + folder.file("status") + "'; } | true";
  Finished result;
  if (std::system(script.c_str()) != 0) return result;
  result.status = std::stoi(content(folder.file("status")));
  result.err = content(folder.file("err"));
  return result;
}

pid_t start(const Arguments& arguments) { return spawn(arguments, {}, "/dev/null", "/dev/null"); }

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

nlohmann::json check_json(Arguments arguments) {
  arguments.insert(arguments.begin(), "check");
  arguments.insert(arguments.end(), {"--json", "-"});
  const Finished result = run(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.lines().size(), 1U);
  return result.json();
}

void write(const std::string& path, const std::vector<FileTensor>& tensors, const Fields& metadata) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor, shape] : tensors) {
    const auto bytes = static_cast<std::size_t>(tensor.elements()) * size_of(tensor.dtype());
    named.push_back({name, tensor.dtype(), shape.empty() ? tensor.sizes() : shape,
                     std::span(static_cast<const std::byte*>(tensor.view().data), bytes)});
  }
  write_safetensors(path, named, metadata);
}

std::map<std::string, Tensor> read(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::map<std::string, Tensor> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    const levelhead::Tensor from = file.read(entry);
    Tensor to(entry.dtype, {entry.shape.begin(), entry.shape.end()});
    if (to.elements() > 0) std::memcpy(to.mutable_view().data, from.bytes().data(), from.bytes().size());
    tensors.emplace(entry.name, std::move(to));
  }
  return tensors;
}

std::string capture_path(const std::string& name) { return std::string(LEVELHEAD_SOURCE_DIR) + "/data/" + name; }

}  // namespace levelhead::test
