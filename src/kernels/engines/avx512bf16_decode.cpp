// The avx512bf16 kernel for few rows: the walk over key ranges with StreamBf16, and its plain twin over the baseline.
#include "kernels/engines/avx512bf16.hpp"

// AVX-512, where the instructions are, and whatever the baseline is, for the twin.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX2 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_DISABLE_PCLMUL_AES

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/engines/avx512bf16_decode.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// As in avx512bf16.cpp.
#undef LEVELHEAD_AVX512_BF16
#if HWY_TARGET == HWY_AVX3
#define LEVELHEAD_AVX512_BF16 1
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16"
#else
#define LEVELHEAD_AVX512_BF16 0
#endif

#include "kernels/driver/decode-inl.h"
#include "kernels/engines/stream_bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {

// External names, because the table below is compiled for the baseline only.
std::size_t bf16_decode_workspace(const Problem& p, int threads) noexcept {
  return decode_workspace<StreamBf16>(p, threads);
}

void bf16_decode(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  decode<StreamBf16>(p, out, pool, scratch);
}

std::size_t bf16_split_workspace(const Problem& p, int threads) noexcept {
  return decode_workspace<Bf16Pairs>(p, threads);
}

void bf16_split(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  decode<Bf16Pairs>(p, out, pool, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace levelhead {
namespace {

constexpr Kernel splitting(Kernel kernel, decltype(Kernel::fits) fits) {
  kernel.fits = fits;
  kernel.splits = true;
  return kernel;
}

}  // namespace

std::span<const Kernel> bf16_decode_kernels() {
  static constexpr Kernel table[] = {
#if HWY_TARGETS & HWY_AVX3
    splitting({"avx512bf16-decode", bit(DType::bf16), &supports_avx512bf16, &N_AVX3::bf16_decode_workspace,
               &N_AVX3::bf16_decode},
              &fits_streamed),
    splitting({"avx512bf16-split", bit(DType::bf16), &supports_avx512bf16, &N_AVX3::bf16_split_workspace,
               &N_AVX3::bf16_split},
              &fits_split),
#endif
    splitting({"avx512bf16-twin-decode", bit(DType::bf16), &supports_twin, &HWY_NAMESPACE::bf16_decode_workspace,
               &HWY_NAMESPACE::bf16_decode},
              &fits_streamed),
    splitting({"avx512bf16-twin-split", bit(DType::bf16), &supports_twin, &HWY_NAMESPACE::bf16_split_workspace,
               &HWY_NAMESPACE::bf16_split},
              &fits_split),
  };
  return table;
}

}  // namespace levelhead

#endif
