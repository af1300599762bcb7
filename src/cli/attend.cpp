#include "cli/attend.hpp"

#include <fmt/format.h>

#include <memory>

#include "callers/json.hpp"
#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/paths.hpp"
#include "cli/shared.hpp"
#include "io/file_error.hpp"

namespace levelhead::cli {
namespace {

void write_result(const std::string& path, const AttendResult& result) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : result.tensors)
    tensors.push_back({name, tensor.dtype(), tensor.shape(), tensor.bytes()});
  write_safetensors(path, tensors);
}

Json to_json(const AttendCall& call, const AttendResult& result, bool stats) {
  Json json = cli::to_json(result.forward, result.forward_seconds);
  if (result.backward) json["backward"] = cli::to_json(*result.backward, result.backward_seconds);
  if (!stats) return json;
  json["heads"] = Json::array();
  std::int64_t number = 0;
  for (const HeadStatistics& head : head_statistics(call.inputs, call.options, result.state))
    json["heads"].push_back(cli::to_json(number++, head));
  return json;
}

std::string to_text(std::string_view pass, const RunInfo& info, double seconds) {
  return fmt::format("{}: {} ({}), {} {}, {:.3g} s, {:.3g} GFLOP, {} bytes of workspace\n", pass, info.kernel,
                     info.reason, info.threads, info.threads == 1 ? "thread" : "threads", seconds, info.flops * 1e-9,
                     info.workspace_bytes);
}

// The output may itself be standard output; then nothing else may be written there.
bool is_stdout(const std::string& path) {
  return path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

int run(const AttendArguments& arguments) {
  if (arguments.input.empty()) throw Error("--input is given an empty name");
  check_output_path("--output", arguments.output, {&arguments.input, 1});
  const AttendCall call = read_call(arguments);
  const AttendResult result = run_call(call, arguments.stats, arguments.threads);
  const std::string json = arguments.json ? to_line(to_json(call, result, arguments.stats)) : "";
  write_result(arguments.output, result);
  if (arguments.json) {
    write_stdout(json);
  } else if (!is_stdout(arguments.output)) {
    write_stdout(to_text("forward", result.forward, result.forward_seconds));
    if (result.backward) write_stdout(to_text("backward", *result.backward, result.backward_seconds));
  }
  return done;
}

}  // namespace

CLI::App* add_attend_options(CLI::App& app, AttendArguments& a) {
  CLI::App* attend = app.add_subcommand("attend", "Attention of the tensors in a file, with statistics and gradients");
  attend->add_option("--input", a.input, "safetensors file with q, k, v and what goes with them")
      ->required()
      ->type_name("FILE.safetensors");
  attend->add_option("--output", a.output, "safetensors file to write: o, lse, stats.* and gradients")
      ->required()
      ->type_name("FILE.safetensors");
  attend
      ->add_option("--scale", a.scale,
                   "inv-sqrt-dim (default), none, inv-dim[:BASE], log-keys:N0, ssmax, yarn:FACTOR[,MSCALE] or a "
                   "number; a tensor scale overrides it")
      ->type_name("POLICY");
  attend->add_option("--qk-norm", a.qk_norm, "l2 or rms: normalise q and k first; qk_gain multiplies")
      ->type_name("KIND");
  attend->add_flag("--causal", a.causal, "hide the keys behind the query's own");
  attend
      ->add_option("--align", a.align,
                   "top-left, bottom-right or an offset: which key is the query's own; needed with a window over "
                   "unequal numbers of queries and keys")
      ->type_name("RULE");
  attend->add_option("--window", a.window, "keys seen beside the query's own; inf is no bound")
      ->type_name("LEFT,RIGHT");
  attend->add_option("--softcap", a.softcap, "logits become C tanh(logit / C); 0 (default) is off")->type_name("C");
  attend->add_flag("--stats", a.stats, "write the statistics of each row; with --json also tell those of each head");
  attend->add_flag("--exact", a.exact, "never measure from rounded weights");
  attend->add_option("--kernel", a.kernel, "force this one of `levelhead kernels`")->type_name("KERNEL");
  attend->add_option("--threads", a.threads, "how many may take part; one per core if not given")
      ->check(thread_count())
      ->type_name("N");
  attend
      ->add_option("--splits", a.splits,
                   "cut the keys of each row into N ranges at most and merge them, in a kernel named -decode or -split")
      ->check(split_count())
      ->type_name("N");
  attend->add_flag("--json", a.json, "tell how it was computed as one JSON object");
  return attend;
}

Command add_attend(CLI::App& app) {
  auto arguments = std::make_shared<AttendArguments>();
  return {add_attend_options(app, *arguments), [arguments] { return run(*arguments); }};
}

}  // namespace levelhead::cli
