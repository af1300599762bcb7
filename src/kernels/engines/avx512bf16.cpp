// The avx512bf16 kernel: the driver over Bf16Pairs with AVX512_BF16 instructions, and its plain twin over the baseline.
#include "kernels/engines/avx512bf16.hpp"

// AVX-512, where the instructions are, and whatever the baseline is, for the twin.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX2 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_DISABLE_PCLMUL_AES

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/engines/avx512bf16.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Highway 1.0 has no target with AVX512_BF16. Its functions for AVX-512 may be inlined where more is allowed, so the
// code below only needs the right to the three instructions. Headers above stay at the baseline, so nothing that the
// linker could share contains them.
#undef LEVELHEAD_AVX512_BF16
#if HWY_TARGET == HWY_AVX3
#define LEVELHEAD_AVX512_BF16 1
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16"
#else
#define LEVELHEAD_AVX512_BF16 0
#endif

#include "kernels/driver/forward-inl.h"
#include "kernels/engines/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {

// External names, because the table below is compiled for the baseline only.
std::size_t bf16_pairs_workspace(const Problem& p, int threads) noexcept {
  return forward_workspace<Bf16Pairs>(p, threads);
}

void bf16_pairs_forward(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  forward<Bf16Pairs>(p, out, pool, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace levelhead {

Support supports_twin(const Cpu&) { return {true, "emulates AVX512_BF16, slowly, for tests", false}; }

Support supports_avx512bf16(const Cpu& cpu) {
  if (!cpu.avx512_bf16) return {false, "this CPU lacks AVX512_BF16"};
  if (!cpu.bf16_full_rate) return {true, "uses AVX512_BF16, which is no faster than f32 on this CPU", false};
  return {true, "uses AVX512_BF16"};
}

std::span<const Kernel> bf16_pairs_kernels() {
  static constexpr Kernel table[] = {
#if HWY_TARGETS & HWY_AVX3
    {"avx512bf16", bit(DType::bf16), &supports_avx512bf16, &N_AVX3::bf16_pairs_workspace, &N_AVX3::bf16_pairs_forward},
#endif
    {"avx512bf16-twin", bit(DType::bf16), &supports_twin, &HWY_NAMESPACE::bf16_pairs_workspace,
     &HWY_NAMESPACE::bf16_pairs_forward},
  };
  return table;
}

}  // namespace levelhead

#endif
