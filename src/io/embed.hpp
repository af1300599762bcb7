// Files copied into the program as they are, by the assembler: a C array of them would take the compiler minutes.
#pragma once

#include <cstddef>

/// Declares symbol[] and symbol##_end[], the bytes of the file at path (a string literal), followed by a 0. Use it at
/// file scope of one source, whose OBJECT_DEPENDS names the file.
#define LEVELHEAD_EMBED(symbol, path)                                                     \
  __asm__(                                                                                \
      ".pushsection .rodata\n"                                                            \
      ".balign 64\n" #symbol                                                              \
      ":\n"                                                                               \
      ".incbin \"" path "\"\n" #symbol                                                    \
      "_end:\n"                                                                           \
      ".byte 0\n"                                                                         \
      ".globl " #symbol "\n.hidden " #symbol "\n.globl " #symbol "_end\n.hidden " #symbol \
      "_end\n"                                                                            \
      ".popsection\n");                                                                   \
  extern "C" const std::byte symbol[], symbol##_end[]
