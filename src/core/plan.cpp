#include "core/plan.hpp"

#include "levelhead/attention.hpp"

namespace levelhead {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

bool takes(const Kernel& kernel, DType type) { return (kernel.types & bit(type)) != 0; }

const Kernel& reference() { return kernel_table().back(); }

const Kernel& forced_kernel(const Problem& problem, Pass pass, const Cpu& cpu, std::string_view name) {
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
    if (pass == Pass::forward && problem.splits != 0 && !kernel.splits) {
      throw Error("kernel " + quoted(name) + " does not split keys, but " + std::to_string(problem.splits) +
                  " splits are asked for; kernels whose name ends in -decode or -split do");
    }
    return kernel;
  }
  throw Error("there is no kernel " + quoted(name) + "; the kernels are: " + names);
}

// Whether a kernel may be taken unasked.
bool may_take(const Kernel& kernel, const Problem& problem, Pass pass) {
  if (pass == Pass::backward) return kernel.backward != nullptr;
  if (problem.splits != 0) return kernel.splits && kernel.fits(problem);
  return kernel.fits == nullptr || kernel.fits(problem);
}

std::string why(const Kernel& kernel, const Problem& problem, Pass pass, const Support& support) {
  const std::string what =
      (pass == Pass::backward ? "backward of " : "") + std::string(name_of(problem.dtype)) + " inputs";
  if (&kernel == &reference()) return "only the reference takes " + what;
  std::string kind;
  if (kernel.fits != nullptr) kind = problem.splits != 0 ? "splits keys and " : "is for few rows and ";
  return "first in the table that " + kind + "takes " + what + " here (" + support.why + ")";
}

}  // namespace

Plan make_plan(const Problem& problem, Pass pass, const Cpu& cpu, std::string_view forced) {
  const std::string type(name_of(problem.dtype));
  if (!forced.empty()) {
    const Kernel& kernel = forced_kernel(problem, pass, cpu, forced);
    if (pass == Pass::backward && kernel.backward == nullptr) {
      return {&reference(), quoted(forced) + " was asked for but has no backward; only the reference has one"};
    }
    return {&kernel, "asked for by name (" + kernel.support(cpu).why + ")"};
  }
  for (const Kernel& kernel : kernel_table()) {
    if (!takes(kernel, problem.dtype) || !may_take(kernel, problem, pass)) continue;
    const Support support = kernel.support(cpu);
    if (!support.available || !support.chosen) continue;
    return {&kernel, why(kernel, problem, pass, support)};
  }
  if (pass == Pass::forward && problem.splits != 0) {
    throw Error(std::to_string(problem.splits) + " splits are asked for but no kernel here splits the keys of " + type +
                " inputs");
  }
  return {&reference(), "the reference takes everything"};
}

}  // namespace levelhead
