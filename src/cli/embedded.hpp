// The two captures that travel inside the command, so that `levelhead check` works from any folder.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace levelhead::cli {

struct EmbeddedCapture {
  std::string_view name;  ///< as FILE: "embedded:" and the name of its file
  std::span<const std::byte> bytes;
};

std::span<const EmbeddedCapture> embedded_captures();

}  // namespace levelhead::cli
