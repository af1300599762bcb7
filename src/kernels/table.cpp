// The ordered list of kernels: selection, `levelhead kernels`, tests and benchmarks all walk it.
#include <array>

#include "kernels/kernel.hpp"
#include "kernels/reference.hpp"

namespace levelhead {

std::span<const Kernel> kernel_table() {
  static const std::array table{reference_kernel};
  return table;
}

}  // namespace levelhead
