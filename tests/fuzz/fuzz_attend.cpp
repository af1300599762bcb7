// Any options and tensors are a result of `levelhead attend` or a documented error, by the command's own code. What is
// finite and moderate gives numbers, and they are those of the reference.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "callers/json.hpp"
#include "cli/arguments.hpp"
#include "cli/attend.hpp"
#include "fuzz/attend_text.hpp"
#include "fuzz/target.hpp"

namespace levelhead::fuzz {
namespace {

constexpr std::int64_t most_pairs = 1 << 13;

cli::AttendArguments parse(const std::vector<std::string>& options) {
  CLI::App app("fuzzed", "levelhead");
  cli::AttendArguments arguments;
  cli::add_attend_options(app, arguments);
  std::vector<std::string> line{"attend", "--input", "in", "--output", "out"};
  line.insert(line.end(), options.begin(), options.end());
  std::vector<char*> argv{line.front().data()};
  for (std::string& word : line) argv.push_back(word.data());
  app.parse(cli::reversed_arguments(static_cast<int>(argv.size()), argv.data()));
  return arguments;
}

bool is_small(const cli::AttendCall& call) {
  std::int64_t pairs = 1;
  const TensorView &q = call.inputs.q, &k = call.inputs.k;
  for (int axis = 0; axis < q.rank - 1; ++axis)
    pairs *= std::max<std::int64_t>(1, q.sizes[static_cast<std::size_t>(axis)]);
  if (k.rank >= 2) pairs *= std::max<std::int64_t>(1, k.sizes[static_cast<std::size_t>(k.rank - 2)]);
  return pairs <= most_pairs;
}

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> numbers;
  const auto add = [&](auto values, auto as_number) {
    for (const auto x : values) numbers.push_back(static_cast<double>(as_number(x)));
  };
  const auto same = [](auto x) { return x; };
  const auto half = [](auto x) { return to_f32(x); };
  switch (tensor.dtype()) {
    case DType::f64: add(tensor.elements<double>(), same); break;
    case DType::f32: add(tensor.elements<float>(), same); break;
    case DType::bf16: add(tensor.elements<bf16>(), half); break;
    case DType::f16: add(tensor.elements<f16>(), half); break;
    default: break;  // counts and flags are never NaN
  }
  return numbers;
}

/// Every number is finite and no larger than 4, and so is the scale: no sum can overflow.
bool is_moderate(const cli::AttendCall& call) {
  for (const auto& [name, tensor] : call.tensors)
    for (const double x : numbers_of(tensor))
      if (!(std::abs(x) <= 4)) return false;
  if (call.options.softcap != 0 && call.options.softcap < 1e-3) return false;
  if (const auto* constant = std::get_if<Constant>(&call.options.scale)) return std::abs(constant->value) <= 4;
  return !std::holds_alternative<InvDim>(call.options.scale) && !std::holds_alternative<LogKeys>(call.options.scale) &&
         !std::holds_alternative<Yarn>(call.options.scale);
}

bool may_be_nan(std::string_view name) { return name == "stats.mean" || name == "stats.variance"; }  // of empty rows

void expect_numbers(const cli::AttendResult& result) {
  for (const auto& [name, tensor] : result.tensors) {
    if (may_be_nan(name)) continue;
    for (const double x : numbers_of(tensor)) require(!std::isnan(x), name + " holds no NaN when nothing seen does");
  }
}

/// Largest logit that moderate inputs can make, positions left out.
double largest_logit(const cli::AttendCall& call) {
  const TensorView& q = call.inputs.q;
  return 64 * 4 * 4 * 4 * static_cast<double>(std::max<std::int64_t>(1, q.sizes[static_cast<std::size_t>(q.rank - 1)]));
}

void expect_reference(cli::AttendCall& call, const cli::AttendResult& result, bool stats) {
  if (call.inputs.alibi_slopes || call.inputs.q.dtype == DType::bf16 || call.inputs.q.dtype == DType::f16) return;
  call.options.kernel = "reference";
  const cli::AttendResult exact = cli::run_call(call, stats, 1);
  const auto got = numbers_of(result.tensors[0].second), wanted = numbers_of(exact.tensors[0].second);
  const double tolerance = 1e-6 * largest_logit(call);
  for (std::size_t i = 0; i < got.size(); ++i)
    require(std::abs(got[i] - wanted[i]) <= tolerance, "o is that of the reference");
}

void expect_heads(const cli::AttendCall& call, const cli::AttendResult& result) {
  cli::Json json = cli::to_json(result.forward, 0);
  std::int64_t number = 0;
  for (const HeadStatistics& head : head_statistics(call.inputs, call.options, result.state))
    json["heads"].push_back(cli::to_json(number++, head));
  require(cli::Json::accept(cli::to_line(json)), "JSON is valid");
}

void attend(const DescribedCall& described) {
  const cli::AttendArguments arguments = parse(described.options);
  const std::vector<std::byte> bytes = file_of(described.tensors);
  cli::AttendCall call = cli::read_call(arguments, SafetensorsFile::from_bytes(bytes, "fuzzed"));
  if (!is_small(call)) return;
  const cli::AttendResult result = cli::run_call(call, arguments.stats, std::min(arguments.threads, 2));
  if (arguments.stats) expect_heads(call, result);
  if (!is_moderate(call)) return;
  expect_numbers(result);
  expect_reference(call, result, arguments.stats);
}

void run(std::string_view text) {
  const auto described = parse_call(text);
  if (!described) return;
  try {
    attend(*described);
  } catch (const Error&) {
  } catch (const FileError&) {
  } catch (const CLI::ParseError&) {
  }
}

}  // namespace
}  // namespace levelhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  levelhead::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
