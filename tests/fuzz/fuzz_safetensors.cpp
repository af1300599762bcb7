// Any bytes are a safetensors file or an error; what was accepted comes back from the writer as it was.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fuzz/target.hpp"
#include "io/safetensors.hpp"

namespace levelhead::fuzz {
namespace {

constexpr std::size_t largest_written = 4096;

using Fields = std::vector<std::pair<std::string, std::string>>;

double sum_of(const Tensor& tensor) {
  const auto sum = [](auto values, auto as_number) {
    double total = 0;
    for (const auto x : values) total += as_number(x);
    return total;
  };
  const auto number = [](auto x) { return static_cast<double>(x); };
  const auto half = [](auto x) { return static_cast<double>(to_f32(x)); };
  switch (tensor.dtype()) {
    case DType::f64: return sum(tensor.elements<double>(), number);
    case DType::f32: return sum(tensor.elements<float>(), number);
    case DType::bf16: return sum(tensor.elements<bf16>(), half);
    case DType::f16: return sum(tensor.elements<f16>(), half);
    case DType::i64: return sum(tensor.elements<std::int64_t>(), number);
    case DType::i32: return sum(tensor.elements<std::int32_t>(), number);
    case DType::u8: return sum(tensor.elements<std::uint8_t>(), number);
    case DType::boolean: return sum(tensor.elements<bool>(), number);
  }
  return 0;
}

Fields fields_of(const SafetensorsFile& file) {
  Fields fields;
  for (std::size_t i = 0; i < file.metadata().size(); ++i) {
    const auto [key, value] = file.metadata()[i];
    require(file.metadata().find(key) == value, "a key of the metadata is found");
    fields.emplace_back(key, value);
  }
  return fields;
}

/// All tensors, or fewer where one is refused.
std::vector<Tensor> read_all(const SafetensorsFile& file) {
  std::vector<Tensor> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    require(file.find(entry.name) == &entry, "a name leads to its tensor");
    require(dense_bytes(entry.dtype, entry.shape) == entry.end - entry.begin, "offsets fit the shape");
    try {
      tensors.push_back(file.read(entry));
    } catch (const FileError&) {
      require(entry.dtype == DType::boolean, "only a BOOL can be refused once the header is good");
      continue;
    }
    require(!std::isinf(sum_of(tensors.back())) || size_of(entry.dtype) != 1, "bytes have a finite sum");
    if (entry.shape.size() <= max_rank) require(tensors.back().view().data != nullptr, "a view points somewhere");
  }
  return tensors;
}

std::string scratch_file() {
  return std::filesystem::temp_directory_path() / ("levelhead-fuzz-" + std::to_string(::getpid()));
}

void expect_same(const SafetensorsFile& file, const SafetensorsFile& again, std::span<const Tensor> tensors) {
  require(fields_of(file) == fields_of(again), "the metadata come back");
  require(again.tensors().size() == tensors.size(), "every tensor comes back");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry &one = file.tensors()[i], &other = again.tensors()[i];
    require(one.name == other.name && one.dtype == other.dtype && std::ranges::equal(one.shape, other.shape),
            "name, type and shape come back");
    require(std::ranges::equal(again.read(other).bytes(), tensors[i].bytes()), "bytes come back");
  }
}

void write_and_read(const SafetensorsFile& file, std::span<const Tensor> tensors) {
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    named.push_back({std::string(file.tensors()[i].name), tensors[i].dtype(), tensors[i].shape(), tensors[i].bytes()});
  const std::string path = scratch_file();
  write_safetensors(path, named, fields_of(file));
  expect_same(file, SafetensorsFile::open(path), tensors);
  std::filesystem::remove(path);
}

void run(std::span<const std::byte> bytes) {
  try {
    const auto file = SafetensorsFile::from_bytes(bytes, "fuzzed");
    fields_of(file);
    const std::vector<Tensor> tensors = read_all(file);
    if (tensors.size() == file.tensors().size() && bytes.size() <= largest_written) write_and_read(file, tensors);
  } catch (const FileError& refused) {
    require_named(refused);
  }
}

}  // namespace
}  // namespace levelhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  levelhead::fuzz::run(levelhead::fuzz::bytes_of(data, size));
  return 0;
}
