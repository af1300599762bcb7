// Which kernel runs, and why: a pure function of the problem and the CPU.
#pragma once

#include <string>
#include <string_view>

#include "core/cpu.hpp"
#include "kernels/kernel.hpp"

namespace levelhead {

struct Plan {
  const Kernel* kernel = nullptr;
  std::string reason;
};

enum class Pass { forward, backward };

/// forced: a kernel's name, or empty. Throws Error if the name is unknown, the CPU lacks what it needs, or it does
/// not take the problem's type; a forced forward-only kernel hands backward to the reference, and says so.
Plan make_plan(const Problem& problem, Pass pass, const Cpu& cpu, std::string_view forced);

}  // namespace levelhead
