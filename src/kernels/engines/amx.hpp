#pragma once

#include <span>

#include "kernels/kernel.hpp"

namespace levelhead {

/// "amx", and "amx-twin", which computes in plain memory what the tile instructions would and is for tests.
std::span<const Kernel> amx_kernels();

}  // namespace levelhead
