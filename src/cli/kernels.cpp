#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "callers/json.hpp"
#include "cli/command.hpp"
#include "cli/shared.hpp"

namespace levelhead::cli {
namespace {

std::string to_json_line(const std::vector<KernelInfo>& all) {
  Json json{{"kernels", Json::array()}, {"cpu", cpu_name()}};
  for (const KernelInfo& kernel : all) {
    Json types = Json::array();
    for (const DType type : kernel.types) types.push_back(name_of(type));
    json["kernels"].push_back(
        {{"name", kernel.name}, {"available", kernel.available}, {"types", types}, {"why", kernel.why}});
  }
  return to_line(json);
}

std::string to_text(const std::vector<KernelInfo>& all) {
  std::size_t widest = 0;
  for (const KernelInfo& kernel : all) widest = std::max(widest, kernel.name.size());
  std::string text = cpu_name() + "\n\n";
  for (const KernelInfo& kernel : all) {
    std::string types;
    for (const DType type : kernel.types) types.append(types.empty() ? "" : " ").append(name_of(type));
    text += fmt::format("{:<{}}  {:<3}  {:<16}  {}\n", kernel.name, widest, kernel.available ? "yes" : "no", types,
                        kernel.why);
  }
  return text +
         "\nThe first that is available, takes the type and is no slower than the next runs;\n`levelhead attend "
         "--kernel NAME` forces one.\n";
}

}  // namespace

Command add_kernels(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("kernels", "What can compute attention on this machine, and why");
  command->add_flag("--json", *json, "as one JSON object");
  return {command, [json] {
            write_stdout(*json ? to_json_line(kernels()) : to_text(kernels()));
            return static_cast<int>(done);
          }};
}

}  // namespace levelhead::cli
