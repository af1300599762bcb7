// Makes safetensors files in memory: a valid one, and that one with a single fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace levelhead::test {

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> as_span(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Length, header, data, whatever they are.
inline Bytes file_of(std::uint64_t claimed_length, std::string_view header, std::size_t data_bytes) {
  Bytes bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<std::byte>(claimed_length >> shift & 0xFF));
  for (const std::byte b : as_span(header)) bytes.push_back(b);
  for (std::size_t i = 0; i < data_bytes; ++i) bytes.push_back(static_cast<std::byte>(i % 2));
  return bytes;
}

inline Bytes file_of(std::string_view header, std::size_t data_bytes) {
  return file_of(header.size(), header, data_bytes);
}

/// Every part of the format once: metadata, a plain tensor, a BOOL, an empty one, a scalar. The data are 37 bytes of 0
/// and 1 in turn, the tensors not in the order of their offsets.
inline const std::string valid_header = R"({"__metadata__":{"format":"pt","scale":"0.125"},)"
                                        R"("one":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                                        R"("scalar":{"dtype":"I64","shape":[],"data_offsets":[29,37]},)"
                                        R"("flags":{"dtype":"BOOL","shape":[5],"data_offsets":[24,29]},)"
                                        R"("empty":{"dtype":"F64","shape":[0,7],"data_offsets":[29,29]}})";
inline constexpr std::size_t valid_data = 37;

inline Bytes valid_file() { return file_of(valid_header, valid_data); }

/// The valid header with the one place where `from` stands changed to `to`.
inline std::string with(std::string_view from, std::string_view to) {
  std::string header = valid_header;
  const std::size_t at = header.find(from);
  if (at == std::string::npos || header.find(from, at + 1) != std::string::npos) return "not exactly one place";
  return header.replace(at, from.size(), to);
}

}  // namespace levelhead::test
