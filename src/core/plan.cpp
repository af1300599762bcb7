#include "core/plan.hpp"

#include "levelhead/attention.hpp"

namespace levelhead {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

bool takes(const Kernel& kernel, DType type) { return (kernel.types & bit(type)) != 0; }

const Kernel& reference() { return kernel_table().back(); }

const Kernel& forced_kernel(const Problem& problem, const Cpu& cpu, std::string_view name) {
  std::string names;
  for (const Kernel& kernel : kernel_table()) {
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
    if (kernel.name != name) continue;
    const Support support = kernel.support(cpu);
    if (!support.available) throw Error("kernel " + quoted(name) + " can't run on this CPU: " + support.why);
    if (!takes(kernel, problem.dtype)) {
      throw Error("kernel " + quoted(name) + " does not take " + std::string(name_of(problem.dtype)) +
                  " inputs; the reference takes every type");
    }
    return kernel;
  }
  throw Error("there is no kernel " + quoted(name) + "; the kernels are: " + names);
}

}  // namespace

Plan make_plan(const Problem& problem, Pass pass, const Cpu& cpu, std::string_view forced) {
  const std::string type(name_of(problem.dtype));
  if (!forced.empty()) {
    const Kernel& kernel = forced_kernel(problem, cpu, forced);
    if (pass == Pass::backward && kernel.backward == nullptr) {
      return {&reference(), quoted(forced) + " was asked for but has no backward; only the reference has one"};
    }
    return {&kernel, "asked for by name (" + kernel.support(cpu).why + ")"};
  }
  for (const Kernel& kernel : kernel_table()) {
    const Support support = kernel.support(cpu);
    if (!support.available || !support.chosen || !takes(kernel, problem.dtype)) continue;
    if (pass == Pass::backward && kernel.backward == nullptr) continue;
    const bool fallback = &kernel == &reference();
    const std::string what = pass == Pass::backward ? "backward of " + type + " inputs" : type + " inputs";
    return {&kernel, fallback ? "only the reference takes " + what
                              : "first in the table that takes " + what + " here (" + support.why + ")"};
  }
  return {&reference(), "the reference takes everything"};
}

}  // namespace levelhead
