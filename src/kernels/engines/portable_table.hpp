// One portable kernel for the best target of the CPU at hand, and one for each compiled target.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "kernels/kernel.hpp"

namespace levelhead {

struct PortableTarget {
  std::int64_t bits = 0;  // of hwy::SupportedTargets()
  std::string_view label;
  std::string_view needs;
  decltype(Kernel::forward_workspace) workspace = nullptr;
  decltype(Kernel::forward) forward = nullptr;
};

/// targets: an array of PortableTarget, best first.
template <const auto& targets>
class PortableTable {
 public:
  /// "portable" + suffix, then "portable-" + label + suffix; fits and splits as in Kernel.
  static std::span<const Kernel> kernels(std::string_view suffix, decltype(Kernel::fits) fits, bool splits) {
    static const auto table = [&]<std::size_t... kTarget>(std::index_sequence<kTarget...>) {
      static const std::string best_name = "portable" + std::string(suffix);
      static const std::array<std::string, count> names{"portable-" + std::string(targets[kTarget].label) +
                                                        std::string(suffix)...};
      return std::array{kernel(best_name, &supports_any, &workspace, &run, fits, splits),
                        kernel(names[kTarget], &supports<kTarget>, targets[kTarget].workspace, targets[kTarget].forward,
                               fits, splits)...};
    }
    (std::make_index_sequence<count>());
    return table;
  }

 private:
  static constexpr std::size_t count = std::size(targets);
  static constexpr unsigned types = bit(DType::f32) | bit(DType::bf16) | bit(DType::f16);

  static Kernel kernel(std::string_view name, decltype(Kernel::support) support,
                       decltype(Kernel::forward_workspace) bytes, decltype(Kernel::forward) forward,
                       decltype(Kernel::fits) fits, bool splits) {
    Kernel made{name, types, support, bytes, forward};
    made.fits = fits;
    made.splits = splits;
    return made;
  }

  template <std::size_t kTarget>
  static Support supports(const Cpu& cpu) {
    const PortableTarget& target = targets[kTarget];
    const bool available = (cpu.highway_targets & target.bits) != 0;
    return {available, (available ? "uses " : "this CPU lacks ") + std::string(target.needs)};
  }

  static const PortableTarget& best(const Cpu& cpu) {
    for (const PortableTarget& target : targets) {
      if ((cpu.highway_targets & target.bits) != 0) return target;
    }
    return targets[count - 1];
  }

  static Support supports_any(const Cpu& cpu) {
    const PortableTarget& target = best(cpu);
    const bool available = (cpu.highway_targets & target.bits) != 0;
    return {available, (available ? "its target here is " : "this CPU lacks ") +
                           std::string(available ? target.label : target.needs)};
  }

  // The machine does not change while the process runs.
  static const PortableTarget& best_here() {
    static const PortableTarget& target = best(detect_cpu());
    return target;
  }
  static std::size_t workspace(const Problem& p, int threads) noexcept { return best_here().workspace(p, threads); }
  static void run(const Problem& p, const ForwardOutputs& out, Pool& pool, std::byte* scratch) noexcept {
    best_here().forward(p, out, pool, scratch);
  }
};

}  // namespace levelhead
