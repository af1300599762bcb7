// What the machine can do, as a plain value, so that selection can be tested for machines nobody owns.
#pragma once

#include <cstdint>
#include <string>

namespace levelhead {

struct Cpu {
  std::string name;                  // brand string, or the architecture
  std::int64_t highway_targets = 0;  // bits of hwy::SupportedTargets()
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
};

Cpu detect_cpu();

}  // namespace levelhead
