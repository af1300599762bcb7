// What a Context owns: threads, scratch memory, and the machine as it was found.
#pragma once

#include <cstddef>
#include <memory>

#include "core/cpu.hpp"
#include "core/parallel.hpp"
#include "levelhead/attention.hpp"

namespace levelhead {

struct Context::Impl {
  explicit Impl(int threads) : pool(threads), cpu(detect_cpu()) {}

  /// At least `bytes`, aligned to 64; kept and grown, never shrunk, so that repeated calls allocate nothing.
  std::byte* scratch(std::size_t bytes);

  Pool pool;
  Cpu cpu;

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace levelhead
