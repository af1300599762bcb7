// The portable kernel: the driver over HighwayF32, compiled once for each of Highway's targets.
#include "kernels/engines/portable.hpp"

#include "kernels/engines/portable_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/engines/portable.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/driver/forward-inl.h"
#include "kernels/engines/highway_f32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levelhead {
namespace HWY_NAMESPACE {

// External names, because the table below is compiled for the baseline only.
std::size_t portable_workspace(const Problem& p, int threads) noexcept {
  return forward_workspace<HighwayF32>(p, threads);
}

void portable_forward(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  forward<HighwayF32>(p, out, pool, scratch);
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
    {HWY_AVX3, "avx3", "AVX-512 (F, BW, CD, DQ, VL)", &N_AVX3::portable_workspace, &N_AVX3::portable_forward},
#endif
#if HWY_TARGETS & HWY_AVX2
    {HWY_AVX2, "avx2", "AVX2, FMA and F16C", &N_AVX2::portable_workspace, &N_AVX2::portable_forward},
#endif
#if HWY_TARGETS & HWY_SSE4
    {HWY_SSE4, "sse4", "SSE4.2", &N_SSE4::portable_workspace, &N_SSE4::portable_forward},
#endif
#if HWY_TARGETS & HWY_NEON
    {HWY_NEON, "neon", "NEON", &N_NEON::portable_workspace, &N_NEON::portable_forward},
#endif
};

}  // namespace

std::span<const Kernel> portable_kernels() { return PortableTable<targets>::kernels("", nullptr, false); }

}  // namespace levelhead

#endif
