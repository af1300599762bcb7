#pragma once

#include <span>

#include "kernels/kernel.hpp"

namespace levelhead {

/// "avx512bf16", and "avx512bf16-twin", which computes with plain vectors what the instructions would and is for tests.
std::span<const Kernel> bf16_pairs_kernels();

}  // namespace levelhead
