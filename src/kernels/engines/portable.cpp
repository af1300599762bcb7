// The portable kernel: the driver over HighwayF32, compiled once for each of Highway's targets.
#include "kernels/engines/portable.hpp"

// Targets that add nothing over those left: SSSE3 is below the baseline of x86-64-v2, AVX3_DL has no f32 arithmetic of
// its own, and the vectors of SVE have no size at compile time, so they can't stand in arrays.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_DISABLE_PCLMUL_AES

#include <hwy/targets.h>

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

#include <array>

namespace levelhead {
namespace {

struct Target {
  std::int64_t bits;
  std::string_view label;
  std::string_view needs;
  decltype(Kernel::forward_workspace) workspace;
  decltype(Kernel::forward) forward;
};

// Best first.
constexpr Target targets[] = {
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
constexpr std::size_t target_count = std::size(targets);

template <std::size_t kTarget>
Support supports(const Cpu& cpu) {
  const Target& target = targets[kTarget];
  const bool available = (cpu.highway_targets & target.bits) != 0;
  return {available, (available ? "uses " : "this CPU lacks ") + std::string(target.needs)};
}

const Target& best(const Cpu& cpu) {
  for (const Target& target : targets) {
    if ((cpu.highway_targets & target.bits) != 0) return target;
  }
  return targets[target_count - 1];
}

Support supports_any(const Cpu& cpu) {
  const Target& target = best(cpu);
  const bool available = (cpu.highway_targets & target.bits) != 0;
  return {available, (available ? "its target here is " : "this CPU lacks ") +
                         std::string(available ? target.label : target.needs)};
}

// The machine does not change while the process runs.
const Target& best_here() {
  static const Target& target = best(detect_cpu());
  return target;
}

constexpr unsigned types = bit(DType::f32) | bit(DType::bf16) | bit(DType::f16);

std::size_t workspace(const Problem& p, int threads) noexcept { return best_here().workspace(p, threads); }
void run(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
  best_here().forward(p, out, pool, scratch);
}

}  // namespace

std::span<const Kernel> portable_kernels() {
  static const auto table = []<std::size_t... kTarget>(std::index_sequence<kTarget...>) {
    static const std::array<std::string, target_count> names{"portable-" + std::string(targets[kTarget].label)...};
    return std::array{
        Kernel{"portable", types, &supports_any, &workspace, &run},
        Kernel{names[kTarget], types, &supports<kTarget>, targets[kTarget].workspace, targets[kTarget].forward}...};
  }
  (std::make_index_sequence<target_count>());
  return table;
}

}  // namespace levelhead

#endif
