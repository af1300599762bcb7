#include "cli/embedded.hpp"

#include <array>

// The assembler copies the files as they are; a C array of them would take the compiler minutes.
#define LEVELHEAD_EMBED(symbol, file)                                                     \
  __asm__(                                                                                \
      ".pushsection .rodata\n"                                                            \
      ".balign 64\n" #symbol                                                              \
      ":\n"                                                                               \
      ".incbin \"" LEVELHEAD_DATA_DIR "/" file "\"\n" #symbol                             \
      "_end:\n"                                                                           \
      ".byte 0\n"                                                                         \
      ".globl " #symbol "\n.hidden " #symbol "\n.globl " #symbol "_end\n.hidden " #symbol \
      "_end\n"                                                                            \
      ".popsection\n");                                                                   \
  extern "C" const std::byte symbol[], symbol##_end[]

LEVELHEAD_EMBED(levelhead_minilm, "minilm-l6-qkv.safetensors");
LEVELHEAD_EMBED(levelhead_smollm2, "smollm2-135m-qkv.safetensors");

namespace levelhead::cli {

std::span<const EmbeddedCapture> embedded_captures() {
  static const std::array<EmbeddedCapture, 2> captures{{
      {"minilm-l6-qkv.safetensors", {levelhead_minilm, levelhead_minilm_end}},
      {"smollm2-135m-qkv.safetensors", {levelhead_smollm2, levelhead_smollm2_end}},
  }};
  return captures;
}

}  // namespace levelhead::cli
