#include "cli/embedded.hpp"

#include <array>

#include "io/embed.hpp"

LEVELHEAD_EMBED(levelhead_minilm, LEVELHEAD_DATA_DIR "/minilm-l6-qkv.safetensors");
LEVELHEAD_EMBED(levelhead_smollm2, LEVELHEAD_DATA_DIR "/smollm2-135m-qkv.safetensors");

namespace levelhead::cli {

std::span<const EmbeddedCapture> embedded_captures() {
  static const std::array<EmbeddedCapture, 2> captures{{
      {"embedded:minilm-l6-qkv.safetensors", {levelhead_minilm, levelhead_minilm_end}},
      {"embedded:smollm2-135m-qkv.safetensors", {levelhead_smollm2, levelhead_smollm2_end}},
  }};
  return captures;
}

}  // namespace levelhead::cli
