// What the fuzzers share: an input is accepted, refused with a documented error, or a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

/// One input. libFuzzer calls it, and replay.cpp on the files of a folder; whatever it throws is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace levelhead::fuzz {

/// A promise that an input broke.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& promise) {
  if (!holds) throw Broken("broken: " + promise);
}

/// Errors about the input, which is called "fuzzed", begin with its name.
inline void require_named(const std::exception& refused) {
  require(std::string_view(refused.what()).starts_with("fuzzed: "),
          std::string("errors name the file, not: ") + refused.what());
}

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace levelhead::fuzz
