// The ordered list of kernels: selection, `levelhead kernels`, tests and benchmarks all walk it.
#include <vector>

#include "kernels/engines/avx512bf16.hpp"
#include "kernels/engines/portable.hpp"
#include "kernels/kernel.hpp"
#include "kernels/reference.hpp"

namespace levelhead {

std::span<const Kernel> kernel_table() {
  static const std::vector<Kernel> table = [] {
    std::vector<Kernel> kernels;
    const auto append = [&](std::span<const Kernel> more) { kernels.insert(kernels.end(), more.begin(), more.end()); };
    // Kernels for few rows stand before those that take any number; twins are never chosen unasked.
    append(bf16_decode_kernels().first(bf16_decode_kernels().size() - 1));
    append(bf16_pairs_kernels().first(bf16_pairs_kernels().size() - 1));
    append(portable_decode_kernels());
    append(portable_kernels());
    append(bf16_decode_kernels().last(1));
    append(bf16_pairs_kernels().last(1));
    kernels.push_back(reference_kernel);
    return kernels;
  }();
  return table;
}

}  // namespace levelhead
