// The JSON header of a safetensors file, read in small pieces: events, no tree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "io/source.hpp"
#include "levelhead/tensor.hpp"

namespace levelhead {

inline constexpr std::uint64_t max_header_bytes = 100'000'000;
inline constexpr std::size_t max_file_rank = 8;
/// A name, a number or a text of the metadata. The JSON lexer holds a token a few times over, so this bounds what it
/// takes beside the header's own share of memory.
inline constexpr std::size_t max_token_bytes = std::size_t{4} << 20;

/// One tensor as the header describes it; the bytes between begin and end fit dtype and shape.
struct HeaderTensor {
  std::string_view name;
  DType dtype = DType::f32;
  std::array<std::int64_t, max_file_rank> sizes{};
  std::size_t rank = 0;
  std::uint64_t begin = 0, end = 0;

  std::span<const std::int64_t> shape() const { return {sizes.data(), rank}; }
};

/// Receives the header piece by piece; the views live for the length of the call.
class HeaderSink {
 public:
  virtual ~HeaderSink() = default;
  virtual void metadata(std::string_view key, std::string_view value) = 0;
  virtual void tensor(const HeaderTensor& tensor) = 0;
};

/// Parses the length bytes of source from begin. Checks all that one tensor can break: JSON, fields, types, sizes
/// against data_bytes; not what takes several (duplicate names, holes). Throws FileError, starting with file.
void parse_header(const Source& source, std::uint64_t begin, std::uint64_t length, std::uint64_t data_bytes,
                  std::string_view file, HeaderSink& sink);

}  // namespace levelhead
