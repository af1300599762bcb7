#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "io/atomic_file.hpp"
#include "io/safetensors.hpp"
#include "io/safetensors_header.hpp"

namespace levelhead {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

using Fields = std::span<const std::pair<std::string, std::string>>;

std::string_view format_name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "F64";
    case DType::f32: return "F32";
    case DType::bf16: return "BF16";
    case DType::f16: return "F16";
    case DType::i64: return "I64";
    case DType::i32: return "I32";
    case DType::u8: return "U8";
    case DType::boolean: return "BOOL";
  }
  return "";
}

/// text as JSON, with its quotes. Throws FileError if it is no UTF-8.
std::string quoted(const std::string& text, const std::string& file) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw FileError(fmt::format("{}: \"{}\" can't be written because it is not valid UTF-8", file, escaped(text)));
  }
}

void check(std::span<const NamedTensor> tensors, Fields metadata, const std::string& file) {
  std::set<std::string_view> names{"__metadata__"};
  for (const NamedTensor& tensor : tensors) {
    const auto fail = [&](const std::string& what) {
      throw FileError(fmt::format("{}: tensor \"{}\" can't be written: {}", file, escaped(tensor.name), what));
    };
    if (!names.insert(tensor.name).second) fail("its name is taken");
    if (tensor.shape.size() > max_file_rank) fail(fmt::format("it has more than {} dimensions", max_file_rank));
    const auto bytes = dense_bytes(tensor.dtype, tensor.shape);
    const std::string shape = fmt::format("[{}]", fmt::join(tensor.shape, ", "));
    if (!bytes) fail(fmt::format("shape {} has a negative size or overflows", shape));
    if (*bytes != tensor.bytes.size()) {
      fail(fmt::format("shape {} of type {} takes {} bytes but {} are given", shape, name_of(tensor.dtype), *bytes,
                       tensor.bytes.size()));
    }
  }
  std::set<std::string_view> keys;
  for (const auto& field : metadata) {
    if (!keys.insert(field.first).second) {
      throw FileError(fmt::format("{}: metadata \"{}\" is given twice", file, escaped(field.first)));
    }
  }
}

/// Indices in the order the data is written: the widest elements first, so that each starts at a multiple of its width.
std::vector<std::size_t> data_order(std::span<const NamedTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return size_of(tensors[a].dtype) > size_of(tensors[b].dtype); });
  return order;
}

std::string header_of(std::span<const NamedTensor> tensors, std::span<const std::size_t> order, Fields metadata,
                      const std::string& file) {
  std::vector<std::uint64_t> begins(tensors.size());
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    begins[i] = end;
    end += tensors[i].bytes.size();
  }
  std::string header = "{";
  const auto separate = [&] {
    if (header.back() != '{') header += ',';
  };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      separate();
      header += quoted(key, file) + ':' + quoted(value, file);
    }
    header += '}';
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& tensor = tensors[i];
    separate();
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(tensor.name, file),
                          format_name(tensor.dtype), fmt::join(tensor.shape, ","), begins[i],
                          begins[i] + tensor.bytes.size());
  }
  header += '}';
  constexpr std::size_t alignment = 8;
  header.resize((header.size() + alignment - 1) / alignment * alignment, ' ');
  return header;
}

/// A file that is to be, in pieces.
class Layout {
 public:
  /// file: its name in errors.
  Layout(std::span<const NamedTensor> tensors, Fields metadata, const std::string& file) : tensors_(tensors) {
    check(tensors, metadata, file);
    order_ = data_order(tensors);
    header_ = header_of(tensors, order_, metadata, file);
    if (header_.size() > max_header_bytes)
      throw FileError(fmt::format("{}: its header would take {} bytes, more than the {} that safetensors allows", file,
                                  header_.size(), max_header_bytes));
  }

  template <class Sink>
  void for_each_piece(Sink&& sink) const {
    const std::uint64_t length = header_.size();
    sink(std::as_bytes(std::span(&length, 1)));
    sink(std::as_bytes(std::span(header_)));
    for (const std::size_t i : order_) sink(tensors_[i].bytes);
  }

 private:
  std::span<const NamedTensor> tensors_;
  std::vector<std::size_t> order_;
  std::string header_;
};

}  // namespace

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors, Fields metadata) {
  const Layout layout(tensors, metadata, escaped(path, 400));
  AtomicFile output(path);
  layout.for_each_piece([&](std::span<const std::byte> piece) { output.write(piece); });
  output.commit();
}

std::vector<std::byte> safetensors_bytes(std::span<const NamedTensor> tensors, Fields metadata,
                                         const std::string& name) {
  const Layout layout(tensors, metadata, escaped(name, 400));
  std::vector<std::byte> bytes;
  layout.for_each_piece(
      [&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  return bytes;
}

}  // namespace levelhead
