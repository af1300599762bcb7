#include "fuzz/attend_text.hpp"

#include <charconv>
#include <cstdint>
#include <cstring>

#include "io/safetensors_bytes.hpp"
#include "levelhead/tensor.hpp"

namespace levelhead::fuzz {
namespace {

constexpr std::int64_t largest_size = 64, most_elements = 4096;
constexpr std::size_t most_tensors = 16;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return parts;
}

template <class T>
T number(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Elements of a shape; nothing if it is too large to be run. What is no number counts as 0.
std::optional<std::int64_t> elements_of(std::string_view shape) {
  std::int64_t product = 1;
  if (shape.empty()) return product;
  for (const std::string_view part : split(shape, ',')) {
    const auto size = number<std::int64_t>(part);
    if (size > largest_size) return std::nullopt;
    product *= size < 0 ? 0 : size;
    if (product > most_elements) return std::nullopt;
  }
  return product;
}

double pseudo_random(std::uint64_t seed, std::uint64_t n) {
  std::uint64_t x = seed + (n + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-51 - 2;
}

std::vector<double> values_of(std::span<const std::string_view> given, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count && !given.empty(); ++i) {
    const std::string_view text = given[i % given.size()];
    values[i] = text.starts_with('~') ? pseudo_random(number<std::uint64_t>(text.substr(1)), i) : number<double>(text);
  }
  return values;
}

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

template <class T>
T whole(double x) {
  return x > -1e9 && x < 1e9 ? static_cast<T>(static_cast<std::int64_t>(x)) : T{};
}

void append_value(std::vector<std::byte>& bytes, std::string_view dtype, double x) {
  if (dtype == "F64") append(bytes, x);
  if (dtype == "F32")
    append(bytes, x > 3e38 || x < -3e38 ? static_cast<float>(x > 0 ? 1 : -1) * 3e38F * 10 : static_cast<float>(x));
  if (dtype == "BF16") append(bytes, to_bf16(x));
  if (dtype == "F16") append(bytes, to_f16(x));
  if (dtype == "I64") append(bytes, whole<std::int64_t>(x));
  if (dtype == "I32") append(bytes, whole<std::int32_t>(x));
  if (dtype == "U8" || dtype == "BOOL") append(bytes, whole<std::uint8_t>(x));
}

}  // namespace

std::optional<DescribedCall> parse_call(std::string_view text) {
  DescribedCall call;
  const auto lines = split(text, '\n');
  for (const std::string_view option : split(lines.front(), ' ')) call.options.emplace_back(option);
  if (lines.front().empty()) call.options.clear();
  for (const std::string_view line : std::span(lines).subspan(1)) {
    const auto words = split(line, ' ');
    if (words.size() < 3) continue;
    const auto count = elements_of(words[2]);
    if (!count || call.tensors.size() == most_tensors) return std::nullopt;
    call.tensors.push_back({std::string(words[0]), std::string(words[1]), std::string(words[2]),
                            values_of(std::span(words).subspan(3), static_cast<std::size_t>(*count))});
  }
  return call;
}

std::vector<std::byte> file_of(const std::vector<DescribedTensor>& tensors) {
  std::vector<std::byte> data;
  std::string header = "{";
  for (const DescribedTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    for (const double x : tensor.values) append_value(data, tensor.dtype, x);
    header.append(header.size() > 1 ? "," : "")
        .append("\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" + tensor.shape + "]")
        .append(",\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}");
  }
  std::vector<std::byte> bytes = test::file_of(header + "}", 0);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

}  // namespace levelhead::fuzz
