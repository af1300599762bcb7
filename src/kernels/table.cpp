// The ordered list of kernels: selection, `levelhead kernels`, tests and benchmarks all walk it.
#include <utility>
#include <vector>

#include "kernels/engines/amx.hpp"
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
    const auto with_twin = [](std::span<const Kernel> all, std::size_t twins) {
      return std::pair(all.first(all.size() - twins), all.last(twins));
    };
    const auto [few_bf16, few_twin] = with_twin(bf16_decode_kernels(), 2);
    const auto [bf16, twin] = with_twin(bf16_pairs_kernels(), 1);
    const auto [amx, amx_twin] = with_twin(amx_kernels(), 1);
    append(few_bf16);
    append(portable_decode_kernels());
    append(amx);
    append(bf16);
    append(portable_split_kernels());
    append(portable_kernels());
    append(amx_twin);
    append(few_twin);
    append(twin);
    kernels.push_back(reference_kernel);
    return kernels;
  }();
  return table;
}

}  // namespace levelhead
