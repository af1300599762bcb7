// The amx kernel: the driver over AmxTiles with AMX's instructions, and its plain twin over the baseline.
#include "kernels/engines/amx.hpp"

// AVX-512, which every processor with AMX has, and whatever the baseline is, for the twin.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX2 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_DISABLE_PCLMUL_AES

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/engines/amx.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// See avx512bf16.cpp for what a longer target string is good for. Vectors use AVX512_BF16, which every processor with
// AMX has as well.
#undef LEVELHEAD_AVX512_BF16
#undef LEVELHEAD_AMX
#if HWY_TARGET == HWY_AVX3 && HWY_ARCH_X86_64
#define LEVELHEAD_AVX512_BF16 1
#define LEVELHEAD_AMX 1
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16,amx-tile,amx-bf16"
#else
#define LEVELHEAD_AVX512_BF16 0
#define LEVELHEAD_AMX 0
#endif

#include "kernels/driver/forward-inl.h"
#include "kernels/engines/amx_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {

// External names, because the table below is compiled for the baseline only.
std::size_t amx_workspace(const Problem& p, int threads) noexcept { return forward_workspace<AmxTiles>(p, threads); }

void amx_forward(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  forward<AmxTiles>(p, out, pool, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace levelhead {
namespace {

Support twin_support(const Cpu&) { return {true, "emulates AMX, slowly, for tests", false}; }

[[maybe_unused]] Support support(const Cpu& cpu) {
  if (!cpu.amx_bf16) return {false, "this CPU lacks AMX-TILE and AMX-BF16"};
  if (!cpu.avx512_bf16) return {false, "this CPU lacks AVX512_BF16"};
  if (!cpu.amx_permitted) return {false, "the operating system does not let this process use AMX's tiles"};
  return {true, "uses AMX-BF16"};
}

}  // namespace

std::span<const Kernel> amx_kernels() {
  static constexpr Kernel table[] = {
#if (HWY_TARGETS & HWY_AVX3) && HWY_ARCH_X86_64
    {"amx", bit(DType::bf16), &support, &N_AVX3::amx_workspace, &N_AVX3::amx_forward},
#endif
    {"amx-twin", bit(DType::bf16), &twin_support, &HWY_NAMESPACE::amx_workspace, &HWY_NAMESPACE::amx_forward},
  };
  return table;
}

}  // namespace levelhead

#endif
