// The error of o and of each gradient is at most twice that of a naive materialised run in the same type, plus eps
// times the same expression over absolute values: docs/numbers.md, "How exact".
#include <cmath>

#include "support/naive.hpp"
#include "support/oracle.hpp"
#include "support/random_case.hpp"

namespace levelhead::test {
namespace {

/// One problem of a type, its true results, and those of the naive run.
struct Problem {
  Case c;
  Upstream u;
  Materialised truth, rough;

  Problem(const Case& problem, const Upstream& upstream)
      : c(problem),
        u(upstream),
        truth(materialised_run<long double>(c, u)),
        rough(c.dtype == DType::f64 ? materialised_run<double>(c, u) : materialised_run<float>(c, u)) {}
};

class ErrorRule : public KernelTest {
 protected:
  /// Adds the errors of one problem.
  void measure(const Problem& problem) {
    const auto& [c, u, truth, rough] = problem;
    const auto add = [&](const std::string& name, const Tensor& got, double eps) {
      errors_[name].add(got, rough.values.at(name), truth.values.at(name), truth.absolute.at(name), eps);
    };
    const Forward out = run(c);
    add("o", out.o, 2 * unit_roundoff(type()));
    const Backward back = backward(c, out, u, kernel());
    for (const auto& [name, gradient] : back.gradients) {
      if (truth.values.count(name) == 0) continue;  // per head, and of policies: by finite differences
      add(name, gradient, 2 * unit_roundoff(gradient.dtype()));
    }
  }

  std::map<std::string, Errors> errors_;
};

// The kernels that multiply values by f32 (f64) weights, also beside 16-bit inputs.
bool weights_in_f32(const std::string& kernel) { return kernel == "reference" || kernel.rfind("portable", 0) == 0; }

Parameters without_norm(Parameters x) {
  if (x.policy == Policy::qk_l2 || x.policy == Policy::qk_rms) x.policy = Policy::per_row;
  return x;
}

// All kernels of a type in one process share what makes the problems dear.
const std::vector<Problem>& random_problems(DType type) {
  static std::map<DType, std::vector<Problem>> all;
  std::vector<Problem>& problems = all[type];
  if (!problems.empty()) return problems;
  Random random(7);
  for (int n = 0; n < 60; ++n) {
    const Parameters x = without_norm(random_parameters(random));
    const Case c = make_case(type, x);
    problems.emplace_back(c, Upstream::random(c, x.seed + 1));
  }
  return problems;
}

const Problem& unit_normals(DType type) {
  static std::map<DType, Problem> all;
  if (const auto found = all.find(type); found != all.end()) return found->second;
  Case c = Case::random(type, {.Hq = 4, .Hk = 2, .Nq = 48, .Nk = 90, .D = 32, .Dv = 32}, 8);
  c.window = Window::causal(Align::bottom_right());
  Upstream u;
  Random random(9);
  u.dout = Tensor(type, {1, 4, 48, 32}).fill_normal(random);
  return all.emplace(type, Problem(c, u)).first->second;
}

TEST_P(ErrorRule, OverRandomProblems) {
  for (const Problem& problem : random_problems(type())) measure(problem);
  for (const auto& [name, errors] : errors_) EXPECT_TRUE(errors.within_twice_naive()) << name;
}

// One problem of unit normals: the rule, and the yardsticks of the spec (o 2e-6, gradients 5e-6 in f32; 16 bits: at
// most 1.1 times the error of rounding the exact result where the weights stay in f32).
TEST_P(ErrorRule, OfUnitNormals) {
  const Problem& problem = unit_normals(type());
  const auto& [c, u, truth, rough] = problem;
  measure(problem);
  for (const auto& [name, errors] : errors_) EXPECT_TRUE(errors.within_twice_naive()) << name;

  const Forward out = run(c);
  const Backward back = backward(c, out, u, kernel());
  if (type() == DType::f32) {
    EXPECT_LE(relative_error(out.o, truth.values.at("o")), 2e-6);
    for (const char* name : {"dq", "dk", "dv"})
      EXPECT_LE(relative_error(back.at(name), truth.values.at(name)), 5e-6) << name;
  }
  if ((type() == DType::bf16 || type() == DType::f16) && weights_in_f32(kernel())) {
    const Tensor rounded(type(), out.o.sizes(), truth.values.at("o"));
    EXPECT_LE(relative_error(out.o, truth.values.at("o")), 1.1 * relative_error(rounded, truth.values.at("o")));
  }
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(, ErrorRule, ::testing::ValuesIn(kernel_types()), name_of_kernel_type);

}  // namespace levelhead::test
