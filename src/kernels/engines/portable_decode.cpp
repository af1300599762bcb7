// The portable kernel for few rows: the walk over key ranges with StreamF32, compiled once for each of Highway's
// targets.

#include "kernels/engines/portable.hpp"
#include "kernels/engines/portable_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/engines/portable_decode.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/driver/decode-inl.h"
#include "kernels/engines/stream_f32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {

// External names, because the table below is compiled for the baseline only. One engine for each type: the widening is
// in the innermost loops.
std::size_t portable_decode_workspace(const Problem& p, int threads) noexcept {
  switch (p.dtype) {
    case DType::bf16: return decode_workspace<StreamF32<DType::bf16>>(p, threads);
    case DType::f16: return decode_workspace<StreamF32<DType::f16>>(p, threads);
    default: return decode_workspace<StreamF32<DType::f32>>(p, threads);
  }
}

void portable_decode(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  switch (p.dtype) {
    case DType::bf16: return decode<StreamF32<DType::bf16>>(p, out, pool, scratch);
    case DType::f16: return decode<StreamF32<DType::f16>>(p, out, pool, scratch);
    default: return decode<StreamF32<DType::f32>>(p, out, pool, scratch);
  }
}

std::size_t portable_split_workspace(const Problem& p, int threads) noexcept {
  return decode_workspace<HighwayF32>(p, threads);
}

void portable_split(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  decode<HighwayF32>(p, out, pool, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace levelhead
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "kernels/engines/portable_table.hpp"

namespace levelhead {
namespace {

// Best first.
constexpr PortableTarget targets[] = {
#if HWY_TARGETS & HWY_AVX3
    {HWY_AVX3, "avx3", "AVX-512 (F, BW, CD, DQ, VL)", &N_AVX3::portable_decode_workspace, &N_AVX3::portable_decode},
#endif
#if HWY_TARGETS & HWY_AVX2
    {HWY_AVX2, "avx2", "AVX2, FMA and F16C", &N_AVX2::portable_decode_workspace, &N_AVX2::portable_decode},
#endif
#if HWY_TARGETS & HWY_SSE4
    {HWY_SSE4, "sse4", "SSE4.2", &N_SSE4::portable_decode_workspace, &N_SSE4::portable_decode},
#endif
#if HWY_TARGETS & HWY_NEON
    {HWY_NEON, "neon", "NEON", &N_NEON::portable_decode_workspace, &N_NEON::portable_decode},
#endif
};

constexpr PortableTarget split_targets[] = {
#if HWY_TARGETS & HWY_AVX3
    {HWY_AVX3, "avx3", "AVX-512 (F, BW, CD, DQ, VL)", &N_AVX3::portable_split_workspace, &N_AVX3::portable_split},
#endif
#if HWY_TARGETS & HWY_AVX2
    {HWY_AVX2, "avx2", "AVX2, FMA and F16C", &N_AVX2::portable_split_workspace, &N_AVX2::portable_split},
#endif
#if HWY_TARGETS & HWY_SSE4
    {HWY_SSE4, "sse4", "SSE4.2", &N_SSE4::portable_split_workspace, &N_SSE4::portable_split},
#endif
#if HWY_TARGETS & HWY_NEON
    {HWY_NEON, "neon", "NEON", &N_NEON::portable_split_workspace, &N_NEON::portable_split},
#endif
};

}  // namespace

std::span<const Kernel> portable_decode_kernels() {
  return PortableTable<targets>::kernels("-decode", &fits_streamed, true);
}

std::span<const Kernel> portable_split_kernels() {
  return PortableTable<split_targets>::kernels("-split", &fits_split, true);
}

}  // namespace levelhead

#endif
