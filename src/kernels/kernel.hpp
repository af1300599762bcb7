// The contract between callers and kernels: a checked Problem in, rows and their states out.
// A kernel is noexcept, branches on bounds and numbers only, and gives a row bits that depend on the row's own q,
// the keys it sees and their positions alone. One more kernel is one more file and one more line in table.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/cpu.hpp"
#include "core/parallel.hpp"
#include "core/problem.hpp"

namespace levelhead {

struct Support {
  bool available = false;
  std::string why;     // the target it would use, or what the CPU lacks
  bool chosen = true;  // whether the plan may take it unasked
};

constexpr unsigned bit(DType type) { return 1U << static_cast<unsigned>(type); }

struct Kernel {
  std::string_view name;
  unsigned types = 0;  // bit(DType) of the q, k, v it takes
  Support (*support)(const Cpu&) = nullptr;

  /// Bytes that forward needs as scratch, for this many threads: O(threads x block), never Nq x Nk.
  std::size_t (*forward_workspace)(const Problem&, int threads) noexcept = nullptr;
  /// Writes every row of outputs. scratch is aligned to 64 bytes.
  void (*forward)(const Problem&, const ForwardOutputs&, Pool&, std::byte* scratch) noexcept = nullptr;

  /// Null when the kernel has no backward of its own.
  std::size_t (*backward_workspace)(const Problem&, const BackwardTensors&, int threads) noexcept = nullptr;
  void (*backward)(const Problem&, const BackwardTensors&, Pool&, std::byte* scratch) noexcept = nullptr;

  /// Whether the plan may take it unasked for this problem; null: for every one.
  bool (*fits)(const Problem&) noexcept = nullptr;
  bool splits = false;  // cuts the keys of a row into Problem::splits ranges
};

/// All kernels, best first; the last one takes everything.
std::span<const Kernel> kernel_table();

}  // namespace levelhead
