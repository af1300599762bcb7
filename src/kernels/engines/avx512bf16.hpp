#pragma once

#include <span>

#include "kernels/kernel.hpp"

namespace levelhead {

/// "avx512bf16" where the compiler can make it, then "avx512bf16-twin".
std::span<const Kernel> bf16_pairs_kernels();
/// The same two for few rows: each as -decode, then as -split.
std::span<const Kernel> bf16_decode_kernels();

Support supports_avx512bf16(const Cpu& cpu);
Support supports_twin(const Cpu& cpu);

}  // namespace levelhead
