#include "core/cpu.hpp"

#include <hwy/targets.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "levelhead/attention.hpp"

namespace levelhead {
namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

std::string brand() {
  std::array<unsigned, 12> words{};
  for (std::size_t leaf = 0; leaf < 3; ++leaf) {
    const Registers r = cpuid(0x80000002U + static_cast<unsigned>(leaf), 0);
    words[4 * leaf] = r.eax;
    words[4 * leaf + 1] = r.ebx;
    words[4 * leaf + 2] = r.ecx;
    words[4 * leaf + 3] = r.edx;
  }
  std::array<char, sizeof(words) + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof(words));
  std::string name(text.data());
  const std::size_t begin = name.find_first_not_of(' ');
  if (begin == std::string::npos) return "x86-64";
  return name.substr(begin, name.find_last_not_of(' ') - begin + 1);
}

// Tiles are large, so Linux wants every process to ask for them once; threads inherit the answer, forks too.
bool ask_for_tiles() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}

// Whether the operating system saves the tiles' configuration and contents.
bool saves_tiles() {
  if ((cpuid(1, 0).ecx & (1U << 27)) == 0) return false;  // OSXSAVE
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned both = 3U << 17;
  return (low & both) == both;
}

bool permits_tiles() {
  static const bool permitted = saves_tiles() && ask_for_tiles();
  return permitted;
}

#endif

}  // namespace

Cpu detect_cpu() {
  Cpu cpu;
  cpu.highway_targets = hwy::SupportedTargets();
#if defined(__x86_64__)
  cpu.name = brand();
  // The operating system's consent to 512-bit state is part of Highway's own test for AVX3.
  const bool avx512 = (cpu.highway_targets & HWY_AVX3) != 0;
  cpu.avx512_bf16 = avx512 && (cpuid(7, 1).eax & (1U << 5)) != 0;
  // Intel's cores have half the units for it, so that f32 is as fast; its own answer is AMX.
  const Registers maker = cpuid(0, 0);
  cpu.bf16_full_rate = cpu.avx512_bf16 && maker.ebx == 0x68747541 && maker.ecx == 0x444D4163;  // "Auth", "cAMD"
  const unsigned edx = cpuid(7, 0).edx;
  cpu.amx_bf16 = (edx & (1U << 22)) != 0 && (edx & (1U << 24)) != 0;
  cpu.amx_permitted = cpu.amx_bf16 && permits_tiles();
#else
  cpu.name = "unknown CPU";
#endif
  return cpu;
}

std::string cpu_name() {
  const Cpu cpu = detect_cpu();
  std::string name = cpu.name;
  for (const auto& [target, label] : {std::pair<std::int64_t, const char*>{HWY_SSE4, "SSE4"},
                                      {HWY_AVX2, "AVX2"},
                                      {HWY_AVX3, "AVX-512"},
                                      {HWY_NEON, "NEON"}}) {
    if ((cpu.highway_targets & target) != 0) name += std::string(", ") + label;
  }
  if (cpu.avx512_bf16) name += ", AVX512_BF16";
  if (cpu.amx_bf16) name += ", AMX_BF16";
  return name;
}

}  // namespace levelhead
