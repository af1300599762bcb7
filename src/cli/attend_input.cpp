// Tensors of a file, by their literal names, as the inputs of one call.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "callers/batch.hpp"
#include "cli/arguments.hpp"
#include "cli/attend.hpp"

namespace levelhead::cli {
namespace {

constexpr std::array<std::string_view, 17> known_names{
    "q",         "k",         "v",         "mask", "bias", "alibi_slopes", "sinks",   "scale",  "q_lengths",
    "k_lengths", "q_offsets", "k_offsets", "dout", "dlse", "dentropy",     "ssmax_s", "qk_gain"};

void read_tensors(const SafetensorsFile& file, AttendCall& call) {
  for (const TensorEntry& entry : file.tensors())
    if (std::find(known_names.begin(), known_names.end(), entry.name) == known_names.end())
      throw Error(escaped(file.name()) + " holds a tensor '" + escaped(entry.name) +
                  "', which is no name that attend knows");
  for (const std::string_view name : {"q", "k", "v"})
    if (file.find(name) == nullptr) throw Error(escaped(file.name()) + " holds no tensor " + std::string(name));
  for (const TensorEntry& entry : file.tensors()) call.tensors.emplace(entry.name, file.read(entry));
}

std::size_t axes(const AttendCall& call, std::string_view name) {
  return call.tensors.find(name)->second.shape().size();
}

bool is_batched(const AttendCall& call) {
  return callers::is_batched(axes(call, "q"), axes(call, "k"), axes(call, "v"));
}

std::optional<TensorView> find(const AttendCall& call, std::string_view name, int rank = 0) {
  const auto found = call.tensors.find(name);
  if (found == call.tensors.end()) return std::nullopt;
  if (axes(call, name) > max_rank)
    throw Error(found->first + " has " + std::to_string(axes(call, name)) + " axes, and none may have more than " +
                std::to_string(max_rank));
  return with_rank(found->second.view(), rank);
}

void place_tensors(AttendCall& call) {
  const bool batched = is_batched(call);
  const int full = batched ? 0 : max_rank, rows = batched ? 0 : 3;
  Inputs& inputs = call.inputs;
  inputs.q = *find(call, "q", full);
  inputs.k = *find(call, "k", full);
  inputs.v = *find(call, "v", full);
  inputs.mask = find(call, "mask");
  inputs.bias = find(call, "bias");
  inputs.alibi_slopes = find(call, "alibi_slopes");
  inputs.sinks = find(call, "sinks");
  inputs.q_lengths = find(call, "q_lengths");
  inputs.k_lengths = find(call, "k_lengths");
  inputs.q_offsets = find(call, "q_offsets");
  inputs.k_offsets = find(call, "k_offsets");
  call.output_gradients.dout = find(call, "dout", full);
  call.output_gradients.dlse = find(call, "dlse", rows);
  call.output_gradients.dentropy = find(call, "dentropy", rows);
}

// Parameters without their option would be read and not used: an error, never silence.
void check_parameters(const AttendCall& call, const AttendArguments& arguments) {
  if (call.has("qk_gain") && !arguments.qk_norm) throw Error("qk_gain is given but --qk-norm is not");
  if (call.has("ssmax_s") && arguments.scale != "ssmax") throw Error("ssmax_s is given but --scale ssmax is not");
  if (call.has("ssmax_s") && call.has("scale"))
    throw Error("ssmax_s and scale are both given, but scale would override --scale ssmax");
  if (arguments.qk_norm && arguments.scale) throw Error("--qk-norm and --scale are both given, but only one can hold");
  if (arguments.qk_norm && call.has("scale"))
    throw Error("--qk-norm and the tensor scale are both given, but only one can hold");
}

Scale choose_scale(const AttendCall& call, const AttendArguments& arguments) {
  if (arguments.qk_norm) return QkNorm{parse_qk_norm("--qk-norm", *arguments.qk_norm), find(call, "qk_gain")};
  const auto scale = find(call, "scale");
  if (!scale)
    return arguments.scale ? parse_scale("--scale", *arguments.scale, find(call, "ssmax_s")) : Scale(InvSqrtDim{});
  // What --scale says is overridden, but it still has to make sense.
  if (arguments.scale && *arguments.scale != "ssmax") parse_scale("--scale", *arguments.scale, std::nullopt);
  if (scale->rank == 1) return PerHead{*scale};
  return PerRow{*find(call, "scale", is_batched(call) ? 0 : 3)};
}

// What needs no tensor.
Options parse_options(const AttendArguments& arguments) {
  Options options;
  const Align align = arguments.align ? parse_align("--align", *arguments.align) : Align();
  options.window = parse_window(arguments.window, arguments.causal, align);
  if (arguments.softcap) options.softcap = parse_number("--softcap", *arguments.softcap);
  options.splits = arguments.splits;
  if (arguments.kernel) options.kernel = *arguments.kernel;
  if (arguments.kernel && arguments.kernel->empty()) throw Error("--kernel is given an empty name");
  return options;
}

AttendCall read_call(const AttendArguments& arguments, const Options& parsed, const SafetensorsFile& file) {
  AttendCall call;
  Options& options = call.options;
  options = parsed;
  read_tensors(file, call);
  place_tensors(call);
  check_parameters(call, arguments);
  options.scale = choose_scale(call, arguments);
  options.statistics.precision = arguments.exact ? Precision::exact : Precision::fast;
  if (call.output_gradients.dentropy) options.statistics.level = StatisticsLevel::entropy;
  if (arguments.stats) options.statistics.level = StatisticsLevel::all;
  return call;
}

}  // namespace

AttendCall read_call(const AttendArguments& arguments) {
  const Options options = parse_options(arguments);  // wrong options are said before the file is opened
  return read_call(arguments, options, SafetensorsFile::open(arguments.input));
}

AttendCall read_call(const AttendArguments& arguments, const SafetensorsFile& file) {
  return read_call(arguments, parse_options(arguments), file);
}

}  // namespace levelhead::cli
