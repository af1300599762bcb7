#pragma once

#include <span>

#include "kernels/kernel.hpp"

namespace levelhead {

/// "portable" (the best target this CPU has), then one kernel per compiled target, best first.
std::span<const Kernel> portable_kernels();
/// The same for few rows: "portable-decode" first, which reads keys where they lie; "portable-split" first, which packs
/// them.
std::span<const Kernel> portable_decode_kernels();
std::span<const Kernel> portable_split_kernels();

}  // namespace levelhead
