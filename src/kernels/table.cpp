// The ordered list of kernels: selection, `levelhead kernels`, tests and benchmarks all walk it.
#include <vector>

#include "kernels/engines/portable.hpp"
#include "kernels/kernel.hpp"
#include "kernels/reference.hpp"

namespace levelhead {

std::span<const Kernel> kernel_table() {
  static const std::vector<Kernel> table = [] {
    std::vector<Kernel> kernels;
    for (const Kernel& kernel : portable_kernels()) kernels.push_back(kernel);
    kernels.push_back(reference_kernel);
    return kernels;
  }();
  return table;
}

}  // namespace levelhead
