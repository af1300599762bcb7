// safetensors files, written by anybody: every length is checked against the bytes that are there before anything is
// reserved, so that a hostile file costs an error and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file_error.hpp"
#include "io/tensor.hpp"

namespace levelhead {

/// One tensor of a file. The views live as long as the SafetensorsFile.
struct TensorEntry {
  std::string_view name;  ///< valid UTF-8, yet any character: print it through escaped()
  DType dtype = DType::f32;
  std::span<const std::int64_t> shape;  ///< at most 8 sizes, each >= 0
  std::uint64_t begin = 0, end = 0;     ///< bytes [begin, end) behind the header; end - begin fits dtype and shape
};

/// The file's `__metadata__`, in order of the keys.
class Metadata {
 public:
  std::size_t size() const noexcept { return fields_.size(); }
  /// Key and value number i < size().
  std::pair<std::string_view, std::string_view> operator[](std::size_t i) const;
  std::optional<std::string_view> find(std::string_view key) const;

 private:
  friend class HeaderStore;
  struct Field {
    std::uint32_t key = 0, value = 0, end = 0;  // in the pool: key up to value, value up to end
  };
  std::vector<Field> fields_;
  const char* pool_ = nullptr;
};

class SafetensorsFile {
 public:
  /// Reads and checks the header; memory stays below twice its length and a constant. Throws FileError.
  static SafetensorsFile open(const std::string& path);
  /// bytes are borrowed; name stands for the file in errors. Throws FileError.
  static SafetensorsFile from_bytes(std::span<const std::byte> bytes, std::string name);

  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  const std::string& name() const noexcept;  ///< as given to open or from_bytes
  const Metadata& metadata() const noexcept;
  std::span<const TensorEntry> tensors() const noexcept;          ///< in the header's order
  const TensorEntry* find(std::string_view name) const noexcept;  ///< null if there is none

  /// The tensor's bytes, copied. A BOOL other than 0 or 1, a file that changed or shrank since open: FileError.
  Tensor read(const TensorEntry& entry) const;

 private:
  struct Impl;
  explicit SafetensorsFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A tensor to write; bytes are borrowed, dense and row-major.
struct NamedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes all of it or nothing (io/atomic_file.hpp). The header keeps the order given; the data lies in order of
/// falling element size, so that every tensor is aligned to its element. Same input, same bytes. Throws FileError.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata = {});

/// The bytes that write_safetensors would write; name stands for the file in errors. Throws FileError.
std::vector<std::byte> safetensors_bytes(std::span<const NamedTensor> tensors,
                                         std::span<const std::pair<std::string, std::string>> metadata,
                                         const std::string& name);

}  // namespace levelhead
