#pragma once

#include "kernels/kernel.hpp"

namespace levelhead {

extern const Kernel reference_kernel;

}  // namespace levelhead
