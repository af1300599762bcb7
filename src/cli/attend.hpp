// `levelhead attend`, in three steps: tensors of a file become inputs, inputs become outputs, outputs a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.hpp"
#include "levelhead/attention.hpp"

namespace CLI {
class App;
}

namespace levelhead::cli {

/// What the command line says.
struct AttendArguments {
  std::string input, output;
  std::optional<std::string> scale, qk_norm, align, window, softcap, kernel;
  int threads = 0;
  std::int64_t splits = 0;
  bool causal = false, stats = false, exact = false, json = false;
};

/// The file's tensors and the call they make. Views point into `tensors`.
struct AttendCall {
  std::map<std::string, Tensor, std::less<>> tensors;
  Inputs inputs;
  Options options;
  OutputGradients output_gradients;

  bool has(std::string_view name) const { return tensors.find(name) != tensors.end(); }
  bool needs_backward() const { return output_gradients.dout || output_gradients.dlse || output_gradients.dentropy; }
};

/// Adds the subcommand, which parses into arguments.
CLI::App* add_attend_options(CLI::App& app, AttendArguments& arguments);

/// Reads the file and puts its tensors where their names say. Throws Error on names and options that do not go
/// together, FileError on a broken file.
AttendCall read_call(const AttendArguments& arguments);
/// The same of a file that is open; arguments.input is not looked at.
AttendCall read_call(const AttendArguments& arguments, const SafetensorsFile& file);

struct AttendResult {
  RunInfo forward;
  double forward_seconds = 0;
  std::optional<RunInfo> backward;
  double backward_seconds = 0;
  std::vector<RowState> state;                          // [B, Hq, Nq]
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order they are written
};

/// Runs forward and, when gradients came in, backward. Throws Error on wrong use.
AttendResult run_call(const AttendCall& call, bool stats, int threads);

}  // namespace levelhead::cli
