// What the machine can do, as a plain value, so that selection can be tested for machines nobody owns.
#pragma once

#include <cstdint>
#include <string>

namespace levelhead {

struct Cpu {
  std::string name;                  // brand string, or the architecture
  std::int64_t highway_targets = 0;  // bits of hwy::SupportedTargets()
  bool avx512_bf16 = false;
  bool bf16_full_rate = false;  // its products run at twice the rate of f32, known by the processor's maker
  bool amx_bf16 = false;        // AMX-TILE and AMX-BF16
  bool amx_permitted = false;   // the operating system lets this process use them; it is asked where the CPU has them
};

Cpu detect_cpu();

}  // namespace levelhead
